"""What a commit asks of a catalog: requirements, updates, patience."""

from __future__ import annotations

import math
import shutil
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from built.commit_tables import CommitTable, create_table
from hypothesis import given, strategies as st
from interleaving import InterleavedOperations

from icebergds.commit.data_files import Append, FastAppend
from icebergds.commit.new_manifests import partition_summaries
from icebergds.commit.operations import Change
from icebergds.commit.options import CommitOptions
from icebergds.commit.retry import commit_change
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError, ValidationError
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    INT,
    STRING,
    DecimalType,
    IcebergType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.requirements import AssertRefSnapshotId, AssertTableUuid
from icebergds.spec.updates.table_updates import (
    AddEncryptionKey,
    AddSnapshot,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from icebergds.spec.values.binary import from_bytes


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    table = create_table(tmp_path / "t")
    table.commit(Append((table.file([1], 1),)))
    return table


def test_the_table_and_the_branch_must_be_those_that_were_found(table: CommitTable) -> None:
    operations = InterleavedOperations(table.operations, [])
    uuid, head = table.metadata.table_uuid, table.head.snapshot_id
    assert uuid is not None
    snapshot = commit_snapshot(operations, Append((table.file([2], 1),))).snapshot
    assert operations.requirements == [AssertTableUuid(uuid), AssertRefSnapshotId("main", head)]
    assert operations.updates == [
        AddSnapshot(snapshot),
        SetSnapshotRef("main", SnapshotRef(snapshot.snapshot_id, RefType.BRANCH)),
    ]


def test_a_branch_that_is_made_must_not_be_there(table: CommitTable) -> None:
    operations = InterleavedOperations(table.operations, [])
    commit_snapshot(operations, Append(()), CommitOptions("side"))
    assert AssertRefSnapshotId("side", None) in operations.requirements


def test_a_branch_that_is_made_starts_at_the_head_of_main(table: CommitTable) -> None:
    """An older snapshot of main may expire meanwhile, and its files with it."""
    operations = InterleavedOperations(table.operations, [])
    commit_snapshot(operations, Append(()), CommitOptions("side"))
    assert AssertRefSnapshotId("main", table.head.snapshot_id) in operations.requirements


def test_a_staged_snapshot_is_added_and_nothing_else(table: CommitTable) -> None:
    operations = InterleavedOperations(table.operations, [])
    snapshot = commit_snapshot(operations, Append(()), CommitOptions(wap_id="w")).snapshot
    assert operations.updates == [AddSnapshot(snapshot)]


def test_files_do_not_go_to_another_table_of_the_same_name(table: CommitTable) -> None:
    file, uuid = table.file([2], 1), table.metadata.table_uuid
    _make_again(table)
    with pytest.raises(ValidationError, match="dropped and re-created"):
        table.commit(Append((file,)), table_uuid=uuid)
    assert not table.metadata.snapshots


def test_a_table_made_again_between_attempts_is_not_written(table: CommitTable) -> None:
    operations = InterleavedOperations(table.operations, [lambda: _make_again(table)])
    with pytest.raises(ValidationError, match="dropped and re-created"):
        commit_snapshot(operations, Append((table.file([2], 1),)))
    assert not table.metadata.snapshots
    assert table.left_over() == set()


def test_properties_do_not_go_to_another_table_of_the_same_name(table: CommitTable) -> None:
    operations = InterleavedOperations(table.operations, [lambda: _make_again(table)])
    change = Change([], [SetProperties({"owner": "me"})])
    with pytest.raises(ValidationError, match="dropped and re-created"):
        commit_change(operations, lambda state: change, lambda state: False)
    assert "owner" not in table.metadata.properties


def _make_again(table: CommitTable) -> None:
    shutil.rmtree(table.location)
    create_table(table.location)


def test_a_catalog_that_shows_an_older_state_does_not_undo_the_commit(table: CommitTable) -> None:
    class Lagging(InterleavedOperations):
        def commit(self, base: Any, *change: Any) -> Any:
            super().commit(base, *change)
            return base

    committed = commit_snapshot(Lagging(table.operations, []), Append((table.file([2], 1),)))
    assert committed.snapshot == table.head
    assert table.ids() == [1, 2]


def test_waits_grow_from_the_least_to_the_greatest(table: CommitTable) -> None:
    table.set_properties(commit__retry__min_wait_ms=20, commit__retry__max_wait_ms=40)
    others = [lambda: table.commit(FastAppend(()))] * 3
    calls: list[float] = []

    class Timed(InterleavedOperations):
        def commit(self, *args: Any) -> Any:
            calls.append(time.monotonic())
            return super().commit(*args)

    commit_snapshot(Timed(table.operations, others), Append(()))
    waits = [later - earlier for earlier, later in pairwise(calls)]
    assert all(wait >= least for wait, least in zip(waits, (0.02, 0.04, 0.04), strict=True))


@pytest.mark.parametrize("name", ["commit.retry.num-retries", "commit.status-check.min-wait-ms"])
def test_properties_that_are_no_numbers_are_refused_before_anything_happens(
    tmp_path: Path, name: str
) -> None:
    table = create_table(tmp_path / "t", properties={name: "often"})
    with pytest.raises(InvalidOptionError, match=f"{name} is 'often'"):
        table.commit(Append(()))
    assert not table.metadata.snapshots


def test_encrypted_tables_are_not_written_without_a_key_service(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", properties={"encryption.key-id": "k"}, format_version=3)
    with pytest.raises(UnsupportedFeatureError, match=r"key 'k'; set encryption\.kms-type"):
        table.commit(Append(()))


def test_tables_that_lost_the_property_of_their_key_are_not_written(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", format_version=3)
    table.change(AddEncryptionKey(EncryptedKey("k", b"secret")))
    with pytest.raises(UnsupportedFeatureError, match=r"no property encryption\.key-id"):
        table.commit(Append(()))


_VALUES: list[tuple[IcebergType, st.SearchStrategy[Any]]] = [
    (INT, st.integers(-(2**31), 2**31 - 1)),
    (STRING, st.text(max_size=5)),
    (BINARY, st.binary(max_size=5)),
    (DOUBLE, st.floats()),
    (DecimalType(9, 2), st.decimals(-1000, 1000, places=2)),
]


@pytest.mark.parametrize(("field_type", "values"), _VALUES, ids=str)
@given(data=st.data())
def test_summaries_hold_every_value(
    field_type: IcebergType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    found = data.draw(st.lists(st.none() | values, max_size=6))
    partition_type = StructType((NestedField(1000, "p", field_type),))
    (summary,) = partition_summaries(partition_type, [(value,) for value in found])
    nans = [v for v in found if isinstance(v, float) and math.isnan(v)]
    known = [v for v in found if v is not None and v == v]
    assert summary.contains_null is (None in found)
    assert summary.contains_nan is bool(nans)
    if not known:
        assert summary.lower_bound is summary.upper_bound is None
    else:
        assert from_bytes(field_type, summary.lower_bound or b"") == min(known)
        assert from_bytes(field_type, summary.upper_bound or b"") == max(known)


def test_row_ids_that_another_commit_assigned_are_kept_by_the_next_attempt(tmp_path: Path) -> None:
    """The first attempt merges manifests of version 2, which have no row ids yet."""
    table = create_table(tmp_path / "t", spec=PartitionSpec(0))
    for first in range(4):
        table.commit(FastAppend((table.file([10 * first, 10 * first + 1], None),)))
    longest = max(manifest.manifest_length for manifest in table.manifests())
    table.change(UpgradeFormatVersion(3))
    table.set_properties(commit__manifest__target_size_bytes=int(2.2 * longest))
    other = FastAppend((table.file([100], None),))
    mine = Append((table.file([200], None),))
    assigned: dict[str, int | None] = {}

    def commit_other() -> None:
        table.commit(other)
        assigned.update(_first_row_ids(table))

    operations = InterleavedOperations(table.operations, [commit_other])
    commit_snapshot(operations, mine, CommitOptions())
    found = _first_row_ids(table)
    assert operations.attempts == 2
    assert {path: found[path] for path in assigned} == assigned


def _first_row_ids(table: CommitTable) -> dict[str, int | None]:
    files = (planned.entry.data_file for planned in table.files())
    return {file.file_path: file.first_row_id for file in files}


def test_what_a_snapshot_did_is_not_for_its_properties_to_say(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t")
    properties = {"operation": "nightly-load", "app-id": "a1"}
    done = table.commit(Append((table.file([1]),)), snapshot_properties=properties).snapshot
    assert done.operation == "append"
    assert done.summary["app-id"] == "a1"
