"""Rewriting position deletes: rows stay as they are, in every snapshot; delete files get fewer."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from built.commit_tables import BY_DAY, SCHEMA
from built.contents import unused_files
from built.delta_tables import BY_DATA, UNPARTITIONED, DeltaTable
from built.files import write_parquet_file
from built.tables import TableBuilder
from effort import examples
from hypothesis import given, strategies as st
from position_delete_tables import ALL, Days, position_deletes_of

from icebergds import RewrittenPositionDeletes, load_table
from icebergds.commit.data_files import Delete
from icebergds.errors import (
    InvalidFilterError,
    InvalidMetadataError,
    InvalidOptionError,
)
from icebergds.expr.sql import parse_filter
from icebergds.spec.manifest import FileContent, FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS, DELETE_ROW
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform
from icebergds.spec.types import StructType
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    SetDefaultSpec,
    UpgradeFormatVersion,
)

_ROW = StructType(SCHEMA.fields)
_TWO = {"min-input-files": "2"}


# --- Any table keeps its rows.

_SPECS = (
    PartitionSpec(1, (PartitionField((1,), 1001, BucketTransform(2), "id_bucket"),)),
    PartitionSpec(1, ()),
)
_WORDS = ("a", "b", None)
_DELETE = st.tuples(
    st.just("delete"),
    st.integers(2, 5),
    st.sampled_from(["file", "partition"]),
    st.sampled_from([FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO]),
)
_STEP = st.one_of(
    _DELETE,
    _DELETE,
    _DELETE,
    st.tuples(st.just("append"), st.integers(1, 6)),
    st.tuples(st.just("update"), st.integers(2, 4)),
    st.tuples(st.just("drop"), st.sampled_from(_WORDS)),
    st.tuples(st.just("evolve")),
    st.tuples(st.just("rewrite"), st.sampled_from([ALL, _TWO])),
)


class _Random:
    """A table that random steps change."""

    def __init__(self, location: Path, spec: PartitionSpec, other: PartitionSpec, **named: str):
        self.location = location
        self.delta = DeltaTable(location, version=2, spec=spec, properties=named)
        self.other = other
        self.next_id = 0

    def take(self, step: tuple[Any, ...]) -> None:
        table = self.delta.table
        match step:
            case "append", count:
                ids = range(self.next_id, self.next_id + count)
                self.next_id += count
                self.delta.append(*((i, _WORDS[i % 3]) for i in ids))
            case "delete", every, granularity, file_format:
                self.delta.change_where(
                    lambda row: row["id"] % every == 1 + self.next_id % 2,
                    granularity=granularity,
                    delete_format=file_format,
                )
            case "update", every:
                self.delta.change_where(
                    lambda row: row["id"] % every == 0, lambda row: {**row, "data": "c"}
                )
            case "drop", word:
                condition = "data IS NULL" if word is None else f"data = '{word}'"
                if table.metadata.spec() == BY_DATA and table.metadata.current_snapshot():
                    table.commit(Delete(parse_filter(condition), case_sensitive=False))
            case ("evolve",):
                if len(table.metadata.partition_specs) == 1:
                    table.change(AddPartitionSpec(self.other), SetDefaultSpec(LAST_ADDED))
            case ("upgrade",):
                table.change(UpgradeFormatVersion(3))
            case "rewrite", options:
                self.rewrite(options)

    def rewrite(self, options: dict[str, str]) -> RewrittenPositionDeletes:
        before, changes = self._snapshots(), self._changes()
        table = load_table(self.location)
        done = table.rewrite_position_delete_files(options=options)
        after = self._snapshots()
        assert after[: len(before)] == before
        assert len(after) == len(before) + bool(done.rewritten_delete_files_count)
        _same_rows(before[-1], after[-1])
        if len(after) > len(before) and self.delta.version >= 3:
            assert all(row["_row_id"] is not None for row in after[-1])
        assert self._changes() == changes
        assert unused_files(table) == set()
        return done

    def _snapshots(self) -> list[list[dict[str, Any]]]:
        return [
            sorted(self.delta.read(snapshot), key=lambda row: (row["_file"], row["_pos"]))
            for snapshot in self.delta.table.metadata.snapshots
        ]

    def _changes(self) -> Counter[Any]:
        columns = ["id", "data", "_change_type", "_change_ordinal"]
        rows = load_table(self.location).changes(columns=columns).to_arrow().to_pylist()
        return Counter(tuple(row.items()) for row in rows)


def _same_rows(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    """Rows are the same; the first commit after an upgrade gives them row ids."""
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        lineage = ("_row_id", "_last_updated_sequence_number")
        unknown = {name for name in lineage if old.get(name) is None}
        assert {k: v for k, v in old.items() if k not in unknown} == {
            k: v for k, v in new.items() if k not in unknown
        }


@examples(40)
@given(
    st.lists(_STEP, min_size=2, max_size=5),
    st.none() | st.lists(_STEP, max_size=2),
    st.sampled_from([UNPARTITIONED, BY_DATA]),
    st.sampled_from(_SPECS),
    st.sampled_from(["file", "partition"]),
    st.sampled_from(["parquet", "orc", "avro"]),
)
def test_rows_of_all_snapshots_stay_as_they_are(
    steps: list[tuple[Any, ...]],
    upgraded: list[tuple[Any, ...]] | None,
    spec: PartitionSpec,
    other: PartitionSpec,
    granularity: str,
    file_format: str,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        properties = {
            "write.delete.granularity": granularity,
            "write.delete.format.default": file_format,
        }
        random = _Random(Path(directory, "t"), spec, other, **properties)
        after = [] if upgraded is None else [("upgrade",), *upgraded]
        for step in (("append", 9), *steps, *after):
            random.take(step)
        random.rewrite(ALL)
        if upgraded is not None:
            kinds = {
                entry.data_file.file_format
                for entry in position_deletes_of(load_table(random.location))
            }
            assert kinds <= {FileFormat.PUFFIN}
            assert random.rewrite(ALL) == RewrittenPositionDeletes()


# --- What becomes of delete files.


def test_small_files_of_a_partition_become_one_sorted_file(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for place in ((1, 2), (0, 1), (1, 0), (0, 1), (0, 0)):
        days.delete(1, place)
    kept = days.delete(2, (0, 0))
    done = days.rewrite(min_input_files="5")
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (5, 1)
    found = days.positions()
    assert found.pop(kept.file_path)
    paths = [days.data[1, at].file_path for at in (0, 1)]
    expected = sorted([(paths[0], 0), (paths[0], 1), (paths[1], 0), (paths[1], 2)])
    assert list(found.values()) == [expected]


def test_counts_of_bytes_are_those_of_the_files(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    old = [days.delete(1, (0, row)) for row in range(2)]
    done = days.rewrite()
    (new,) = position_deletes_of(days.table)
    assert done.rewritten_bytes_count == sum(file.file_size_in_bytes for file in old)
    assert done.added_bytes_count == new.data_file.file_size_in_bytes


def test_new_files_have_the_highest_number_of_those_that_they_replace(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for day in (1, 2):
        for row in range(2):
            days.delete(day, (0, row))
    days.rewrite()
    numbers = {
        e.data_file.partition: e.data_sequence_number for e in position_deletes_of(days.table)
    }
    assert numbers == {(1,): 3, (2,): 5}
    assert days.table.current_snapshot().operation == "replace"  # type: ignore[union-attr]


def test_deletes_of_data_files_that_are_gone_are_dropped(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for row in range(2):
        days.delete(1, (0, row), (1, row))
        days.delete(2, (0, row))
    days.remove(days.data[1, 0], days.data[2, 0])
    assert days.rewrite().added_delete_files_count == 1
    (rows,) = days.positions().values()
    assert {path for path, _ in rows} == {days.data[1, 1].file_path}


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_older_than_a_file_that_came_back_do_not_apply_to_it(
    tmp_path: Path, version: int
) -> None:
    days = Days(tmp_path / "t")
    days.delete(1, (0, 0), (1, 0))
    days.remove(days.data[1, 0])
    days.builder.commit(days.data[1, 0])
    days.delete(1, (0, 1), (1, 1))
    days.builder.upgrade(version)
    assert 100 in days.ids()
    days.rewrite()
    assert 100 in days.ids()


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_another_partition_do_not_apply(tmp_path: Path, version: int) -> None:
    days = Days(tmp_path / "t")
    paths = [days.data[day, 0].file_path for day in (1, 2)]
    for _ in range(2):
        wrong = days.builder.position_deletes({path: [0] for path in paths}, partition=(1,))
        days.add(wrong)
    days.builder.upgrade(version)
    assert 200 in days.ids()
    days.rewrite()
    assert 200 in days.ids()


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_one_of_two_entries_of_a_data_file_are_refused(
    tmp_path: Path, version: int
) -> None:
    """New ones have a higher sequence number: they would delete the rows of both."""
    days = Days(tmp_path / "t")
    days.delete(1, (0, 0), (1, 1))
    days.builder.commit(days.data[1, 0])
    days.delete(1, (1, 2))
    if version == 3:
        days.builder.upgrade(3)
    before = days.ids()
    with pytest.raises(InvalidMetadataError, match=days.data[1, 0].file_path):
        days.table.rewrite_position_delete_files(options=ALL)
    assert days.ids() == before
    assert not unused_files(days.table)


def test_deletes_of_all_entries_of_a_data_file_are_rewritten(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    days.builder.commit(days.data[1, 0])
    days.delete(1, (0, 0), (1, 1))
    days.delete(1, (1, 2))
    assert days.rewrite().rewritten_delete_files_count == 2


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_that_names_a_data_file_of_another_partition_is_refused(
    tmp_path: Path, version: int
) -> None:
    # Readers that look deletes up by path apply it, others do not.
    days = Days(tmp_path / "t", version)
    path = days.data[2, 0].file_path
    days.add(days.builder.position_deletes({path: [0]}, partition=(1,)))
    snapshots = len(days.table.snapshots())
    with pytest.raises(InvalidMetadataError, match=path):
        days.rewrite("day = 1", rewrite_all="true")
    assert len(days.table.snapshots()) == snapshots


def test_granularity_of_files_is_kept(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", write__delete__granularity="file")
    for row in range(2):
        days.delete(1, (0, row), (1, row))
    assert days.rewrite().added_delete_files_count == 2
    named = {entry.data_file.referenced_data_file for entry in position_deletes_of(days.table)}
    assert named == {days.data[1, at].file_path for at in (0, 1)}


def test_files_that_granularity_would_split_again_are_left(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", write__delete__granularity="file")
    for at in (0, 1):
        days.delete(1, (at, 0))
    assert days.rewrite(min_input_files="1") == RewrittenPositionDeletes()
    days.delete(1, (0, 1))
    done = days.rewrite(min_input_files="2")
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 1)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_new_files_have_the_format_of_the_table(tmp_path: Path, file_format: str) -> None:
    days = Days(tmp_path / "t", write__delete__format__default=file_format)
    for row in range(2):
        days.delete(1, (0, row))
    days.rewrite()
    (entry,) = position_deletes_of(days.table)
    assert entry.data_file.file_format == file_format


def test_the_column_row_is_dropped(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    schema = Schema((DELETE_FILE_PATH, DELETE_POS, replace(DELETE_ROW, field_type=_ROW)))
    for row in range(2):
        path = tmp_path / "t" / "data" / f"with-row-{row}.parquet"
        rows = [(days.data[1, 0].file_path, row, (100 + row, 1))]
        written = write_parquet_file(path, schema, rows)
        kind = FileContent.POSITION_DELETES
        days.add(replace(written, content=kind, partition=(1,), spec_id=0))
    days.rewrite()
    (path_of_new,) = days.positions()
    assert pq.read_schema(path_of_new).names == ["file_path", "pos"]


# --- Which files are rewritten.


@pytest.mark.parametrize("version", [1, 2])
def test_without_deletes_nothing_is_committed(tmp_path: Path, version: int) -> None:
    table = TableBuilder(tmp_path / "t", SCHEMA, spec=BY_DAY, format_version=version)
    assert load_table(tmp_path / "t").rewrite_position_delete_files() == RewrittenPositionDeletes()
    table.commit(table.data_file([(1, 1)], partition=(1,)))
    assert load_table(tmp_path / "t").rewrite_position_delete_files() == RewrittenPositionDeletes()
    assert len(load_table(tmp_path / "t").snapshots()) == 1


def test_few_files_are_left_unless_all_are_asked_for(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for row in range(2):
        days.delete(1, (0, row))
    snapshots = len(days.table.snapshots())
    assert days.table.rewrite_position_delete_files() == RewrittenPositionDeletes()
    assert len(days.table.snapshots()) == snapshots
    assert days.rewrite(min_input_files="2").rewritten_delete_files_count == 2
    assert days.rewrite(rewrite_all="true").rewritten_delete_files_count == 1


def test_files_of_the_right_size_are_left(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    size = max(days.delete(1, (0, row)).file_size_in_bytes for row in range(3))
    near = {"target_file_size_bytes": str(size + 1), "min_file_size_bytes": "1"}
    assert days.rewrite(min_input_files="2", **near) == RewrittenPositionDeletes()
    larger = {"target_file_size_bytes": str(20 * size)}
    assert days.rewrite(min_input_files="2", **larger).rewritten_delete_files_count == 3


def test_only_partitions_that_may_match_are_rewritten(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for day in (1, 2):
        for row in range(2):
            days.delete(day, (0, row))
    assert days.rewrite("day = 2 AND id > 0", rewrite_all="true").rewritten_delete_files_count == 2
    counts = Counter(entry.data_file.partition for entry in position_deletes_of(days.table))
    assert counts == {(1,): 2, (2,): 1}


def test_large_partitions_are_rewritten_in_groups(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for at in (0, 1):
        for row in range(2):
            days.delete(1, (at, row))
    done = days.rewrite(rewrite_all="true", max_file_group_input_files="2")
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (4, 2)
    named = [{path for path, _ in rows} for rows in days.positions().values()]
    assert sorted(map(len, named)) == [1, 1]


def test_a_group_above_the_target_size_becomes_several_files(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    sizes = [days.delete(1, (at, row)).file_size_in_bytes for at in (0, 1) for row in range(3)]
    done = days.rewrite(rewrite_all="true", target_file_size_bytes=str(sum(sizes) // 3))
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (6, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min-input-file": "2"}, "did you mean 'min-input-files'"),
        ({"min-input-files": "0"}, "expected a number above 0"),
        ({"min-file-size-bytes": "100", "target-file-size-bytes": "100"}, "must be below"),
        ({"rewrite-job-order": "size"}, "bytes-desc"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    days = Days(tmp_path / "t")
    with pytest.raises(InvalidOptionError, match=message):
        days.table.rewrite_position_delete_files(options=options)


def test_a_condition_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilterError, match="nothing"):
        Days(tmp_path / "t").table.rewrite_position_delete_files("nothing = 1")


def test_deletes_of_a_branch_are_rewritten_there(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    for row in range(2):
        days.delete(1, (0, row))
    days.builder.branch("b", days.builder.metadata.current_snapshot_id)  # type: ignore[arg-type]
    main = days.table.current_snapshot()
    table = days.table
    table.rewrite_position_delete_files(options=ALL, branch="b", snapshot_properties={"by": "me"})
    snapshot = table.metadata.snapshot_by_ref("b")
    assert snapshot is not None
    assert (snapshot.operation, snapshot.summary["by"]) == ("replace", "me")
    assert table.current_snapshot() == main
    with pytest.raises(InvalidOptionError, match="no branch 'c'"):
        table.rewrite_position_delete_files(branch="c")


# --- Version 3.


def test_position_delete_files_become_one_vector_for_each_data_file(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", days=1)
    for row in range(2):
        days.delete(1, (0, row), (1, 0))
    days.builder.upgrade(3)
    done = days.rewrite()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 2)
    entries = position_deletes_of(days.table)
    assert all(entry.data_file.is_deletion_vector for entry in entries)
    counts = {e.data_file.referenced_data_file: e.data_file.record_count for e in entries}
    assert counts == {days.data[1, 0].file_path: 2, days.data[1, 1].file_path: 1}
    assert done.added_bytes_count == sum(e.data_file.content_size_in_bytes or 0 for e in entries)


def test_a_data_file_keeps_the_vector_that_it_has(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", days=1)
    days.delete(1, (0, 0), (1, 0))
    days.builder.upgrade(3)
    vector = days.vector(1, 0, 0, 1)
    assert days.rewrite().added_delete_files_count == 1
    paths = {entry.data_file.file_path for entry in position_deletes_of(days.table)}
    assert vector.file_path in paths
    assert len(paths) == 2


def test_deletes_that_a_vector_does_not_have_do_not_return(tmp_path: Path) -> None:
    # Readers ignore position delete files of a data file with a vector.
    days = Days(tmp_path / "t", days=1)
    days.delete(1, (0, 0))
    days.builder.upgrade(3)
    days.vector(1, 0, 1)
    assert 100 in days.ids()
    done = days.rewrite()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (1, 0)


def test_a_single_left_over_file_is_enough(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", days=1)
    days.delete(1, (0, 0))
    days.builder.upgrade(3)
    table = days.table
    assert table.rewrite_position_delete_files().added_delete_files_count == 1
    assert table.rewrite_position_delete_files(options=ALL) == RewrittenPositionDeletes()


def test_a_vector_older_than_its_data_file_is_refused(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", days=1)
    days.delete(1, (0, 0), (1, 0))
    days.builder.upgrade(3)
    days.vector(1, 0, 0)
    days.remove(days.data[1, 0])
    days.builder.commit(days.data[1, 0])
    days.delete(1, (0, 0))
    with pytest.raises(InvalidMetadataError, match="older than the file"):
        days.rewrite()
