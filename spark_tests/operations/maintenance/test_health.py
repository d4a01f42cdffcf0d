"""Health says what reads of a table cost, and following its advice leaves a healthy table."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import ids_of, new_table, rows
from built.commit_tables import create_table as table_of_files
from built.contents import live_files
from built.delta_tables import BY_DATA, BY_ID, SCHEMA, UNPARTITIONED, DeltaTable
from built.tables import TableBuilder
from effort import examples
from hypothesis import given, strategies as st

from icebergds import Table, TableHealth, load_table
from icebergds.commit.data_files import FastAppend
from icebergds.display import WIDTH
from icebergds.errors import InvalidOptionError, NoSuchSnapshotError
from icebergds.operations.maintenance.health.advice import Advice
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.table_updates import AddPartitionSpec, SetDefaultSpec

_ROUNDS = 4
"""Following advice gives rise to other advice a few times at most."""


def _table(table: DeltaTable) -> Table:
    return load_table(table.table.metadata.location)


def _health(table: DeltaTable, branch: str | None = None) -> TableHealth:
    return _table(table).health(branch)


def _actions(health: TableHealth) -> list[str]:
    return [advice.action for advice in health.advice]


def _follow(table: Table, advice: Advice) -> Any:
    return getattr(table, advice.action)(**advice.arguments)


def _files(location: Path, count: int, **more: Any) -> DeltaTable:
    """A table of ten rows (number, number modulo 2) in each of some files."""
    table = DeltaTable(location, **{"version": 2, **more})
    for number in range(count):
        table.append(*((i, str(i % 2)) for i in range(10 * number, 10 * number + 10)))
    return table


def _upsert(table: DeltaTable, *ids: int) -> None:
    table.keyed("upsert", [table.batch(*((i, str(i % 2)) for i in ids))])


def test_a_table_without_a_snapshot_is_healthy(tmp_path: Path) -> None:
    health = _health(DeltaTable(tmp_path, version=2))
    assert health.is_healthy
    assert (health.files.count, health.deletes.count, health.manifests.count) == (0, 0, 0)
    assert (health.metadata.snapshots, health.metadata.oldest_age_ms) == (0, None)
    assert "the table is healthy" in str(health)


def test_few_small_files_are_counted_and_healthy(tmp_path: Path) -> None:
    health = _health(_files(tmp_path, 2))
    found = live_files(tmp_path)
    assert health.is_healthy
    assert (health.files.count, health.files.rows, health.files.small) == (2, 20, 2)
    assert health.files.size_in_bytes == sum(file.file_size_in_bytes for file in found)
    assert (health.files.large, health.files.to_rewrite) == (0, 0)
    assert health.files.target_size == 512 << 20


def test_files_to_rewrite_are_those_that_the_action_replaces(tmp_path: Path) -> None:
    table = _files(tmp_path, 6)
    health = _health(table)
    assert _actions(health) == ["rewrite_data_files"]
    assert health.advice[0].gain.files == 5
    done = _follow(_table(table), health.advice[0])
    assert done.rewritten_data_files_count == health.files.to_rewrite == 6
    assert done.rewritten_bytes_count == health.files.to_rewrite_bytes
    assert _health(table).is_healthy


def test_large_files_are_advised_to_be_split(tmp_path: Path) -> None:
    table = _files(tmp_path, 1, properties={"write.target-file-size-bytes": "300"})
    health = _health(table)
    assert (health.files.small, health.files.large) == (0, 1)
    assert _actions(health) == ["rewrite_data_files"]
    assert str(health.advice[0].gain) == "large files are split"


def test_a_rewrite_to_as_many_files_is_not_advised(tmp_path: Path) -> None:
    _files(tmp_path / "a", 1)
    size = live_files(tmp_path / "a")[0].file_size_in_bytes
    # Two files of 70 % of the target become two such files again.
    target = {"write.target-file-size-bytes": str(int(size / 0.7))}
    health = _health(_files(tmp_path / "b", 2, properties=target))
    assert health.files.to_rewrite == 2
    assert health.is_healthy


def test_only_metadata_is_read(tmp_path: Path) -> None:
    table = _files(tmp_path, 6)
    _upsert(table, 3)
    shutil.rmtree(tmp_path / "data")
    assert _health(table).files.count == 7


@pytest.mark.parametrize(
    ("version", "kind"), [(2, "position_delete_files"), (3, "deletion_vectors")]
)
def test_deletes_by_position_are_counted(tmp_path: Path, version: int, kind: str) -> None:
    table = _files(tmp_path, 2, version=version)
    table.change_where(lambda row: row["id"] in (1, 2))
    deletes = _health(table).deletes
    assert (getattr(deletes, kind), deletes.count) == (1, 1)
    assert (deletes.deleted_rows, deletes.deleted_share) == (2, 0.1)
    assert (deletes.mean_per_data_file, deletes.most_per_data_file) == (0.5, 1)
    assert deletes.size_in_bytes > 0
    assert deletes.equality_keys == deletes.dangling == 0


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_bytes_read_for_nothing_are_those_of_deleted_rows_and_of_deletes(
    tmp_path: Path, granularity: str
) -> None:
    table = _files(tmp_path, 2)
    table.change_where(lambda row: row["id"] % 10 < 2, granularity=granularity)
    health = _health(table)
    deleted = health.files.size_in_bytes / 5
    overhead = health.deletes.overhead_bytes
    assert overhead == pytest.approx(deleted + health.deletes.size_in_bytes, abs=2)
    assert "for nothing" in str(health)


def test_files_of_equality_deletes_that_apply_are_read_for_nothing(tmp_path: Path) -> None:
    table = _files(tmp_path, 2)
    assert _health(table).deletes.overhead_bytes == 0
    _upsert(table, 3)
    deletes = _health(table).deletes
    assert deletes.overhead_bytes == deletes.size_in_bytes
    # No file has this key.
    _upsert(table, 1000)
    assert _health(table).deletes.overhead_bytes == deletes.overhead_bytes


def test_files_with_many_deleted_rows_are_advised_to_be_rewritten(tmp_path: Path) -> None:
    table = _files(tmp_path, 2, version=3)
    table.change_where(lambda row: row["id"] < 4)
    health = _health(table)
    assert _actions(health) == ["rewrite_data_files"]
    # Two files become one, and the vector is not read any more.
    assert health.advice[0].gain.files == 2
    assert health.advice[0].gain.size_in_bytes == health.deletes.size_in_bytes
    _follow(_table(table), health.advice[0])
    assert _health(table).deletes.count == 0


def test_deletes_that_other_files_need_are_no_gain(tmp_path: Path) -> None:
    many = [(i, "a") for i in range(100, 1000)]
    alone = DeltaTable(tmp_path / "a", version=2)
    alone.append(*many)
    size = live_files(tmp_path / "a")[0].file_size_in_bytes
    table = _files(tmp_path / "b", 5, properties={"write.target-file-size-bytes": str(size)})
    table.append(*many)
    table.change_where(lambda row: row["id"] in (0, 500), granularity="partition")
    health = _health(table)
    assert (health.files.to_rewrite, health.deletes.count) == (5, 1)
    assert health.deletes.mean_per_data_file >= 2 / 6
    assert [advice.gain.size_in_bytes for advice in health.advice] == [0]


def test_equality_deletes_are_counted_and_advised_to_be_converted(tmp_path: Path) -> None:
    table = _files(tmp_path, 3)
    _upsert(table, 1, 11)
    health = _health(table)
    deletes = health.deletes
    assert (deletes.equality_delete_files, deletes.equality_keys) == (1, 2)
    # The keys are outside of the bounds of the third file, and not older than the fourth.
    assert (deletes.data_files_with_keys, deletes.deleted_rows) == (2, 0)
    assert _actions(health) == ["convert_equality_deletes"]
    assert health.advice[0].gain.files == 1
    _follow(_table(table), health.advice[0])
    after = _health(table)
    assert after.is_healthy
    assert (after.deletes.equality_delete_files, after.deletes.deleted_rows) == (0, 2)


def test_dangling_deletes_are_those_that_the_action_removes(tmp_path: Path) -> None:
    table = _files(tmp_path, 1)
    # No file has these keys.
    _upsert(table, 100, 101)
    health = _health(table)
    assert health.deletes.dangling == 1
    assert _actions(health) == ["remove_dangling_deletes"]
    assert _follow(_table(table), health.advice[0]).removed_delete_files_count == 1
    assert _health(table).is_healthy


def test_deletes_of_files_that_are_said_to_have_no_rows_are_kept(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=UNPARTITIONED, format_version=2)
    file = builder.data_file([(1, "a")])
    builder.commit(replace(file, record_count=0))
    builder.commit(builder.position_deletes({file.file_path: [0]}))
    table = load_table(str(tmp_path / "t"))
    assert (table.health().deletes.count, table.health().deletes.dangling) == (1, 0)
    assert table.remove_dangling_deletes().removed_delete_files_count == 0


def test_data_files_with_many_position_delete_files_are_noticed(tmp_path: Path) -> None:
    table = _files(tmp_path, 1)
    table.append(*((i, "x") for i in range(100, 200)))
    for number in range(5):
        table.change_where(
            lambda row, at=number: row["id"] in (100 + at, 150 + at), granularity="partition"
        )
    health = _health(table)
    assert health.deletes.most_per_data_file == 5
    assert _actions(health) == ["rewrite_position_delete_files"]
    assert health.advice[0].gain.files == 4


def test_many_manifests_are_advised_to_be_rewritten(tmp_path: Path) -> None:
    table = table_of_files(tmp_path, properties={"commit.manifest-merge.enabled": "false"})
    for number in range(9):
        table.commit(FastAppend((table.file([number], number),)))
    health = load_table(str(tmp_path)).health()
    manifests = table.manifests()
    assert (health.manifests.count, health.manifests.of_deletes) == (9, 0)
    assert health.manifests.size_in_bytes == sum(m.manifest_length for m in manifests)
    assert health.manifests.target_size == 8 << 20
    assert _actions(health) == ["rewrite_manifests"]
    assert health.advice[0].gain.files == 8
    _follow(load_table(str(tmp_path)), health.advice[0])
    assert load_table(str(tmp_path)).health().is_healthy


def test_manifests_of_a_former_spec_are_named_by_it(tmp_path: Path) -> None:
    table = table_of_files(tmp_path, properties={"commit.manifest-merge.enabled": "false"})
    for number in range(9):
        table.commit(FastAppend((table.file([number], number),)))
    table.change(AddPartitionSpec(PartitionSpec(1, ())), SetDefaultSpec(1))
    advice = load_table(str(tmp_path)).health().advice
    manifests = next(one for one in advice if one.action == "rewrite_manifests")
    assert manifests.call == "table.rewrite_manifests(spec_id=0)"
    _follow(load_table(str(tmp_path)), manifests)
    assert load_table(str(tmp_path)).health().manifests.count == 1


def test_snapshots_that_may_expire_are_those_that_the_action_expires(tmp_path: Path) -> None:
    table = _files(tmp_path, 3, properties={"history.expire.max-snapshot-age-ms": "-1000"})
    health = _health(table)
    assert (health.metadata.snapshots, health.metadata.expirable_snapshots) == (3, 2)
    assert health.metadata.oldest_age_ms is not None
    assert (
        health.metadata.metadata_bytes == Path(table.table.state.metadata_location).stat().st_size
    )
    assert _actions(health) == ["expire_snapshots"]
    assert len(_follow(_table(table), health.advice[0]).expired_snapshot_ids) == 2
    assert _health(table).is_healthy


def test_snapshots_of_tables_that_keep_their_files_do_not_expire(tmp_path: Path) -> None:
    kept = {"history.expire.max-snapshot-age-ms": "-1000", "gc.enabled": "false"}
    health = _health(_files(tmp_path, 3, properties=kept))
    assert health.is_healthy
    assert health.metadata.expirable_snapshots == 0


def test_files_of_former_partition_specs_are_counted(tmp_path: Path) -> None:
    table = _files(tmp_path, 2)
    table.table.change(
        AddPartitionSpec(PartitionSpec(1, (replace(BY_DATA.fields[0], field_id=1001),))),
        SetDefaultSpec(1),
    )
    table.append((100, "a"))
    files = _health(table).files
    assert (files.other_specs, files.in_other_specs) == ((0,), 2)


def test_files_without_the_sort_order_are_counted(tmp_path: Path) -> None:
    table = new_table(tmp_path, sort_by="id")
    table.append(rows(2, 1))
    sorted_files = table.health().files
    assert (sorted_files.unsorted, sorted_files.unsorted_bytes) == (0, 0)
    assert "sort order" not in str(table.health())
    unsorted = new_table(tmp_path / "other")
    unsorted.append(rows(2, 1))
    assert unsorted.health().files.unsorted is None


def test_a_branch_is_looked_at_by_itself(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"commit__manifest_merge__enabled": "false"})
    table.append(rows(0))
    for number in range(1, 9):
        table.append(rows(number), branch="audit", options={"create-branch": "true"})
    assert table.health().is_healthy
    health = table.health("audit")
    assert (health.branch, health.files.count) == ("audit", 9)
    assert [advice.call for advice in health.advice] == [
        "table.rewrite_data_files(branch='audit')",
        "table.rewrite_manifests(branch='audit')",
    ]
    for advice in health.advice:
        _follow(table, advice)
    assert table.health("audit").files.count == 1
    assert table.health("audit").is_healthy
    assert table.health().files.count == 1


def test_an_unknown_branch_is_an_error(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(NoSuchSnapshotError, match="no branch 'audit'"):
        table.health("audit")
    with pytest.raises(InvalidOptionError, match="branch"):
        table.health(1)  # type: ignore[arg-type]


def test_advice_comes_in_the_order_in_which_to_run_it(tmp_path: Path) -> None:
    assert _actions(_health(_ill(tmp_path))) == [
        "convert_equality_deletes",
        "rewrite_data_files",
        "remove_dangling_deletes",
        "rewrite_manifests",
        "expire_snapshots",
    ]


def test_health_fits_a_screen(tmp_path: Path) -> None:
    health = _health(_ill(tmp_path))
    lines = str(health).splitlines()
    assert repr(health) == str(health)
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 40
    for advice in health.advice:
        assert advice.call in str(health)
        assert advice.action in health._repr_html_()


def _ill(location: Path) -> DeltaTable:
    """A table with advice of many kinds."""
    properties = {
        "commit.manifest-merge.enabled": "false",
        "history.expire.max-snapshot-age-ms": "-1000",
    }
    table = _files(location, 10, properties=properties)
    _upsert(table, 3)
    _upsert(table, 1000)
    return table


_CHANGES: list[Callable[[DeltaTable, int], object]] = [
    lambda table, at: table.append(*((100 * at + i, str(i % 2)) for i in range(5))),
    lambda table, at: _upsert(table, at, 100 * at + 1),
    lambda table, at: table.change_where(lambda row: row["id"] % 7 == at % 7),
    lambda table, at: table.change_where(lambda row: row["id"] < 100),
]


@examples(16)
@given(
    version=st.sampled_from([2, 3]),
    spec=st.sampled_from([UNPARTITIONED, BY_ID]),
    changes=st.lists(st.sampled_from(_CHANGES), min_size=1, max_size=10),
)
def test_following_the_advice_leaves_a_healthy_table_of_the_same_rows(
    version: int, spec: PartitionSpec, changes: list[Callable[[DeltaTable, int], object]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        properties = {"commit.manifest-merge.enabled": "false"}
        table = _files(Path(directory), 1, version=version, spec=spec, properties=properties)
        for at, change in enumerate(changes):
            change(table, at)
        before = table.rows()
        for _ in range(_ROUNDS):
            for advice in _health(table).advice:
                _follow(_table(table), advice)
        assert _health(table).is_healthy, str(_health(table))
        assert table.rows() == before
        assert re.search("advice +none", str(_health(table)))


def test_deletes_that_only_newer_files_could_have_count_as_dangling(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    written = (builder.data_file([(i, "a")]) for i in range(3))
    files = sorted(written, key=lambda file: file.file_path)
    first, second, third = files
    builder.commit(first, third)
    builder.commit(builder.position_deletes({first.file_path: [0], third.file_path: [0]}))
    # As a compaction does, whose new file is called so that the deletes may name it.
    builder.commit(second, removed=[first, third], data_sequence_numbers={second.file_path: 1})
    table = load_table(str(builder.location))
    health, before = table.health(), ids_of(table)
    assert (health.deletes.dangling, health.deletes.deleted_rows) == (1, 0)
    (advice,) = (a for a in health.advice if a.action == "remove_dangling_deletes")
    assert advice.gain.files == 1
    assert advice.read_bytes > 0
    assert _follow(table, advice).removed_position_delete_files_count == 1
    assert table.health().deletes.count == 0
    assert ids_of(table) == before
