"""Reading a task group: filters, deletes and columns that the output does not show."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.scans import task_groups_of
from built.tables import TableBuilder
from strategies.large_keys import keys_in_parts

from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.projection import parse_column_list, project_columns
from icebergds.scan.read import deletes as worker_deletes, task_keys
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read.key_set import EqualityKeySet, EqualityKeySetBuilder
from icebergds.scan.read_plan import ReadPlan, key_schema
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    NestedField,
    StructType,
)

_POINT = StructType((NestedField(11, "x", INT), NestedField(12, "y", INT)))
_SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "name", STRING),
        NestedField(3, "point", _POINT),
    )
)
_ROWS = [(i, f"n{i}", None if i == 4 else (i % 3, i)) for i in range(6)]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Rows 0 to 5 in one file; the point of row 4 is null."""
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(table.data_file(_ROWS, row_group_size=2))
    return table


# Filters.


def test_a_filter_may_ask_for_columns_that_are_not_returned(table: TableBuilder) -> None:
    assert _read(table, "id", "name = 'n3'") == [(3,)]
    assert _read(table, "name", "id > 3 and point.y = 5") == [("n5",)]


def test_a_filter_on_a_field_beside_the_one_that_is_returned(table: TableBuilder) -> None:
    assert _read(table, "point.x", "point.y >= 4") == [({"x": 2},)]
    assert _read(table, "id", "point.x is null") == [(4,)]


def test_what_the_partition_excludes_is_not_opened(tmp_path: Path) -> None:
    spec = PartitionSpec(0, (PartitionField((1,), 1000, IdentityTransform(), "id"),))
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=spec)
    data_file = table.data_file([_ROWS[1]], partition=(1,))
    table.commit(data_file)
    (task_group,) = _task_groups(table)
    Path(data_file.file_path).unlink()
    assert _rows_of(_read_plan(table, "id", "id = 2"), [task_group]) == []


def test_what_the_partition_decides_needs_no_column(tmp_path: Path) -> None:
    spec = PartitionSpec(0, (PartitionField((1,), 1000, IdentityTransform(), "id"),))
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=spec)
    without_id = Schema(_SCHEMA.fields[1:])
    table.commit(table.data_file([("a", None)], partition=(1,), schema=without_id))
    assert _read(table, "id, name", "id = 1") == [(1, "a")]
    assert _read(table, "id", "id < 5 and name = 'a'") == [(1,)]
    assert _read(table, "id", "id != 1") == []


def test_batches_are_bounded_and_never_empty(table: TableBuilder) -> None:
    plan = replace(_read_plan(table, "id", "id != 2 and id != 3"), batch_size=2)
    sizes = [
        b.num_rows for task_group in _task_groups(table) for b in read_scan_tasks(plan, task_group)
    ]
    assert sizes == [2, 2]


# Columns.


@pytest.mark.parametrize("column", ["_pos", "_file", "_spec_id"])
def test_rows_are_counted_without_any_data_column(table: TableBuilder, column: str) -> None:
    data_file = _data_file(table)
    table.commit(table.position_deletes({data_file.file_path: [0, 5]}))
    assert len(_read(table, column)) == 4


def test_deleted_rows_show_where_they_are_asked_for(table: TableBuilder) -> None:
    data_file = _data_file(table)
    table.commit(table.position_deletes({data_file.file_path: [1]}))
    table.commit(table.equality_deletes(["id"], [(2,)]))
    assert _read(table, "id, _deleted", "id < 4") == [
        (0, False),
        (1, True),
        (2, True),
        (3, False),
    ]


def test_plans_and_shares_survive_pickling(table: TableBuilder) -> None:
    data_file = _data_file(table)
    table.commit(
        table.position_deletes({data_file.file_path: [1]}),
        table.equality_deletes(["name"], [("n2",)]),
    )
    plan = _read_plan(table, "*, _pos, _partition", "id < 5")
    plain = _rows_of(plan, _task_groups(table))
    thawed = pickle.loads(pickle.dumps((plan, _task_groups(table))))
    assert _rows_of(*thawed) == plain
    assert len(pickle.dumps(_task_groups(table))) < 3000


def _without_nested_partition_column(tmp_path: Path) -> TableBuilder:
    """A table partitioned by point.x whose only file, of the partition 5, lacks that field."""
    spec = PartitionSpec(0, (PartitionField((11,), 1000, IdentityTransform(), "x"),))
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=spec)
    y_alone = replace(_SCHEMA.fields[2], field_type=StructType(_POINT.fields[1:]))
    schema = Schema((*_SCHEMA.fields[:2], y_alone))
    rows = [(1, "a", (7,)), (2, "b", (8,))]
    table.commit(table.data_file(rows, partition=(5,), schema=schema))
    return table


def test_nested_partition_columns_that_a_file_lacks_are_read(tmp_path: Path) -> None:
    table = _without_nested_partition_column(tmp_path)
    assert _read(table, "id, point") == [(1, {"x": 5, "y": 7}), (2, {"x": 5, "y": 8})]
    assert _read(table, "point.x", "point.x = 5 and point.y = 8") == [({"x": 5},)]
    assert _read(table, "id", "point.x is null") == []
    # Which the partition does not decide.
    assert _read(table, "id", "point.y = 7 or point.x > 5") == [(1,)]


def test_nested_partition_columns_that_a_file_lacks_are_keys(tmp_path: Path) -> None:
    table = _without_nested_partition_column(tmp_path)
    keys = [((5, 7),), ((6, 8),)]
    table.commit(table.equality_deletes(["point"], keys, partition=(5,), equality_ids=[11, 12]))
    assert _read(table, "id") == [(2,)]


# Keys of equality deletes.


def test_keys_need_not_be_returned(table: TableBuilder) -> None:
    table.commit(table.equality_deletes(["name"], [("n1",), ("n2",)]))
    assert _read(table, "id") == [(0,), (3,), (4,), (5,)]


def test_a_null_key_deletes_nulls(table: TableBuilder) -> None:
    table.commit(table.data_file([(9, None, None)]))
    table.commit(table.equality_deletes(["name"], [(None,)]))
    assert (9,) not in _read(table, "id")
    assert len(_read(table, "id")) == 6


def test_a_nested_key_is_null_where_its_struct_is(table: TableBuilder) -> None:
    deletes = table.equality_deletes(["point"], [(None,), ((2, 7),)], equality_ids=[11])
    table.commit(deletes)
    assert _read(table, "id, point.y") == [
        (0, {"y": 0}),
        (1, {"y": 1}),
        (3, {"y": 3}),
    ]


def test_keys_of_several_columns_delete_where_all_are_equal(table: TableBuilder) -> None:
    keys = [("n1", 1), ("n3", 2)]
    table.commit(table.equality_deletes(["name", "id"], keys, equality_ids=[1, 2]))
    assert _read(table, "id") == [(0,), (2,), (3,), (4,), (5,)]


def test_columns_that_are_no_keys_do_not_count(table: TableBuilder) -> None:
    deletes = table.equality_deletes(["id", "name"], [(1, "other")], equality_ids=[1])
    table.commit(deletes)
    assert _read(table, "id") == [(0,), (2,), (3,), (4,), (5,)]


def test_a_null_that_no_row_can_hold_deletes_nothing(table: TableBuilder) -> None:
    table.commit(table.equality_deletes(["id"], [(None,), (3,)], with_metrics=False))
    assert _read(table, "id") == [(0,), (1,), (2,), (4,), (5,)]


def test_files_may_lack_a_required_key_that_was_dropped(table: TableBuilder) -> None:
    table.evolve(Schema(_SCHEMA.fields[1:], 1))
    table.commit(table.data_file([("new", None)]))
    # By a writer that had not seen the change.
    deletes = table.equality_deletes(["id"], [(1,)], schema=_SCHEMA, with_metrics=False)
    table.commit(deletes)
    assert _read(table, "name") == [("n0",), ("n2",), ("n3",), ("n4",), ("n5",), ("new",)]


def test_keys_added_after_a_file_was_written_have_their_default(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", Schema(_SCHEMA.fields[:1]), format_version=3)
    table.commit(table.data_file([(1,)]))
    extra = NestedField(5, "extra", INT, initial_default=7)
    table.evolve(Schema((*_SCHEMA.fields[:1], extra), 1))
    table.commit(table.data_file([(2, 7), (3, None)]))
    table.commit(table.equality_deletes(["extra"], [(7,)]))
    assert _read(table, "id") == [(3,)]


def test_key_columns_are_the_newest_and_optional() -> None:
    old = Schema((NestedField(1, "a", INT, True), NestedField(3, "point", _POINT, True)), 0)
    new = Schema((NestedField(1, "b", LONG, True),), 1)
    inner = StructType((NestedField(12, "y", INT),))
    assert key_schema([new, old], [1, 12]).fields == (
        NestedField(1, "b", LONG),
        NestedField(3, "point", inner),
    )


# What a worker keeps of deletes.


def test_deletes_are_the_same_without_a_cache(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    files = [table.data_file(_ROWS, row_group_size=1) for _ in range(3)]
    table.commit(*files)
    table.commit(
        table.position_deletes({file.file_path: [at] for at, file in enumerate(files)}),
        table.equality_deletes(["id"], [(5,)]),
    )
    expected = sorted((i, str(f)) for f in range(3) for i in range(5) if i != f)
    names = {file.file_path: str(at) for at, file in enumerate(files)}
    for size in (0, 40, 10**6):
        plan = replace(_read_plan(table, "id, _file"), delete_cache_bytes=size)
        task_groups = _task_groups(table, SplitOptions(split_size=600, file_open_cost=0))
        assert sorted((i, names[path]) for i, path in _rows_of(plan, task_groups)) == expected


def test_tasks_in_a_row_share_keys_that_are_too_many_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(*(table.data_file(_ROWS) for _ in range(4)))
    table.commit(table.equality_deletes(["id"], [(5,)]))
    loads: list[object] = []
    load = worker_deletes.load_key_set

    def counting(*arguments: Any) -> Any:
        loads.append(arguments)
        return load(*arguments)

    monkeypatch.setattr(task_keys, "load_key_set", counting)
    plan = replace(_read_plan(table, "id"), delete_cache_bytes=0)
    task_groups = _task_groups(table)
    assert [len(task_group.tasks) for task_group in task_groups] == [4]
    assert len(_rows_of(plan, task_groups)) == 20
    assert len(loads) == 1


def test_keys_that_do_not_fit_in_memory_are_applied_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(*(table.data_file(_ROWS) for _ in range(2)))
    table.commit(*(table.equality_deletes(["id"], [(i,)]) for i in range(3)))
    table.commit(table.data_file(_ROWS))
    table.commit(table.equality_deletes(["id", "name"], [(5, "n5"), (4, "n5")]))
    largest = 0
    build = EqualityKeySetBuilder.build

    def built(builder: EqualityKeySetBuilder) -> EqualityKeySet:
        nonlocal largest
        found = build(builder)
        largest = max(largest, len(found))
        return found

    monkeypatch.setattr(EqualityKeySetBuilder, "build", built)
    plan = _read_plan(table, "id")
    with keys_in_parts():
        rows = _rows_of(plan, _task_groups(table))
    assert sorted(i for (i,) in rows) == [0, 1, 2, 3, 3, 3, 4, 4, 4]
    assert largest == 2


def test_deletes_compare_floating_point_by_bits(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "d", DOUBLE),))
    table = TableBuilder(tmp_path / "t", schema)
    table.commit(table.data_file([(0.0,), (-0.0,), (float("nan"),), (1.5,)]))
    table.commit(table.equality_deletes(["d"], [(-0.0,), (float("nan"),)]))
    assert [str(d) for (d,) in _read(table, "d")] == ["0.0", "1.5"]


def test_filters_compare_floating_point_by_value(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "d", DOUBLE),))
    table = TableBuilder(tmp_path / "t", schema)
    table.commit(table.data_file([(0.0,), (-0.0,), (float("nan"),), (1.5,)]))
    assert [str(d) for (d,) in _read(table, "d", "d = 0")] == ["0.0", "-0.0"]
    assert [str(d) for (d,) in _read(table, "d", "d > 1")] == ["nan", "1.5"]


def _data_file(table: TableBuilder) -> Any:
    (task_group,) = _task_groups(table)
    return task_group.tasks[0]


def _bound(table: TableBuilder, text: str | None) -> Expr:
    return TRUE if text is None else bind(parse_filter(text), table.schema)


def _read_plan(table: TableBuilder, columns: str, filter: str | None = None) -> ReadPlan:
    return ReadPlan(
        table.io,
        project_columns(table.metadata, table.schema, parse_column_list(columns)),
        table.schema,
        table.metadata.specs_by_id,
        _bound(table, filter),
    )


def _task_groups(table: TableBuilder, options: SplitOptions | None = None) -> list[ScanTaskGroup]:
    return task_groups_of(
        table.io,
        table.metadata,
        table.metadata.current_snapshot(),
        table.schema,
        TRUE,
        options or SplitOptions(),
    )


def _rows_of(plan: ReadPlan, task_groups: Sequence[ScanTaskGroup]) -> list[tuple[Any, ...]]:
    batches = [batch for task_group in task_groups for batch in read_scan_tasks(plan, task_group)]
    found = pa.Table.from_batches(batches, schema_to_arrow(plan.columns))
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _read(table: TableBuilder, columns: str, filter: str | None = None) -> list[tuple[Any, ...]]:
    return _rows_of(_read_plan(table, columns, filter), _task_groups(table))
