"""The first rows of a scan are read from few files, whatever is deleted."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.random_tables import RandomTable
from strategies.small_values import filters

from icebergds import load_table
from icebergds.expr.nodes import TRUE
from icebergds.operations.read.few_rows import batches_of, few_rows
from icebergds.operations.read.first_rows import FirstRows, Order, with_first_rows
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import PlannedScan, plan_scan
from icebergds.operations.read.snapshot_read import resolve_read
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.spec.schema import Schema
from icebergds.spec.types import DATE, INT, LONG, STRING, TIMESTAMP, DecimalType, NestedField

ID = NestedField(1, "id", LONG)
SCHEMA = Schema((ID,))
NEWEST = Order(ID, descending=True)
FILES = 6


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t", SCHEMA, format_version=3)


def filled(builder: TableBuilder, rows: int = 5) -> list[Any]:
    """Files of that many ids each, one after the other."""
    files = [
        builder.data_file([(number * rows + at,) for at in range(rows)]) for number in range(FILES)
    ]
    builder.commit(*files)
    return files


def scanned(location: Path, first: FirstRows, options: ReadOptions | None = None) -> PlannedScan:
    ids = frozenset(column.field_id for column in first.columns)
    return plan_scan(
        load_table(str(location))._state,
        options or ReadOptions(),
        for_native=False,
        rechecked=first.condition,
        stats_of=ids,
    )


def chosen(builder: TableBuilder, count: int, order: Order | None = None) -> PlannedScan:
    first = FirstRows(count, TRUE, order)
    return with_first_rows(scanned(builder.location, first), first)


def few(builder: TableBuilder, count: int) -> Sequence[int] | None:
    first = FirstRows(count, TRUE)
    batches = few_rows(with_first_rows(scanned(builder.location, first), first), first)
    return None if batches is None else [row for batch in batches for row in batch[0].to_pylist()]


def test_a_file_with_a_vector_has_the_rows_that_it_does_not_delete(builder: TableBuilder) -> None:
    files = filled(builder)
    builder.commit(*builder.deletion_vectors([(file, [0, 3]) for file in files]))
    assert [len(chosen(builder, count).files) for count in (1, 3, 4, 6, 18)] == [1, 1, 2, 2, 6]
    assert few(builder, 3) is not None
    assert [len(chosen(builder, count, NEWEST).files) for count in (2, 3, 4)] == [1, 1, 2]


def test_files_with_position_deletes_have_at_least_the_rows_that_these_do_not_count(
    tmp_path: Path,
) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, format_version=2)
    files = filled(builder)
    # Three positions of two rows.
    builder.commit(*(builder.position_deletes({file.file_path: [1, 1, 4]}) for file in files))
    assert [len(chosen(builder, count).files) for count in (2, 3, 12)] == [1, 2, 6]
    assert len(chosen(builder, 13).files) == FILES
    assert few(builder, 2) is not None


def test_a_file_without_deletes_comes_first(builder: TableBuilder) -> None:
    files = filled(builder)
    builder.commit(*builder.deletion_vectors([(file, [0]) for file in files[:-1]]))
    [file] = chosen(builder, 4).files
    assert file.entry.data_file.file_path == files[-1].file_path


def test_equality_deletes_say_nothing_of_rows_but_one_file_is_tried(builder: TableBuilder) -> None:
    filled(builder)
    builder.commit(builder.equality_deletes(["id"], [(at,) for at in range(0, 30, 2)]))
    assert len(chosen(builder, 2).files) == FILES
    assert len(chosen(builder, 2, NEWEST).files) == FILES
    found = few(builder, 2)
    assert found is not None
    assert len(found) == 2
    assert all(at % 2 for at in found)
    # That file has as many rows, but too many are deleted.
    assert few(builder, 5) is None


_ORDERED = (INT, LONG, DATE, TIMESTAMP, STRING)


@given(st.data())
@examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_first_rows_are_those_of_all_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = RandomTable(data.draw, Path(directory) / "t", is_wide=data.draw(st.booleans()))
        for _ in range(data.draw(st.integers(5, 12))):
            made.step()
        table = load_table(str(made.builder.location))
        ids = [None, *(snapshot.snapshot_id for snapshot in table.snapshots())]
        options = ReadOptions(TimeTravel(data.draw(st.sampled_from(ids))))
        _, schema = resolve_read(options, table.metadata, table.name)
        first = _first(data, schema)
        scan = scanned(made.builder.location, first, options)
        all_rows, some = _ordered(scan, first), _ordered(with_first_rows(scan, first), first)
        local = few_rows(with_first_rows(scan, first), first)
        if first.order is None:
            assert len(some) >= min(first.count, len(all_rows))
            assert local is None or sum(map(len, local)) >= min(first.count, len(all_rows))
        else:
            assert some[: first.count] == all_rows[: first.count]


def _first(data: st.DataObject, schema: Schema) -> FirstRows:
    columns = [
        field
        for field in schema.fields
        if field.field_type in _ORDERED or isinstance(field.field_type, DecimalType)
    ]
    orders = st.builds(Order, st.sampled_from(columns), st.booleans(), st.booleans())
    return FirstRows(
        data.draw(st.integers(1, 4)),
        data.draw(st.just(TRUE) | filters(schema)),
        data.draw(st.none() | orders) if columns else None,
    )


def _ordered(scan: PlannedScan, first: FirstRows) -> list[Any]:
    """The values that rows are ordered by, in that order; of any rows, whatever is in them."""
    read = [batch for batch in batches_of(scan) if batch.num_rows]
    if first.order is None:
        return [None for batch in read for _ in range(batch.num_rows)]
    ids = [column.field_id for column in scan.plan.columns.fields]
    place = ids.index(first.order.column.field_id)
    values = [value for batch in read for value in batch.column(place).to_pylist()]
    present = sorted((v for v in values if v is not None), reverse=first.order.descending)
    nulls = [None] * (len(values) - len(present))
    return [*nulls, *present] if first.order.nulls_first else [*present, *nulls]
