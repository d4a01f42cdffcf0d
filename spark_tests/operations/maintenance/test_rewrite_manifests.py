"""Rewriting manifests changes no entry, and leaves few manifests, clustered by partition."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest
from built.api_tables import catalog_in, create_table, ids_of, rows
from built.commit_tables import CommitTable, create_table as table_of_files
from built.delta_tables import BY_DATA, DeltaTable
from built.replace_files import ReplaceFiles
from commit.interleaving import InterleavedOperations

from icebergds.api.table import load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit import cluster_manifests
from icebergds.commit.data_files import Delete, FastAppend
from icebergds.commit.operations import TableOperations
from icebergds.errors import InvalidOptionError, MissingFileError
from icebergds.expr.sql import parse_filter
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.operations.maintenance.rewrite_manifests import (
    RewrittenManifests,
    rewrite_manifests,
)
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    SetDefaultSpec,
    UpgradeFormatVersion,
)

_BY_BUCKET_AND_DAY = PartitionSpec(
    0,
    (
        PartitionField((1,), 1000, BucketTransform(4), "id_bucket"),
        PartitionField((2,), 1001, IdentityTransform(), "day"),
    ),
)


def _rewrite(
    table: CommitTable, operations: TableOperations | None = None, **arguments: Any
) -> RewrittenManifests:
    operations = operations or table.operations
    loaded = LoadedTable(TableAddress(str(table.location)), operations, table.state)
    return rewrite_manifests(loaded, **arguments)[0]


def _appended(table: CommitTable, *days: int | None) -> CommitTable:
    """Each day in a manifest of its own."""
    for number, day in enumerate(days):
        table.commit(FastAppend((table.file([number], day),)))
    return table


def _fields(entry: ManifestEntry) -> Any:
    """All of an entry but its status."""
    return replace(entry, status=ManifestEntryStatus.EXISTING)


def _contents(table: CommitTable) -> dict[str, Any]:
    live = (e for e in table.entries() if e.status is not ManifestEntryStatus.DELETED)
    return {entry.data_file.file_path: _fields(entry) for entry in live}


def _row_ids(table: CommitTable, snapshot: Snapshot) -> dict[str, int | None]:
    entries = table.entries(snapshot)
    return {entry.data_file.file_path: entry.data_file.first_row_id for entry in entries}


def _days(table: CommitTable) -> list[list[int]]:
    """The days in each manifest."""
    metadata = table.metadata
    return [
        [
            entry.data_file.partition[-1]
            for entry in read_manifest(
                table.state.io, manifest, metadata.specs_by_id, metadata.schema()
            )
        ]
        for manifest in table.manifests()
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_many_manifests_become_one_with_the_same_entries(tmp_path: Path, version: int) -> None:
    table = _appended(table_of_files(tmp_path / "t", format_version=version), 3, 1, None, 2)
    before = _contents(table)
    assert _rewrite(table) == RewrittenManifests(4, 1)
    assert _contents(table) == before
    assert all(entry.status is ManifestEntryStatus.EXISTING for entry in table.entries())
    assert len(table.manifests()) == 1
    assert table.left_over() == set()


def test_entries_are_clustered_by_partition(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 3, 1, 2, 1, 3, 2)
    # As many bytes as a manifest of two entries has besides its header.
    table.set_properties(commit__manifest__target_size_bytes=400)
    added = _rewrite(table).added_manifests_count
    assert added > 1
    days = [day for manifest in _days(table) for day in manifest]
    assert days == [1, 1, 2, 2, 3, 3]
    bounds = [manifest.partitions[0] for manifest in table.manifests()]
    ends = [(found[0], found[-1]) for found in _days(table)]
    assert [(b.lower_bound, b.upper_bound) for b in bounds] == [
        (low.to_bytes(4, "little"), high.to_bytes(4, "little")) for low, high in ends
    ]


def test_sort_by_names_the_fields_to_cluster_by_first(tmp_path: Path) -> None:
    table = table_of_files(tmp_path / "t", spec=_BY_BUCKET_AND_DAY)
    for bucket, day in [(0, 2), (1, 1), (0, 1), (1, 2)]:
        file = replace(table.file([bucket], day), partition=(bucket, day))
        table.commit(FastAppend((file,)))
    _rewrite(table, sort_by="day")
    assert [e.data_file.partition for e in table.entries()] == [(0, 1), (1, 1), (0, 2), (1, 2)]


def test_the_order_within_a_partition_is_that_of_the_list(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 1, 1)
    before = [entry.data_file.file_path for entry in table.entries()]
    _rewrite(table)
    assert [entry.data_file.file_path for entry in table.entries()] == before


def test_one_small_manifest_is_left_as_it_is(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1)
    assert _rewrite(table) == RewrittenManifests(0, 0)
    assert len(table.metadata.snapshots) == 1


def test_a_table_without_snapshots_is_left_as_it_is(tmp_path: Path) -> None:
    table = table_of_files(tmp_path / "t")
    assert _rewrite(table) == RewrittenManifests(0, 0)
    assert not table.metadata.snapshots


def test_one_large_manifest_is_split(tmp_path: Path) -> None:
    table = table_of_files(tmp_path / "t")
    table.commit(FastAppend(tuple(table.file([day], day) for day in (2, 1, 2, 1))))
    table.set_properties(commit__manifest__target_size_bytes=150)
    counts = _rewrite(table)
    assert counts.rewritten_manifests_count == 1
    assert counts.added_manifests_count > 1


def test_a_manifest_that_cannot_be_split_is_left_as_it_is(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1)
    table.set_properties(commit__manifest__target_size_bytes=1)
    assert _rewrite(table) == RewrittenManifests(0, 0)
    assert table.left_over() == set()


def test_removed_files_are_no_longer_listed(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 2, 3)
    table.commit(Delete(parse_filter("day = 2")))
    _rewrite(table)
    assert _days(table) == [[1, 3]]


def test_manifests_of_other_specs_stay(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 2)
    table.change(AddPartitionSpec(PartitionSpec()), SetDefaultSpec(LAST_ADDED))
    _appended(table, 3, 4, 5)
    old = [m.manifest_path for m in table.manifests() if m.partition_spec_id == 0]
    assert _rewrite(table) == RewrittenManifests(3, 1)
    assert [m.manifest_path for m in table.manifests() if m.partition_spec_id == 0] == old
    assert _rewrite(table, spec_id=0) == RewrittenManifests(2, 1)


def test_delete_manifests_are_rewritten_by_themselves(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", version=2)
    table.append((1, "a"), (2, "b"))
    for key in (1, 2):
        table.keyed("upsert", [table.batch((key, "new"))])
    before = table.rows()
    assert _rewrite(table.table) == RewrittenManifests(5, 2)
    contents = [manifest.content for manifest in table.table.manifests()]
    assert contents == [ManifestContent.DATA, ManifestContent.DELETES]
    assert table.rows() == before


def test_the_snapshot_says_what_was_rewritten_and_keeps_the_totals(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 2, 3)
    before = table.head.summary
    _rewrite(table, snapshot_properties={"by": "night"})
    summary = table.head.summary
    assert table.head.operation == "replace"
    assert {key: summary[key] for key in before if key.startswith("total-")} == {
        key: value for key, value in before.items() if key.startswith("total-")
    }
    assert {key: value for key, value in summary.items() if not key.startswith("total-")} == {
        "engine-name": "icebergds",
        "operation": "replace",
        "by": "night",
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "3",
        "entries-processed": "3",
    }


def test_a_branch_is_rewritten_and_main_is_not(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1)
    main = table.head.snapshot_id
    table.commit(FastAppend((table.file([7], 2),)), "side")
    assert _rewrite(table, branch="side") == RewrittenManifests(2, 1)
    assert table.head.snapshot_id == main
    assert table.ids("side") == [0, 7]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"branch": "mian"}, "no branch 'mian', but main; did you mean main?"),
        ({"spec_id": 5}, "spec_id = 5: table db.t has the partition specs 0"),
        ({"spec_id": "a"}, "spec_id = 'a' is of type str, expected a whole number"),
        ({"sort_by": ["dya"]}, "no field 'dya'; did you mean 'day'? (its fields: day)"),
        ({"sort_by": 4}, "sort_by = 4 is of type int"),
        ({"snapshot_properties": "x"}, "snapshot_properties is of type str"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, arguments: dict[str, Any], expected: str
) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 2)
    with pytest.raises(InvalidOptionError) as raised:
        _rewrite(table, **arguments)
    assert expected in str(raised.value)
    assert len(table.metadata.snapshots) == 2


@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("version", [2, 3])
def test_entries_of_many_manifests_are_read_in_parts(
    tmp_path: Path, version: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _appended(
        table_of_files(tmp_path / "t", format_version=version), *(d % 4 for d in range(12))
    )
    table.set_properties(commit__manifest__target_size_bytes=800)
    before = _contents(table)
    monkeypatch.setattr(cluster_manifests, "_KEPT_BYTES", kept)
    monkeypatch.setattr(cluster_manifests, "_BYTES_AT_ONCE", 40_000)
    monkeypatch.setattr(cluster_manifests, "_BYTES_TOGETHER", 20_000)
    monkeypatch.setattr(cluster_manifests, "_ENTRIES_AT_ONCE", 1)
    monkeypatch.setattr(cluster_manifests, "_BATCH_BYTES", 1000)
    assert _rewrite(table).added_manifests_count > 1
    assert _contents(table) == before
    assert [day for manifest in _days(table) for day in sorted(manifest)] == sorted(
        d % 4 for d in range(12)
    )
    counts = [(m.existing_files_count, m.existing_rows_count) for m in table.manifests()]
    assert counts == [(len(days), len(days)) for days in _days(table)]


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_large_manifests_are_decoded_few_at_a_time(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _appended(table_of_files(tmp_path / "t"), *range(6))
    largest = max(manifest.manifest_length for manifest in table.manifests())
    monkeypatch.setattr(cluster_manifests, "_KEPT_BYTES", kept)
    monkeypatch.setattr(cluster_manifests, "_BYTES_AT_ONCE", 2 * largest)
    monkeypatch.setattr(cluster_manifests, "_BYTES_TOGETHER", largest)
    decoding: list[Any] = []
    most = 0
    read_together = cluster_manifests.read_together

    def slowly(base: Any, manifests: Any, stats_ids: Any) -> Any:
        nonlocal most
        decoding.append(manifests)
        most = max(most, len(decoding))
        time.sleep(0.01)
        found = read_together(base, manifests, stats_ids)
        decoding.remove(manifests)
        return found

    monkeypatch.setattr(cluster_manifests, "read_together", slowly)
    before = _contents(table)
    _rewrite(table)
    assert most == 2
    assert _contents(table) == before


def test_rows_keep_their_ids_and_update_numbers(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", version=3, spec=BY_DATA)
    table.append((1, "a"), (2, "b"), (3, "a"))
    table.append((4, "b"), (5, "a"))
    table.change_where(lambda row: row["id"] == 2, lambda row: {**row, "data": "c"})
    table.change_where(lambda row: row["id"] == 1)
    before = [table.read(snapshot) for snapshot in table.table.metadata.snapshots]
    _rewrite(table.table)
    after = [table.read(snapshot) for snapshot in table.table.metadata.snapshots]
    key = str
    assert [sorted(found, key=key) for found in after[:-1]] == [
        sorted(found, key=key) for found in before
    ]
    assert sorted(after[-1], key=key) == sorted(before[-1], key=key)
    table.append((6, "a"))
    ids = [row["_row_id"] for row in table.read()]
    assert len(set(ids)) == len(ids)


def test_files_of_an_upgraded_table_are_assigned_row_ids_once(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 2, 1)
    table.change(UpgradeFormatVersion(3))
    _rewrite(table)
    first = {e.data_file.file_path: e.data_file.first_row_id for e in table.entries()}
    assert sorted(first.values()) == [0, 1]
    _appended(table, 1, 2)
    _rewrite(table)
    second = {e.data_file.file_path: e.data_file.first_row_id for e in table.entries()}
    assert {path: second[path] for path in first} == first
    assert len(set(second.values())) == 4


def test_fastavro_reads_the_manifest_by_the_schema_of_the_specification(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t", format_version=3), 1, None)
    before = _contents(table)
    _rewrite(table)
    (manifest,) = table.manifests()
    reader = fastavro.reader(io.BytesIO(Path(manifest.manifest_path).read_bytes()))
    records: list[Any] = list(reader)
    fastavro.validation.validate_many(records, reader.writer_schema)
    assert reader.metadata["content"] == "data"
    assert {
        record["data_file"]["file_path"]: (
            record["status"],
            record["snapshot_id"],
            record["sequence_number"],
            record["file_sequence_number"],
            record["data_file"]["first_row_id"],
        )
        for record in records
    } == {
        path: (
            0,
            entry.snapshot_id,
            entry.data_sequence_number,
            entry.file_sequence_number,
            entry.data_file.first_row_id,
        )
        for path, entry in before.items()
    }


class TestConcurrentCommits:
    def _rewrite_among(
        self, table: CommitTable, *others: Callable[[], object]
    ) -> RewrittenManifests:
        return _rewrite(table, InterleavedOperations(table.operations, others))

    def test_manifests_that_others_add_stay(self, tmp_path: Path) -> None:
        table = _appended(table_of_files(tmp_path / "t", format_version=3), 1, 2)
        counts = self._rewrite_among(
            table,
            lambda: table.commit(FastAppend((table.file([8], 3),))),
            lambda: table.commit(FastAppend((table.file([9], 3),))),
        )
        assert counts == RewrittenManifests(2, 1)
        assert len(table.manifests()) == 3
        assert table.ids() == [0, 1, 8, 9]
        assert table.left_over() == set()
        assert len({e.data_file.first_row_id for e in table.entries()}) == 4

    def test_row_ids_that_others_assign_stay(self, tmp_path: Path) -> None:
        table = _appended(table_of_files(tmp_path / "t"), 1, 2)
        table.change(UpgradeFormatVersion(3))
        self._rewrite_among(table, lambda: table.commit(FastAppend((table.file([8], 3),))))
        *_, appended, rewritten = table.metadata.snapshots
        assert appended.operation == "append"
        assert _row_ids(table, rewritten) == _row_ids(table, appended)

    def test_entries_are_written_once_for_all_attempts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = _appended(table_of_files(tmp_path / "t"), 1, 2)
        monkeypatch.setattr(cluster_manifests, "_BATCH_BYTES", 1)
        read: list[str] = []
        read_together = cluster_manifests.read_together

        def recorded(base: Any, manifests: Any, stats_ids: Any) -> Any:
            read.extend(manifest.manifest_path for manifest in manifests)
            return read_together(base, manifests, stats_ids)

        monkeypatch.setattr(cluster_manifests, "read_together", recorded)
        self._rewrite_among(table, lambda: table.commit(FastAppend((table.file([8], 3),))))
        assert len(read) == 2

    def test_a_file_that_others_remove_stays_removed(self, tmp_path: Path) -> None:
        table = _appended(table_of_files(tmp_path / "t"), 1, 2, 3)
        self._rewrite_among(table, lambda: table.commit(Delete(parse_filter("day = 2"))))
        assert table.ids() == [0, 2]
        assert _days(table) == [[1, 3]]
        assert table.left_over() == set()

    def test_a_compaction_in_between_is_kept(self, tmp_path: Path) -> None:
        table = _appended(table_of_files(tmp_path / "t"), 1, 1)
        old = tuple(planned.entry.data_file for planned in table.files())
        read_at = table.head

        def compact() -> None:
            new = (table.file([0, 1], 1),)
            table.commit(ReplaceFiles(old, new, read_at.snapshot_id, read_at.sequence_number))

        self._rewrite_among(table, compact)
        assert table.ids() == [0, 1]
        (file,) = table.files()
        assert file.entry.data_sequence_number == read_at.sequence_number

    def test_of_two_rewrites_the_second_finds_nothing_to_do(self, tmp_path: Path) -> None:
        table = _appended(table_of_files(tmp_path / "t"), 1, 2)
        counts = self._rewrite_among(table, lambda: _rewrite(table))
        assert counts == RewrittenManifests(0, 0)
        assert len(table.metadata.snapshots) == 3
        assert table.left_over() == set()

    def test_an_upgrade_in_between_is_heeded(self, tmp_path: Path) -> None:
        table = _appended(table_of_files(tmp_path / "t", format_version=1), 1, 2)
        others = [
            lambda: table.change(UpgradeFormatVersion(2)),
            lambda: table.commit(FastAppend((table.file([8], 3),))),
        ]
        self._rewrite_among(table, *(lambda: [other() for other in others],))
        new = [m for m in table.manifests() if m.existing_files_count]
        (manifest,) = new
        header = fastavro.reader(io.BytesIO(Path(manifest.manifest_path).read_bytes())).metadata
        assert header["format-version"] == "2"
        assert table.ids() == [0, 1, 8]


def test_a_missing_manifest_is_an_error_that_changes_nothing(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 2)
    gone = table.manifests()[0].manifest_path
    Path(gone).unlink()
    with pytest.raises(MissingFileError, match=Path(gone).name):
        _rewrite(table)
    assert len(table.metadata.snapshots) == 2
    assert table.left_over() == set()


@pytest.mark.parametrize("catalog", ["files", "sqlite"])
def test_the_table_itself_has_the_rewritten_state(tmp_path: Path, catalog: str) -> None:
    uri = f"sqlite:///{tmp_path / 'c.db'}" if catalog == "sqlite" else None
    table = create_table(catalog_in(tmp_path, uri), partition_by="day")
    for day in (1, 2, 1):
        table.append(rows(day, day=day))
    counts = table.rewrite_manifests(sort_by=["day"], snapshot_properties={"by": "test"})
    assert counts == RewrittenManifests(3, 1)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.operation == "replace"
    assert snapshot.summary["by"] == "test"
    assert ids_of(table) == [1, 1, 2]


def test_a_table_loaded_from_a_metadata_file_is_refused(tmp_path: Path) -> None:
    table = _appended(table_of_files(tmp_path / "t"), 1, 2)
    with pytest.raises(InvalidOptionError):
        load_table(table.state.metadata_location).rewrite_manifests()
