"""What change feeds and reads of appended rows return, for every kind of commit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder

from icebergds import load_table
from icebergds.api.table import Table
from icebergds.errors import InvalidDataError, InvalidOptionError, NoSuchSnapshotError
from icebergds.operations.read.options import parse_load_options
from icebergds.operations.read.snapshot_read import make_read_plan, plan_task_groups, resolve_read
from icebergds.scan.tasks import ChangelogTaskGroup, ScanTaskGroup
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))
_BY_ID = PartitionSpec(1, (PartitionField((1,), 1000, IdentityTransform(), "id"),))
_Changes = list[tuple[Any, ...]]


@pytest.fixture
def built(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t", _SCHEMA)


def test_appended_rows_are_inserted(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a")]))
    built.commit(built.data_file([(2, "b"), (2, "b")]))
    assert _feed(built) == [(0, "INSERT", 1, "a"), *[(1, "INSERT", 2, "b")] * 2]
    assert _feed(built, 1001) == [(0, "INSERT", 2, "b")] * 2
    assert _feed(built, 1001, 1001) == []
    assert _feed(built, None, 1001) == [(0, "INSERT", 1, "a")]


def test_rows_say_which_commit_changed_them(built: TableBuilder) -> None:
    ids = [built.commit(built.data_file([(i, "x")])) for i in range(3)]
    found = _table(built).changes(ids[0]).to_arrow().to_pylist()
    assert [(r["_change_ordinal"], r["_commit_snapshot_id"]) for r in found] == [
        (0, ids[1]),
        (1, ids[2]),
    ]


def test_rows_of_removed_files_are_deleted_but_for_those_that_were_already(
    built: TableBuilder,
) -> None:
    file = built.data_file([(1, "a"), (2, "b")])
    built.commit(file)
    built.commit(built.position_deletes({file.file_path: [0]}), operation="delete")
    built.commit(removed=[file], operation="delete")
    assert _feed(built, 1001) == [(0, "DELETE", 1, "a"), (1, "DELETE", 2, "b")]


def test_rows_that_copy_on_write_carries_over_did_not_change(built: TableBuilder) -> None:
    file = built.data_file([(1, "a"), (1, "a"), (2, "b"), (3, "c")])
    built.commit(file)
    new = built.data_file([(3, "c"), (1, "a"), (2, "B")])
    built.commit(new, removed=[file], operation="overwrite")
    assert _feed(built, 1001) == [
        (0, "DELETE", 1, "a"),
        (0, "DELETE", 2, "b"),
        (0, "INSERT", 2, "B"),
    ]


def test_equality_deletes_delete_the_rows_that_they_meet(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a"), (2, "b")]), built.data_file([(1, "c"), (3, None)]))
    built.commit(built.equality_deletes(["id"], [(1,), (3,), (9,)]), operation="delete")
    assert _feed(built, 1001) == [
        (0, "DELETE", 1, "a"),
        (0, "DELETE", 1, "c"),
        (0, "DELETE", 3, None),
    ]


def test_an_upsert_deletes_the_old_row_and_inserts_the_new_one(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a"), (2, "b")]))
    new = built.data_file([(1, "A"), (2, "b"), (3, "c")])
    built.commit(new, built.equality_deletes(["id"], [(1,), (2,), (3,)]), operation="overwrite")
    assert _feed(built, 1001) == [
        (0, "DELETE", 1, "a"),
        (0, "INSERT", 1, "A"),
        (0, "INSERT", 3, "c"),
    ]


def test_rows_that_are_deleted_twice_are_deleted_once(built: TableBuilder) -> None:
    file = built.data_file([(1, "a"), (2, "b")])
    built.commit(file)
    built.commit(built.equality_deletes(["id"], [(1,)]), operation="delete")
    built.commit(built.position_deletes({file.file_path: [0, 1]}), operation="delete")
    built.commit(built.equality_deletes(["name"], [("a",), ("b",)]), operation="delete")
    assert _feed(built, 1001) == [(0, "DELETE", 1, "a"), (1, "DELETE", 2, "b")]


def test_a_larger_deletion_vector_deletes_what_it_adds(tmp_path: Path) -> None:
    built = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    file = built.data_file([(i, "x") for i in range(4)])
    built.commit(file)
    (first,) = built.deletion_vectors([(file, [1])])
    built.commit(first, operation="delete")
    (second,) = built.deletion_vectors([(file, [1, 3])])
    built.commit(second, removed=[first], operation="delete")
    assert _feed(built, 1001) == [(0, "DELETE", 1, "x"), (1, "DELETE", 3, "x")]


def test_rows_whose_deletes_are_taken_back_are_inserted(tmp_path: Path) -> None:
    built = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    file = built.data_file([(1, "a"), (2, "b")])
    built.commit(file)
    (vector,) = built.deletion_vectors([(file, [0])])
    built.commit(vector, operation="delete")
    built.commit(removed=[vector], operation="overwrite")
    assert _feed(built, 1002) == [(0, "INSERT", 1, "a")]


def test_a_compaction_changes_nothing_and_has_no_ordinal(built: TableBuilder) -> None:
    first, second = built.data_file([(1, "a")]), built.data_file([(2, "b")])
    built.commit(first, second)
    built.commit(
        built.data_file([(1, "a"), (2, "b")]), removed=[first, second], operation="replace"
    )
    built.commit(built.data_file([(3, "c")]))
    assert _feed(built) == [(0, "INSERT", 1, "a"), (0, "INSERT", 2, "b"), (1, "INSERT", 3, "c")]


def test_carried_over_rows_are_told_by_nested_values_nulls_and_nans(tmp_path: Path) -> None:
    point = StructType((NestedField(11, "x", DOUBLE), NestedField(12, "y", INT)))
    inner = StructType((NestedField(32, "x", DOUBLE), NestedField(33, "y", INT)))
    schema = Schema(
        (
            NestedField(1, "id", INT),
            NestedField(2, "point", point),
            NestedField(3, "list", ListType(31, inner)),
            NestedField(4, "map", MapType(41, STRING, 42, ListType(43, INT))),
        )
    )
    built = TableBuilder(tmp_path / "t", schema)
    rows = [
        (1, (math.nan, None), [(math.nan, 1), None], [("a", [1, None]), ("b", None)]),
        (2, None, None, None),
        (3, (None, None), [], []),
        (4, (0.0, 1), [(1.0, 1), (2.0, 2)], [("a", [])]),
        (5, (0.0, 1), [None], [("a", None)]),
    ]
    file = built.data_file(rows)
    built.commit(file)
    changed = [
        (1, (math.nan, None), [(math.nan, 1), None], [("b", None), ("a", [1, None])]),
        *rows[1:3],
        (4, (0.0, 1), [(2.0, 2), (1.0, 1)], [("a", [])]),
        (5, (-0.0, 1), [None], [("a", None)]),
    ]
    built.commit(built.data_file(changed), removed=[file], operation="overwrite")
    found = _table(built).changes(1001, columns="_change_type, id").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        ("DELETE", 4),
        ("DELETE", 5),
        ("INSERT", 4),
        ("INSERT", 5),
    ]


def test_an_empty_struct_list_and_null_are_different_rows(tmp_path: Path) -> None:
    point = StructType((NestedField(11, "x", INT),))
    schema = Schema((NestedField(2, "point", point), NestedField(3, "list", ListType(31, INT))))
    built = TableBuilder(tmp_path / "t", schema)
    file = built.data_file([((None,), []), (None, [None])])
    built.commit(file)
    new = built.data_file([(None, []), ((None,), [None]), ((0,), [0]), (None, None)])
    built.commit(new, removed=[file], operation="overwrite")
    assert _table(built).changes(1001).to_arrow().num_rows == 6


def test_net_changes_leave_out_what_came_and_went(built: TableBuilder) -> None:
    first = built.data_file([(1, "a"), (2, "b")])
    built.commit(first)
    built.commit(built.data_file([(3, "c")]))
    built.commit(built.equality_deletes(["id"], [(3,), (1,)]), operation="delete")
    built.commit(built.data_file([(1, "a"), (4, "d")]))
    assert [c[1:] for c in _feed(built, 1001, net_changes=True)] == [("INSERT", 4, "d")]
    assert len(_feed(built, 1001)) == 5


def test_updates_are_told_by_identifier(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a"), (2, "b"), (4, "d")]))
    new = built.data_file([(1, "A"), (3, "c"), (4, "d")])
    built.commit(new, built.equality_deletes(["id"], [(1,), (2,), (4,)]), operation="overwrite")
    assert _feed(built, 1001, identifier_columns="id") == [
        (0, "DELETE", 2, "b"),
        (0, "INSERT", 3, "c"),
        (0, "UPDATE_AFTER", 1, "A"),
        (0, "UPDATE_BEFORE", 1, "a"),
    ]


def test_updates_are_told_by_the_identifier_fields_of_the_table(tmp_path: Path) -> None:
    fields = (NestedField(1, "id", LONG, True), NestedField(2, "name", STRING))
    built = TableBuilder(tmp_path / "t", Schema(fields, identifier_field_ids=(1,)))
    file = built.data_file([(1, "a")])
    built.commit(file)
    built.commit(built.data_file([(1, "A")]), removed=[file], operation="overwrite")
    assert [c[1] for c in _feed(built, 1001, compute_updates=True)] == [
        "UPDATE_AFTER",
        "UPDATE_BEFORE",
    ]


def test_an_update_may_move_a_row_to_another_partition(tmp_path: Path) -> None:
    spec = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "name"),))
    built = TableBuilder(tmp_path / "t", _SCHEMA, spec=spec)
    file = built.data_file([(1, "a")], partition=("a",))
    built.commit(file)
    new = built.data_file([(1, "b")], partition=("b",))
    built.commit(new, removed=[file], operation="overwrite")
    kinds = [c[1] for c in _feed(built, 1001, identifier_columns=["id"])]
    assert kinds == ["UPDATE_AFTER", "UPDATE_BEFORE"]


def test_identifiers_of_several_rows_are_refused_by_name(built: TableBuilder) -> None:
    file = built.data_file([(1, "a"), (1, "b"), (2, "c")])
    built.commit(file)
    built.commit(built.data_file([(1, "A"), (2, "c")]), removed=[file], operation="overwrite")
    with pytest.raises(InvalidDataError, match="identifier id=1 is not unique"):
        _feed(built, 1001, identifier_columns="id")
    assert len(_feed(built, 1001)) == 3


def test_updates_need_identifiers(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a")]))
    with pytest.raises(InvalidOptionError, match="no identifier fields"):
        _feed(built, compute_updates=True)
    with pytest.raises(InvalidOptionError, match=r"identifier-columns.*nme"):
        _feed(built, identifier_columns="nme")


def test_rows_are_matched_across_partition_specs(built: TableBuilder) -> None:
    file = built.data_file([(1, "a"), (2, "b")])
    built.commit(file)
    built.evolve(spec=_BY_ID)
    new = [built.data_file([row], partition=(row[0],)) for row in [(1, "a"), (2, "B")]]
    built.commit(*new, removed=[file], operation="overwrite")
    assert _feed(built, 1001) == [(0, "DELETE", 2, "b"), (0, "INSERT", 2, "B")]


def test_rows_are_matched_within_their_partition(tmp_path: Path) -> None:
    built = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_ID)
    files = [built.data_file([(i, "a"), (i, "b")], partition=(i,)) for i in range(3)]
    built.commit(*files)
    new = built.data_file([(1, "a"), (1, "c")], partition=(1,))
    added = built.data_file([(7, "a")], partition=(7,))
    built.commit(new, added, removed=files[:2], operation="overwrite")
    plain, matched = _task_groups(built, 1001)
    assert isinstance(plain, ScanTaskGroup)
    assert isinstance(matched, ChangelogTaskGroup)
    paths = {task.file_path for group in matched.groups for task in group.task_group.tasks}
    assert paths == {new.file_path, files[1].file_path}
    assert {t.file_path for t in plain.tasks} == {added.file_path, files[0].file_path}


def test_rows_are_matched_across_partitions_of_a_dropped_column(tmp_path: Path) -> None:
    spec = PartitionSpec(1, (PartitionField((2,), 1000, BucketTransform(8), "b"),))
    built = TableBuilder(tmp_path / "t", _SCHEMA, spec=spec)
    file = built.data_file([(1, "a")], partition=(1,))
    built.commit(file)
    built.commit(built.data_file([(1, "b")], partition=(2,)), removed=[file], operation="overwrite")
    built.evolve(schema=Schema(_SCHEMA.fields[:1], 1))
    assert _table(built).changes(1001).to_arrow().num_rows == 0
    assert _table(built).changes(1001, 1002).to_arrow().num_rows == 2


def test_plain_commits_are_cut_and_packed_as_scans_are(built: TableBuilder) -> None:
    built.commit(*(built.data_file([(i, "x")]) for i in range(3)))
    built.commit(built.equality_deletes(["id"], [(1,)]), operation="delete")
    task_groups = _task_groups(built, None, **{"split-size": "1", "file-open-cost": "1"})
    assert all(isinstance(task_group, ScanTaskGroup) for task_group in task_groups)
    # Metrics tell which file the key may be in.
    assert len(task_groups) == 4


def test_a_feed_reads_all_snapshots_with_the_schema_of_its_end(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a")]))
    fields = (*_SCHEMA.fields[:1], NestedField(2, "title", STRING), NestedField(3, "new", INT))
    built.evolve(schema=Schema(fields, 1))
    built.commit(built.data_file([(2, "b", 5)]))
    now = _table(built).changes().to_arrow().to_pylist()
    assert [(r["id"], r["title"], r["new"]) for r in now] == [(1, "a", None), (2, "b", 5)]
    then = _table(built).changes(None, 1001).to_arrow()
    assert then.column_names[:2] == ["id", "name"]


def test_filters_and_columns_choose_rows_and_columns(built: TableBuilder) -> None:
    file = built.data_file([(1, "a"), (2, "b"), (3, "c")])
    built.commit(file)
    built.commit(built.data_file([(2, "b"), (3, "C")]), removed=[file], operation="overwrite")
    table = _table(built)
    found = table.changes(1001, filter="id > 1", columns="name, _change_type, _file").to_arrow()
    assert found.column_names == ["name", "_change_type", "_file"]
    assert sorted(found["name"].to_pylist()) == ["C", "c"]
    assert table.changes(1001, filter="name = 'zz'").to_arrow().num_rows == 0
    with pytest.raises(InvalidOptionError, match="_deleted"):
        table.changes(columns="id, _deleted").to_arrow()
    with pytest.raises(InvalidOptionError, match="_change_type"):
        table.scan(columns="id, _change_type").to_arrow()


def test_the_feed_of_a_branch_is_that_of_its_head(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a")]))
    built.branch("audit", 1001)
    built.commit(built.data_file([(2, "b")]))
    built.commit(built.data_file([(3, "c")]), branch="audit")
    assert _feed(built, 1001, branch="audit") == [(0, "INSERT", 3, "c")]
    assert _feed(built, 1001) == [(0, "INSERT", 2, "b")]
    assert _feed(built, 1001, 1003) == [(0, "INSERT", 3, "c")]
    with pytest.raises(InvalidOptionError, match="not in the history of branch 'audit'"):
        _feed(built, 1001, 1002, branch="audit")
    with pytest.raises(InvalidOptionError, match="not an ancestor"):
        _feed(built, 1002, branch="audit")


def test_times_and_tags_choose_a_range(built: TableBuilder) -> None:
    for i in range(3):
        built.commit(built.data_file([(i, "x")]))
    built.tag("first", 1001)
    built.tag("second", 1002)
    times = [snapshot.timestamp_ms for snapshot in built.metadata.snapshots]

    def ids(**options: Any) -> list[int]:
        named = {name.replace("_", "-"): str(value) for name, value in options.items()}
        feed = sorted(change[2] for change in _feed(built, options=named))
        if any(name.startswith("start") for name in options):
            appends = _table(built).appends(options=named).to_arrow()
            assert sorted(appends["id"].to_pylist()) == feed
        return feed

    assert ids(start_timestamp=times[0]) == [1, 2]
    assert ids(start_timestamp=times[0] - 1) == [0, 1, 2]
    assert ids(start_timestamp=times[2]) == []
    assert ids(end_timestamp=times[1]) == [0, 1]
    assert ids(end_timestamp=times[0] - 1) == []
    assert ids(start_timestamp=times[0], end_timestamp=times[2] - 1) == [1]
    assert ids(start_tag="first", end_tag="second") == [1]
    assert ids(start_tag="first", end_snapshot_id=1003) == [1, 2]


def test_a_table_without_rows_has_no_changes(built: TableBuilder) -> None:
    assert _feed(built) == []
    assert _table(built).changes(options={"start-timestamp": "0"}).to_arrow().num_rows == 0


def test_starts_that_no_range_has_are_refused(built: TableBuilder) -> None:
    for i in range(3):
        built.commit(built.data_file([(i, "x")]))
    with pytest.raises(NoSuchSnapshotError, match="7 does not exist"):
        _feed(built, 7)
    with pytest.raises(InvalidOptionError, match=r"1003.*later than their end, 1002"):
        _feed(built, 1003, 1002)
    with pytest.raises(InvalidOptionError, match="is no snapshot at their end"):
        _feed(built, 1001, options={"end-timestamp": "5"})
    _expire(built, 1001)
    with pytest.raises(NoSuchSnapshotError, match="1001 has expired"):
        _feed(built, 1001)
    with pytest.raises(NoSuchSnapshotError, match=r"has expired; the oldest.*1002"):
        _feed(built, options={"start-timestamp": "5"})


def test_a_history_with_a_gap_is_refused(built: TableBuilder) -> None:
    for i in range(3):
        built.commit(built.data_file([(i, "x")]))
    _expire(built, 1002)
    with pytest.raises(NoSuchSnapshotError, match="1002 between them has expired"):
        _feed(built, 1001)


def test_without_a_start_the_oldest_snapshot_inserts_all_of_its_rows(built: TableBuilder) -> None:
    first = built.data_file([(1, "a")])
    built.commit(first)
    second = built.data_file([(2, "b")])
    built.commit(second)
    merged = built.data_file([(1, "a"), (2, "b")])
    built.commit(merged, removed=[first, second], operation="replace")
    built.commit(built.data_file([(3, "c")]))
    _expire(built, 1001, 1002)
    assert _feed(built) == [(0, "INSERT", 1, "a"), (0, "INSERT", 2, "b"), (1, "INSERT", 3, "c")]


def test_a_table_with_a_column_of_the_feeds_is_refused_by_name(tmp_path: Path) -> None:
    fields = (NestedField(1, "id", INT), NestedField(2, "_change_type", STRING))
    built = TableBuilder(tmp_path / "t", Schema(fields))
    built.commit(built.data_file([(1, "x")]))
    with pytest.raises(InvalidOptionError, match="has a column _change_type"):
        _table(built).changes().to_arrow()


def test_options_that_contradict_each_other_are_refused(built: TableBuilder) -> None:
    built.commit(built.data_file([(1, "a")]))
    start = {"start-snapshot-id": "1001"}
    for options, message in [
        ({**start, "snapshot-id": "1001"}, "snapshot-id.*chooses one snapshot"),
        ({**start, "versionAsOf": "1001"}, "versionAsOf.*chooses one snapshot"),
        ({**start, "tag": "x"}, "tag.*chooses one snapshot"),
        ({**start, "start-tag": "x"}, "start-snapshot-id and start-tag contradict"),
        ({"end-tag": "x"}, "end-tag.*needs a start"),
        ({"net-changes": "true"}, "net-changes.*needs read-change-feed=true"),
        ({"skip-delete-snapshots": "true"}, "skip-delete-snapshots.*needs a start"),
        ({"read-change-feed": "yes"}, "expected true or false"),
        ({"read-change-feed": "true", "skip-delete-snapshots": "true"}, "reads all snapshots"),
        ({"start-timestamp": "5", "end-timestamp": "4"}, "later than end-timestamp"),
        (
            {"read-change-feed": "true", "net-changes": "true", "compute-updates": "true"},
            "contradicts compute-updates",
        ),
        (
            {"read-change-feed": "true", "identifier-columns": "id", "pushdown": "true"},
            "pushdown contradicts compute-updates",
        ),
        (
            {
                "read-change-feed": "true",
                "compute-updates": "false",
                "identifier-columns": "id",
            },
            "contradicts compute-updates=false",
        ),
    ]:
        with pytest.raises(InvalidOptionError, match=message):
            _table(built).scan(options=options).to_arrow()
    with pytest.raises(InvalidOptionError, match="start-snapshot-id: given both as an argument"):
        _table(built).changes(1, options=start)
    with pytest.raises(InvalidOptionError, match="appends needs a start"):
        _table(built).appends()


def test_appends_are_the_rows_that_appends_added(built: TableBuilder) -> None:
    for i in range(4):
        built.commit(built.data_file([(i, "x")]))
    assert _appends(built, 1001) == [1, 2, 3]
    assert _appends(built, 1001, 1003) == [1, 2]
    assert _appends(built, 1004) == []
    assert _appends(built, 1001, filter="id <> 2") == [1, 3]


def test_appends_outlive_a_compaction(built: TableBuilder) -> None:
    old = built.data_file([(0, "x")])
    built.commit(old)
    file = built.data_file([(1, "x")])
    built.commit(file)
    built.commit(built.data_file([(0, "x"), (1, "x")]), removed=[old, file], operation="replace")
    built.commit(built.data_file([(2, "x")]))
    assert _appends(built, 1001) == [1, 2]


@pytest.mark.parametrize("operation", ["overwrite", "delete"])
def test_other_commits_among_appends_are_refused_or_left_out(
    built: TableBuilder, operation: str
) -> None:
    file = built.data_file([(0, "x"), (9, "x")])
    built.commit(file)
    built.commit(built.data_file([(1, "x"), (2, "x")]))
    by_key = built.equality_deletes(["id"], [(1,), (9,)])
    built.commit(by_key, operation=operation)
    built.commit(built.data_file([(3, "x"), (1, "y")]))
    with pytest.raises(InvalidOptionError, match=r"1003 is not an append.*read-change-feed"):
        _appends(built, 1001)
    for prefix in ("", "streaming-"):
        options = {f"{prefix}skip-{operation}-snapshots": "true"}
        # What was deleted since it was appended does not come.
        assert _appends(built, 1001, options=options) == [1, 2, 3]
    assert _appends(built, 1001, 1002) == [1, 2]


def test_appends_that_were_compacted_and_deleted_later_do_not_come(built: TableBuilder) -> None:
    built.commit(built.data_file([(0, "x")]))
    file = built.data_file([(1, "x"), (2, "x"), (3, "x")])
    built.commit(file)
    built.commit(built.position_deletes({file.file_path: [0]}), operation="delete")
    built.commit(built.data_file([(2, "x"), (3, "x")]), removed=[file], operation="replace")
    built.commit(built.equality_deletes(["id"], [(2,)]), operation="delete")
    options = {"skip-delete-snapshots": "true"}
    assert _appends(built, 1001, options=options) == [3]


def _table(built: TableBuilder) -> Table:
    return load_table(str(built.location))


def _feed(built: TableBuilder, *arguments: Any, **options: Any) -> _Changes:
    """Changes as ordinal, type and data columns, in order."""
    found = _table(built).changes(*arguments, **options).to_arrow().to_pylist()
    changes = [
        (row.pop("_change_ordinal"), row.pop("_change_type"), row.pop("_commit_snapshot_id"), row)
        for row in found
    ]
    rows = [(ordinal, kind, *row.values()) for ordinal, kind, _, row in changes]
    return sorted(rows, key=repr)


def _appends(built: TableBuilder, *arguments: Any, **options: Any) -> list[int]:
    return sorted(_table(built).appends(*arguments, **options).to_arrow()["id"].to_pylist())


def _task_groups(built: TableBuilder, start: int | None, **options: str) -> Sequence[Any]:
    """The task groups of a feed, as a load plans them."""
    table = _table(built)
    given = {"path": str(built.location), "read-change-feed": "true", **options}
    if start is not None:
        given["start-snapshot-id"] = str(start)
    address, parsed = parse_load_options(given)
    state = address.load()
    snapshot, schema = resolve_read(parsed, state.metadata, table.name)
    return plan_task_groups(parsed, state, snapshot, make_read_plan(parsed, state, schema, schema))


def _expire(built: TableBuilder, *snapshot_ids: int) -> None:
    kept = tuple(s for s in built.metadata.snapshots if s.snapshot_id not in snapshot_ids)
    built._replace_metadata(replace(built.metadata, snapshots=kept))
