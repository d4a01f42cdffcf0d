"""Aggregates that metadata answers are those of the rows in the files that it answers."""

from __future__ import annotations

import datetime as dt
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.random_tables import RandomTable
from strategies.small_values import filters

from icebergds import load_table
from icebergds.errors import InvalidOptionError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import LOCAL_DAY, LOCAL_YEAR, TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.formats.arrow.types import to_array
from icebergds.operations.read.aggregates import (
    Aggregate,
    Answered,
    Asked,
    Function,
    GroupKey,
    answer,
    distinct_values,
    total,
)
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import PlannedScan, plan_scan, task_groups_of
from icebergds.operations.read.snapshot_read import resolve_read
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.read.files import read_scan_tasks
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
    is_scalar,
)

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "part", STRING),
        NestedField(3, "value", DOUBLE),
        NestedField(4, "at", TIMESTAMPTZ),
        NestedField(5, "day", DATE),
    )
)
ID, PART, VALUE, AT, DAY = SCHEMA.fields
SPEC = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "part"),))
COUNT = Aggregate(Function.COUNT)


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=3)


def file_of(builder: TableBuilder, rows: Sequence[tuple[Any, ...]], part: str = "x") -> Any:
    """A file of rows: id, value, at in hours, day."""
    stored = [
        (key, part, value, None if at is None else int(at * HOUR_US), day)
        for key, value, at, day in rows
    ]
    return builder.data_file(stored, partition=(part,))


def scanned(builder: TableBuilder, asked: Asked) -> PlannedScan:
    table = load_table(str(builder.location))
    ids = frozenset(column.field_id for column in asked.columns)
    return plan_scan(
        table._state, ReadOptions(), for_native=False, rechecked=asked.condition, stats_of=ids
    )


def answered(
    builder: TableBuilder,
    *aggregates: Aggregate,
    keys: Iterable[GroupKey] = (),
    where: str | None = None,
    zone: str = "UTC",
) -> Answered:
    condition = TRUE if where is None else bind(parse_filter(where), SCHEMA)
    asked = Asked(condition, aggregates, tuple(keys), zone)
    return answer(scanned(builder, asked), asked)


def least(column: NestedField) -> Aggregate:
    return Aggregate(Function.MIN, column)


def greatest(column: NestedField) -> Aggregate:
    return Aggregate(Function.MAX, column)


def values(column: NestedField) -> Aggregate:
    return Aggregate(Function.COUNT, column)


def test_no_data_is_read(builder: TableBuilder) -> None:
    builder.commit(file_of(builder, [(1, 0.5, 3, 7), (4, None, 2, 9)]))
    for path in builder.location.iterdir():
        if path.name != "metadata":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = answered(builder, COUNT, least(ID), greatest(VALUE), values(VALUE), greatest(DAY))
    assert [group.results for group in found.groups] == [[2, 1, 0.5, 1, 9]]
    assert not found.unread


def test_files_that_the_filter_selects_in_part_are_left_unread(builder: TableBuilder) -> None:
    builder.commit(
        file_of(builder, [(1, 1.0, 0, 0), (2, 1.0, 0, 0)]),
        file_of(builder, [(3, 1.0, 0, 0), (9, 1.0, 0, 0)]),
    )
    found = answered(builder, COUNT, greatest(ID), where="id >= 3")
    assert [group.results for group in found.groups] == [[2, 9]]
    found = answered(builder, COUNT, greatest(ID), where="id >= 2")
    assert [group.results for group in found.groups] == [[2, 9]]
    assert len(found.unread) == 1


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_bounds_that_may_be_either_zero_are_not_used(builder: TableBuilder, zero: float) -> None:
    builder.commit(file_of(builder, [(1, zero, 0, 0), (2, 5.0, 0, 0)]))
    assert len(answered(builder, least(VALUE)).unread) == 1
    assert len(answered(builder, greatest(VALUE)).unread) == 1


def test_columns_with_nan_are_read(builder: TableBuilder) -> None:
    builder.commit(file_of(builder, [(1, math.nan, 0, 0), (2, 5.0, 0, 0)]))
    assert len(answered(builder, greatest(VALUE)).unread) == 1


def test_texts_are_answered_by_partitions_only(builder: TableBuilder) -> None:
    builder.commit(file_of(builder, [(1, 1.0, 0, 0)], "x"), file_of(builder, [(2, 1.0, 0, 0)], "é"))
    found = answered(builder, least(PART), greatest(PART), keys=[GroupKey(PART)])
    assert {group.values: group.results for group in found.groups} == {
        ("x",): ["x", "x"],
        ("é",): ["é", "é"],
    }
    without_parts = TableBuilder(builder.location.parent / "u", SCHEMA)
    without_parts.commit(without_parts.data_file([(1, "x", 1.0, 0, 0)]))
    assert len(answered(without_parts, least(PART)).unread) == 1


def test_a_column_of_nulls_has_no_least_value(builder: TableBuilder) -> None:
    builder.commit(
        file_of(builder, [(1, None, None, None), (2, None, None, None)]),
        file_of(builder, [(5, 2.0, 1, 3)]),
    )
    found = answered(builder, COUNT, values(DAY), least(DAY), greatest(VALUE))
    assert [group.results for group in found.groups] == [[3, 1, 3, 2.0]]


def test_files_without_metrics_are_read_for_their_values_but_counted(builder: TableBuilder) -> None:
    bare = replace(file_of(builder, [(1, 1.0, 0, 0)]), value_counts={}, null_value_counts={})
    builder.commit(replace(bare, lower_bounds={}, upper_bounds={}))
    assert len(answered(builder, least(ID)).unread) == 1
    assert len(answered(builder, values(ID)).unread) == 1
    assert not answered(builder, COUNT).unread


def test_rows_that_vectors_delete_do_not_count(builder: TableBuilder) -> None:
    first = file_of(builder, [(1, 1.0, 0, 0), (2, 1.0, 0, 0), (3, 1.0, 0, 0)])
    second = file_of(builder, [(4, 1.0, 0, 0)], "y")
    builder.commit(first, second)
    builder.commit(*builder.deletion_vectors([(first, [0, 7]), (second, [0])]))
    found = answered(builder, COUNT, keys=[GroupKey(PART)])
    # Position 7 is past the end, and no group is left of the other part.
    assert [(group.values, group.results) for group in found.groups] == [(("x",), [2])]
    assert not found.unread
    assert len(answered(builder, COUNT, greatest(ID)).unread) == 2


def test_other_deletes_are_read(builder: TableBuilder) -> None:
    builder.commit(file_of(builder, [(1, 1.0, 0, 0)]), file_of(builder, [(2, 1.0, 0, 0)], "y"))
    builder.commit(builder.equality_deletes(["id"], [(1,)], partition=("x",)))
    found = answered(builder, COUNT)
    assert [group.results for group in found.groups] == [[1]]
    assert len(found.unread) == 1


def test_days_and_years_are_those_of_the_time_zone(builder: TableBuilder) -> None:
    # 2024-01-01T22:00Z and 23:30 later on the same day.
    start = 19_723 * 24 + 22
    builder.commit(file_of(builder, [(1, 1.0, start, 0), (2, 1.0, start + 1, 0)]))
    days = [GroupKey(AT, LOCAL_DAY)]
    assert not answered(builder, COUNT, keys=days).unread
    # In Berlin, the first is at 23:00 and the second at midnight.
    assert len(answered(builder, COUNT, keys=days, zone="Europe/Berlin").unread) == 1
    years = [GroupKey(AT, LOCAL_YEAR)]
    assert not answered(builder, COUNT, keys=years, zone="Europe/Berlin").unread
    no_zone = Asked(TRUE, (COUNT,), tuple(days), None)
    assert len(answer(scanned(builder, no_zone), no_zone).unread) == 1


def test_a_day_that_begins_twice_is_read(builder: TableBuilder) -> None:
    # In St. John's, clocks went from 00:01 on 2010-11-07, at 02:31Z, back to 23:01 the day before.
    start = 14_920 * 24 + 2
    times = [start + minutes / 60 for minutes in (30.5, 45, 105)]
    builder.commit(file_of(builder, [(1, 1.0, at, 0) for at in times]))
    days = [GroupKey(AT, LOCAL_DAY)]
    assert not answered(builder, COUNT, keys=days).unread
    assert len(answered(builder, COUNT, keys=days, zone="America/St_Johns").unread) == 1


def test_distinct_values_are_counted(builder: TableBuilder) -> None:
    builder.commit(
        *(file_of(builder, [(at, 1.0, 0, at % 2)], part) for at, part in enumerate("xyx"))
    )
    asked = Asked(TRUE, (COUNT,), (GroupKey(PART), GroupKey(DAY)))
    found = answer(scanned(builder, asked), asked)
    assert [distinct_values(found, asked, column) for column in (PART, DAY)] == [2, 2]
    assert total(found, asked) == [3]


# Types whose least and greatest values are compared here; others are never answered by bounds.
_COMPARED = (INT, LONG, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING)


@given(st.data())
@examples(80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_answers_are_those_of_the_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = RandomTable(data.draw, Path(directory) / "t", is_wide=data.draw(st.booleans()))
        for _ in range(data.draw(st.integers(1, 8))):
            made.step()
        table = load_table(str(made.builder.location))
        ids = [None, *(snapshot.snapshot_id for snapshot in table.snapshots())]
        for snapshot_id in data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3)):
            options = ReadOptions(TimeTravel(snapshot_id))
            _, schema = resolve_read(options, table.metadata, table.name)
            asked = _asked(data, schema, data.draw(st.just(TRUE) | filters(schema)))
            scan = plan_scan(
                table._state,
                options,
                for_native=False,
                rechecked=asked.condition,
                stats_of=frozenset(column.field_id for column in asked.columns),
            )
            found = answer(scan, asked)
            unread = set(map(id, found.unread))
            read = _rows(scan, asked, [file for file in scan.files if id(file) not in unread])
            expected = _grouped(asked, read)
            assert _shown(asked, found) == expected


def _asked(data: st.DataObject, schema: Schema, condition: Expr) -> Asked:
    columns = [field for field in schema.fields if is_scalar(field.field_type)]
    compared = [
        field
        for field in columns
        if field.field_type in _COMPARED or isinstance(field.field_type, DecimalType)
    ]
    aggregates = [COUNT, *map(values, columns)]
    aggregates += [kind(field) for field in compared for kind in (least, greatest)]
    keys = [GroupKey(field) for field in compared]
    return Asked(
        condition,
        tuple(data.draw(st.lists(st.sampled_from(aggregates), max_size=3, unique=True))),
        tuple(data.draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)) if keys else ()),
    )


def _rows(scan: PlannedScan, asked: Asked, files: Sequence[PlannedFile]) -> list[dict[int, Any]]:
    """The rows of files that count, by the ids of their columns."""
    plan = replace(scan.plan, row_filter=asked.condition)
    ids = [field.field_id for field in plan.columns.fields]
    return [
        dict(zip(ids, row.values(), strict=True))
        for group in task_groups_of(scan, files)
        for batch in read_scan_tasks(plan, group)
        for row in batch.rename_columns([str(at) for at in range(len(ids))]).to_pylist()
    ]


def _grouped(asked: Asked, rows: Iterable[dict[int, Any]]) -> dict[tuple[Any, ...], list[Any]]:
    groups: dict[tuple[Any, ...], list[dict[int, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key.column.field_id] for key in asked.keys), []).append(row)
    return {
        key: [_computed(each, members) for each in asked.aggregates]
        for key, members in groups.items()
    }


def _computed(aggregate: Aggregate, rows: Sequence[dict[int, Any]]) -> Any:
    if aggregate.column is None:
        return len(rows)
    present = [value for row in rows if (value := row[aggregate.column.field_id]) is not None]
    match aggregate.function:
        case Function.COUNT:
            return len(present)
        case Function.MIN:
            return min(present, default=None)
        case Function.MAX:
            return max(present, default=None)


def _shown(asked: Asked, found: Answered) -> dict[tuple[Any, ...], list[Any]]:
    """The answers with values as Arrow shows them."""
    return {
        tuple(
            _as_read(key.column.field_type, value)
            for key, value in zip(asked.keys, group.values, strict=True)
        ): [
            value
            if each.column is None or each.function is Function.COUNT
            else _as_read(each.column.field_type, value)
            for each, value in zip(asked.aggregates, group.results, strict=True)
        ]
        for group in found.groups
    }


def _as_read(kind: IcebergType, value: Any) -> Any:
    return to_array(kind, [value])[0].as_py()


def test_the_least_and_the_greatest_value_of_a_scan(builder: TableBuilder) -> None:
    builder.commit(
        file_of(builder, [(1, 0.5, 3, 7), (4, None, 2, 9)]),
        file_of(builder, [(2, math.nan, 1, None), (9, -1.5, 8, 1)], "y"),
    )
    table = load_table(str(builder.location))
    assert (table.scan().min("id"), table.scan().max("id")) == (1, 9)
    assert (table.scan("id < 9").min("id"), table.scan("id < 9").max("id")) == (1, 4)
    assert table.scan().min("value") == -1.5
    assert math.isnan(table.scan().max("value"))
    assert math.isnan(table.scan("id = 2").min("value"))
    assert table.scan("id = 2").max("day") is None
    assert (table.scan().min("part"), table.scan().max("part")) == ("x", "y")
    assert table.scan().max("at") == dt.datetime(1970, 1, 1, 8, tzinfo=dt.UTC)
    assert table.scan("id > 100").min("id") is None
    with pytest.raises(InvalidOptionError, match="nope"):
        table.scan().min("nope")
    with pytest.raises(InvalidOptionError, match="not one column whose values have an order"):
        table.scan().min("id, day")
    with pytest.raises(InvalidOptionError, match="has a limit"):
        table.scan(limit=3).min("id")
    with pytest.raises(InvalidOptionError, match="changes between snapshots"):
        table.changes().min("id")


def test_bounds_of_a_scan_are_those_of_its_rows_without_deleted_ones(builder: TableBuilder) -> None:
    first = file_of(builder, [(1, 1.0, 0, 0), (2, 1.0, 0, 0), (3, 1.0, 0, 0)])
    builder.commit(first)
    builder.commit(*builder.deletion_vectors([(first, [0, 2])]))
    scan = load_table(str(builder.location)).scan()
    assert (scan.min("id"), scan.max("id"), scan.count()) == (2, 2, 1)
