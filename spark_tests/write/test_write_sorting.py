"""Rows in a table's sort order, and files that say so only if it is true."""

from __future__ import annotations

import math
from functools import cmp_to_key
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from built.rows import record_batch
from built.write_plans import plan_of, rows_of, write
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import UnsupportedFeatureError
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    apply,
)
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    UNKNOWN,
    UUID,
    IcebergType,
    NestedField,
)
from icebergds.write.rows.fanout import FanoutSettings
from icebergds.write.rows.sorting import OrderCheck, plan_order

FLOATS = [-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan]
VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    LONG: st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    STRING: st.text("ab\uffff\U0001f600", max_size=2),
    BINARY: st.binary(max_size=2),
    FLOAT: st.sampled_from(FLOATS),
    DOUBLE: st.sampled_from(FLOATS),
    BOOLEAN: st.booleans(),
    UUID: st.sampled_from([bytes(16), b"\xff" * 16, b"\x01" * 16]),
    UNKNOWN: st.none(),
}


def asc(source: int, transform: Transform = IdentityTransform()) -> SortField:  # noqa: B008
    return SortField((source,), transform, SortDirection.ASC, NullOrder.NULLS_FIRST)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, SortOrder, list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    columns = tuple(NestedField(at + 1, f"c{at}", kind) for at, kind in enumerate(types))
    transforms: dict[IcebergType, list[Transform]] = {
        LONG: [IdentityTransform(), BucketTransform(3)],
        STRING: [IdentityTransform(), TruncateTransform(1)],
    }
    fields = tuple(
        SortField(
            (column.field_id,),
            draw(st.sampled_from(transforms.get(column.field_type, [IdentityTransform()]))),
            draw(st.sampled_from(SortDirection)),
            draw(st.sampled_from(NullOrder)),
        )
        for column in draw(st.permutations(columns))
    )
    rows = draw(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in types)), max_size=10))
    return Schema(columns), SortOrder(5, fields), rows


def compare(schema: Schema, order: SortOrder, row: Any, other: Any) -> int:
    """The order's definition, one row and one key at a time."""
    for field in order.fields:
        at = field.source_id - 1
        kind = schema.fields[at].field_type
        a, b = (apply(field.transform, kind, values[at]) for values in (row, other))
        if a is None or b is None:
            if a is b:
                continue
            first = field.null_order is NullOrder.NULLS_FIRST
            return -1 if (a is None) == first else 1
        if isinstance(a, float):
            a, b = ([repr(x) for x in FLOATS].index(repr(x)) for x in (a, b))
        if isinstance(a, str):
            a, b = a.encode(), b.encode()
        if a != b:
            return (-1 if a < b else 1) * (1 if field.direction is SortDirection.ASC else -1)
    return 0


@examples(300)
@given(tables())
def test_sorted_rows_are_in_order_and_equal_ones_keep_theirs(table) -> None:  # type: ignore[no-untyped-def]
    schema, order, rows = table
    planned = plan_order(order, schema, table="t")
    assert planned is not None
    expected = sorted(rows, key=cmp_to_key(lambda a, b: compare(schema, order, a, b)))
    found = planned.sort(record_batch(schema, rows))
    assert repr(found.to_pylist()) == repr(record_batch(schema, expected).to_pylist())


@examples(300)
@given(tables(), st.integers(1, 4), st.booleans())
def test_the_check_sees_whether_all_rows_of_all_batches_are_in_order(table, size, is_sorted):  # type: ignore[no-untyped-def]
    schema, order, rows = table
    if is_sorted:
        rows = sorted(rows, key=cmp_to_key(lambda a, b: compare(schema, order, a, b)))
    planned = plan_order(order, schema, table="t")
    assert planned is not None
    check = OrderCheck(planned)
    batch = record_batch(schema, rows)
    for start in range(0, len(rows), size):
        check.add(batch.slice(start, size))
    pairs = pairwise(rows)
    assert check.in_order == all(compare(schema, order, a, b) <= 0 for a, b in pairs)


SCHEMA = Schema((NestedField(1, "a", LONG),))
BY_A = SortOrder(7, (asc(1),))


def batch(*values: int | None) -> Any:
    return record_batch(SCHEMA, [(value,) for value in values])


def test_a_file_of_sorted_rows_has_the_id_of_the_order(tmp_path: Path) -> None:
    (file,) = write(plan_of(tmp_path, SCHEMA, sort_order=BY_A), batch(None, 1), batch(1, 2))
    assert file.sort_order_id == 7


def test_a_file_with_a_row_out_of_place_is_unsorted(tmp_path: Path) -> None:
    (file,) = write(plan_of(tmp_path, SCHEMA, sort_order=BY_A), batch(1, 3), batch(2))
    assert file.sort_order_id == 0


def test_files_of_unsorted_tables_are_unsorted(tmp_path: Path) -> None:
    (file,) = write(plan_of(tmp_path, SCHEMA), batch(1, 2))
    assert file.sort_order_id == 0


def test_rows_are_sorted_across_batches_when_asked(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA, sort_order=BY_A, sort=True)
    (file,) = write(plan, batch(3, 1), batch(2, None))
    assert [row["a"] for row in rows_of([file])] == [None, 1, 2, 3]
    assert file.sort_order_id == 7


def test_a_file_of_several_sorted_runs_does_not_claim_to_be_sorted(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        SCHEMA,
        sort_order=BY_A,
        sort=True,
        fanout=FanoutSettings(max_buffered_bytes=2),
    )
    (file,) = write(plan, batch(3, 1))
    assert file.sort_order_id == 7
    files = write(plan, *(batch(*range(9, 0, -1)) for _ in range(2)), partition_id=1)
    for written in files:
        values = [row["a"] for row in rows_of([written])]
        assert (written.sort_order_id == 7) == (values == sorted(values))


def test_void_keys_do_not_matter_and_unknown_ones_are_refused_by_name() -> None:
    order = plan_order(SortOrder(2, (asc(1, VoidTransform()), asc(1))), SCHEMA, table="t")
    assert order is not None
    assert len(order.keys) == 1
    with pytest.raises(UnsupportedFeatureError, match=r"sort order 2 of table db\.t.*zorder"):
        plan_order(SortOrder(2, (asc(1, UnknownTransform("zorder")),)), SCHEMA, table="db.t")
