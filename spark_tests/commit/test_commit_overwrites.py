"""What overwrites, deletes and replacements remove, and what they refuse to."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from built.commit_tables import BY_DAY, SCHEMA, CommitTable, create_table, open_table
from built.files import write_parquet_file
from built.replace_files import ReplaceFiles
from built.tables import TableBuilder

from icebergds.commit.base import commit_base
from icebergds.commit.data_files import (
    Append,
    Delete,
    FastAppend,
    Overwrite,
    RewriteRows,
    can_delete_by_metadata,
)
from icebergds.commit.file_selection import these_files
from icebergds.commit.merging import filter_manifests
from icebergds.commit.options import IsolationLevel
from icebergds.commit.replace_partitions import ReplacePartitions
from icebergds.commit.validation import Isolation
from icebergds.commit.workspace import Workspace
from icebergds.encryption.key_metadata import data_key_length
from icebergds.errors import InvalidFilterError, ValidationError
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.spec.manifest import FileContent, ManifestContent, ManifestEntryStatus
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DOUBLE, LONG, NestedField


@pytest.fixture(params=[1, 2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> CommitTable:
    """Days 1 and 2, a commit each, with ids 1 to 3 and 4."""
    table = create_table(tmp_path / "t", format_version=request.param)
    table.commit(Append((table.file([1, 2, 3], 1),)))
    table.commit(Append((table.file([4], 2),)))
    return table


def test_an_overwrite_replaces_what_the_filter_selects(table: CommitTable) -> None:
    table.commit(Overwrite((table.file([9], 1),), parse_filter("day = 1")))
    assert table.ids() == [4, 9]
    assert table.head.operation == "overwrite"
    assert table.head.summary["deleted-records"] == "3"


def test_files_of_a_manifest_that_are_not_removed_stay_as_they_are(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", format_version=3)
    table.commit(Append((table.file([1, 2], 1), table.file([3], 1), table.file([4], 2))))
    before = {entry.data_file.file_path: entry for entry in table.entries()}
    table.commit(Delete(parse_filter("id = 3")))
    after = table.entries()
    assert {entry.data_file.file_path for entry in after} == before.keys()
    for entry in after:
        known = before[entry.data_file.file_path]
        is_gone = known.data_file.record_count == 1 and known.data_file.partition == (1,)
        assert entry == replace(
            known,
            status=ManifestEntryStatus.DELETED if is_gone else ManifestEntryStatus.EXISTING,
            snapshot_id=table.head.snapshot_id if is_gone else known.snapshot_id,
        )
    assert all(entry.data_file.lower_bounds for entry in after)


def test_a_commit_holds_removed_files_without_their_metrics(table: CommitTable) -> None:
    base = commit_base(table.state, "main")
    files = [file.entry.data_file for file in table.files()]
    found = filter_manifests(
        Workspace(base.io, base.metadata),
        base,
        base.manifests_of(ManifestContent.DATA),
        [these_files(base, files)],
        "all",
    )
    removed = [file for of_manifest in found.removed for file in of_manifest]
    assert [file.file_path for file in removed] == [file.file_path for file in files]
    assert not any(file.lower_bounds or file.column_sizes for file in removed)


def test_manifests_that_cannot_match_stay_as_they_are(table: CommitTable) -> None:
    (day_2,) = [m for m in table.manifests() if m.added_rows_count == 1]
    table.commit(Overwrite((), parse_filter("day = 1")))
    assert day_2 in table.manifests()
    assert table.head.summary["manifests-kept"] == "1"


def test_metrics_prove_what_partitions_do_not(table: CommitTable) -> None:
    table.commit(Delete(parse_filter("id <= 3")))
    assert table.ids() == [4]
    assert table.head.operation == "delete"


def test_a_file_that_matches_in_part_is_an_error_that_names_it(table: CommitTable) -> None:
    before = table.head
    (file,) = [f.entry.data_file for f in table.files() if f.entry.data_file.record_count == 3]
    with pytest.raises(ValidationError, match="rows that match id < 3 and") as raised:
        table.commit(Delete(parse_filter("id < 3")))
    assert file.file_path in str(raised.value)
    assert table.head == before
    assert table.left_over() == set()


def test_whether_metadata_is_enough_can_be_asked(table: CommitTable) -> None:
    state = table.state
    assert can_delete_by_metadata(state, parse_filter("day = 1"))
    assert can_delete_by_metadata(state, parse_filter("id > 3"))
    assert can_delete_by_metadata(state, parse_filter("id > 100"))
    assert not can_delete_by_metadata(state, parse_filter("id >= 3"))


def test_a_filter_for_all_rows_empties_the_table(table: CommitTable) -> None:
    table.commit(Overwrite((table.file([9], 1),), TRUE))
    assert table.ids() == [9]
    table.commit(Delete(TRUE))
    assert table.paths() == set()
    assert table.head.summary["total-records"] == "0"
    table.commit(Append((table.file([5], 1),)))
    assert table.ids() == [5]
    assert len(table.manifests()) == 1


def test_a_filter_that_does_not_fit_is_refused(table: CommitTable) -> None:
    with pytest.raises(InvalidFilterError):
        table.commit(Delete(parse_filter("nope = 1")))


def test_a_delete_of_nothing_removes_nothing(table: CommitTable) -> None:
    table.commit(Delete(parse_filter("day = 7")))
    assert table.ids() == [1, 2, 3, 4]


def test_partitions_of_new_files_are_replaced(table: CommitTable) -> None:
    table.commit(Append((table.file([5], None),)))
    table.commit(ReplacePartitions((table.file([9], 2), table.file([8], None))))
    assert table.ids() == [1, 2, 3, 8, 9]
    assert table.head.summary["replace-partitions"] == "true"


def test_no_files_replace_no_partitions(table: CommitTable) -> None:
    table.commit(ReplacePartitions(()))
    assert table.ids() == [1, 2, 3, 4]


def test_files_without_partition_replace_the_whole_table(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", spec=PartitionSpec())
    table.commit(Append((table.file([1]), table.file([2]))))
    table.commit(ReplacePartitions((table.file([3]),)))
    assert table.ids() == [3]


def test_partitions_of_nan_and_of_both_zeros_are_told_apart(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "x", DOUBLE)))
    spec = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "x"),))
    table = create_table(tmp_path / "t", spec=spec, schema=schema)

    def file(i: int, x: float) -> object:
        path, length = tmp_path / f"t/data/{i}.parquet", data_key_length(table.metadata.properties)
        written = write_parquet_file(path, schema, [(i, x)], key_length=length)
        return replace(written, partition=(x,))

    first = tuple(file(i, x) for i, x in enumerate((math.nan, 0.0, -0.0, 1.0)))
    table.commit(Append(first))  # type: ignore[arg-type]
    table.commit(ReplacePartitions((file(8, float("nan")), file(9, -0.0))))  # type: ignore[arg-type]
    assert table.ids() == [1, 3, 8, 9]


# Replacing files.


def _compacted(table: CommitTable) -> ReplaceFiles:
    removed = tuple(f.entry.data_file for f in table.files())
    return ReplaceFiles(removed, (table.file([1, 2, 3, 4], 1),), table.head.snapshot_id)


def test_files_are_replaced_by_others_of_the_same_rows(table: CommitTable) -> None:
    table.commit(_compacted(table))
    assert table.ids() == [1, 2, 3, 4]
    assert table.head.operation == "replace"
    assert len(table.paths()) == 1


def test_replaced_files_must_be_there(table: CommitTable) -> None:
    action = _compacted(table)
    table.commit(Delete(parse_filter("day = 2")))
    with pytest.raises(ValidationError, match="1 of the files to replace are not in branch"):
        table.commit(action)
    assert table.ids() == [1, 2, 3]


def test_a_file_that_is_listed_several_times_is_not_replaced(table: CommitTable) -> None:
    """All of its entries would go, although its rows were read only once."""
    (file,) = [f.entry.data_file for f in table.files() if f.entry.data_file.record_count == 3]
    table.commit(Append((file,)))
    new, head = table.file([1, 2], 1), table.head.snapshot_id
    for action in (
        ReplaceFiles((file,), (new,), head),
        RewriteRows((file,), (new,), Isolation(IsolationLevel.SNAPSHOT, head)),
    ):
        with pytest.raises(ValidationError, match="are listed several times"):
            table.commit(action)
    assert table.ids() == [1, 1, 2, 2, 3, 3, 4]


def test_rows_cannot_be_replaced_by_more_rows(table: CommitTable) -> None:
    (file,) = [f.entry.data_file for f in table.files() if f.entry.data_file.record_count == 1]
    with pytest.raises(ValidationError, match="2 rows cannot replace files with 1"):
        table.commit(ReplaceFiles((file,), (table.file([4, 4], 2),), table.head.snapshot_id))


def test_appends_go_together_with_a_replacement(table: CommitTable) -> None:
    action = _compacted(table)
    table.commit(Append((table.file([5], 1),)))
    table.commit(action)
    assert table.ids() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("table", [2, 3], indirect=True)
def test_replaced_rows_can_keep_their_sequence_number(table: CommitTable) -> None:
    number = table.head.sequence_number
    table.commit(Append((table.file([5], 1),)))
    first = [f for f in table.files() if f.entry.data_sequence_number <= number]
    action = ReplaceFiles(
        tuple(f.entry.data_file for f in first),
        (table.file([1, 2, 3, 4], 1),),
        table.head.snapshot_id,
        number,
    )
    table.commit(action)
    numbers = {f.entry.data_file.record_count: f.entry.data_sequence_number for f in table.files()}
    assert numbers == {4: number, 1: number + 1}
    (added,) = [e for e in table.entries() if e.snapshot_id == table.head.snapshot_id][:1]
    assert added.file_sequence_number == table.head.sequence_number
    for manifest in table.manifests():
        if manifest.added_snapshot_id == table.head.snapshot_id and manifest.added_files_count:
            assert manifest.min_sequence_number == number


# Delete files.


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t", SCHEMA, spec=BY_DAY)


def _deletes(table: CommitTable) -> set[str]:
    return {
        entry.data_file.file_path
        for entry in table.entries()
        if entry.data_file.content is not FileContent.DATA and entry.status.name != "DELETED"
    }


def test_delete_files_go_with_their_partition(builder: TableBuilder) -> None:
    builder.commit(builder.data_file([(1, 1)], partition=(1,)))
    builder.commit(builder.data_file([(2, 2)], partition=(2,)))
    first = builder.equality_deletes(["id"], [(7,)], partition=(1,))
    second = builder.equality_deletes(["id"], [(7,)], partition=(2,))
    builder.commit(first, second, operation="overwrite")
    table = open_table(builder.location)
    table.commit(Delete(parse_filter("day = 1")))
    assert _deletes(table) == {second.file_path}
    assert table.head.summary["removed-equality-delete-files"] == "1"


def test_delete_files_that_may_apply_to_other_rows_stay(builder: TableBuilder) -> None:
    """The delete of id 7 had `day` 1 stored beside its key, and reaches day 2 nevertheless."""
    builder.evolve(spec=PartitionSpec(1))
    builder.commit(
        builder.data_file([(1, 1)], partition=(1,), spec_id=0),
        builder.data_file([(7, 2)], partition=(2,), spec_id=0),
    )
    deletes = builder.equality_deletes(["id", "day"], [(7, 1)], equality_ids=[1])
    builder.commit(deletes, operation="overwrite")
    table = open_table(builder.location)
    table.commit(Delete(parse_filter("day = 1")))
    assert _deletes(table) == {deletes.file_path}


def test_deletes_older_than_all_data_are_dropped(builder: TableBuilder) -> None:
    builder.commit(builder.data_file([(1, 1)], partition=(1,)))
    builder.commit(builder.equality_deletes(["id"], [(1,)], partition=(1,)), operation="delete")
    builder.commit(builder.data_file([(2, 2)], partition=(2,)))
    table = open_table(builder.location)
    table.commit(FastAppend((table.file([3], 2),)))
    assert len(_deletes(table)) == 1
    (old,) = [f.entry.data_file for f in table.files() if f.entry.data_sequence_number == 1]
    table.commit(ReplaceFiles((old,), (table.file([1], 1),), table.head.snapshot_id))
    assert _deletes(table) == set()


def test_deletes_as_old_as_some_data_are_kept(builder: TableBuilder) -> None:
    data = builder.data_file([(1, 1), (2, 1)], partition=(1,))
    builder.commit(data, builder.position_deletes({data.file_path: [0]}, partition=(1,)))
    table = open_table(builder.location)
    table.commit(Append((table.file([3], 1),)))
    assert len(_deletes(table)) == 1


def test_only_the_older_deletes_of_a_manifest_are_dropped(builder: TableBuilder) -> None:
    builder.commit(builder.data_file([(1, 1)], partition=(1,)))
    builder.commit(builder.equality_deletes(["id"], [(1,)], partition=(1,)), operation="delete")
    data = builder.data_file([(2, 2), (3, 2)], partition=(2,))
    positions = builder.position_deletes({data.file_path: [0]}, partition=(2,))
    builder.commit(data, positions, operation="overwrite")
    table = open_table(builder.location)
    table.set_properties(commit__manifest__min_count_to_merge=2)
    table.commit(Append(()))
    (deletes,) = [m for m in table.manifests() if m.content is ManifestContent.DELETES]
    assert deletes.existing_files_count == 2
    table.commit(Delete(parse_filter("day = 1")))
    assert _deletes(table) == {positions.file_path}


def test_deletion_vectors_go_with_their_data_file(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=BY_DAY, format_version=3)
    first = builder.data_file([(1, 1), (2, 1)], partition=(1,))
    second = builder.data_file([(3, 1), (4, 1)], partition=(1,))
    builder.commit(first, second)
    vectors = builder.deletion_vectors([(first, [0]), (second, [1])])
    builder.commit(*vectors, operation="delete")
    table = open_table(builder.location)
    table.commit(ReplaceFiles((first,), (table.file([2], 1),), table.head.snapshot_id))
    (left,) = [f for f in table.files() if f.deletes.position_deletes]
    assert left.entry.data_file.file_path == second.file_path
    assert table.head.summary["removed-dvs"] == "1"
    removed = int(table.head.summary["removed-files-size"])
    assert removed == first.file_size_in_bytes + (vectors[0].content_size_in_bytes or 0)


def test_deletion_vectors_of_one_file_are_removed_one_by_one(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=BY_DAY, format_version=3)
    first = builder.data_file([(1, 1), (2, 1)], partition=(1,))
    second = builder.data_file([(3, 1), (4, 1)], partition=(1,))
    builder.commit(first, second)
    vectors = builder.deletion_vectors([(first, [0]), (second, [1])])
    builder.commit(*vectors, operation="delete")
    table = open_table(builder.location)
    table.commit(ReplaceFiles((vectors[0],), (), table.head.snapshot_id))
    (left,) = [f for f in table.files() if f.deletes.position_deletes]
    assert left.entry.data_file.file_path == second.file_path


def test_a_filter_for_all_rows_removes_deletes_of_every_spec(builder: TableBuilder) -> None:
    builder.commit(builder.data_file([(1, 1)], partition=(1,)))
    builder.commit(builder.equality_deletes(["id"], [(1,)], partition=(1,)), operation="delete")
    table = open_table(builder.location)
    table.commit(Overwrite((table.file([3], 1),), TRUE))
    assert _deletes(table) == set()
    assert table.ids() == [3]


def test_version_1_lists_without_counts_are_completed(tmp_path: Path) -> None:
    from icebergds.formats.manifests.manifest_list import write_manifest_list

    table = create_table(tmp_path / "t", format_version=1)
    table.commit(Append((table.file([1, 2], 1),)))
    names = ("added", "existing", "deleted")
    counts = {f"{name}_{what}_count": None for name in names for what in ("files", "rows")}
    bare = [replace(manifest, **counts) for manifest in table.manifests()]  # type: ignore[arg-type]
    data = write_manifest_list(bare, format_version=1, snapshot_id=table.head.snapshot_id)
    Path(table.head.manifest_list or "").write_bytes(data)
    table.commit(FastAppend((table.file([3], 1),)))
    assert sorted(m.added_rows_count or 0 for m in table.manifests()) == [1, 2]
    assert table.ids() == [1, 2, 3]
