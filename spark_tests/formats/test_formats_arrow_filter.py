"""Masks over Arrow batches: the same rows as the row-by-row model."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, filters, rows, value_of

from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import FALSE, TRUE, BoundPredicate, Expr, Operation, Predicate, and_, or_
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.arrow.types import to_array, to_arrow
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    UNKNOWN,
    UUID,
    VARIANT,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)


def mask_of(expr: Expr, columns: dict[int, pa.Array]) -> list[bool]:
    arrays = list(columns.values())
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{field_id}" for field_id in columns])
    mask = filter_mask(expr, batch, columns.__getitem__)
    assert isinstance(mask, pa.BooleanArray)
    assert mask.null_count == 0
    return mask.to_pylist()


def ask(of: IcebergType, op: str, *literals: Any) -> BoundPredicate:
    return BoundPredicate(Operation(op), 1, of, literals)


@examples(250)
@given(st.data())
def test_masks_select_the_rows_of_the_model(data):
    columns = {
        1: data.draw(st.sampled_from(SCALAR_TYPES)),
        2: data.draw(st.sampled_from(SCALAR_TYPES)),
    }
    table = data.draw(rows(columns, max_size=10))
    expr = data.draw(filters(columns))
    start = data.draw(st.integers(0, len(table)))
    arrays = {
        field_id: to_array(of, [row[field_id] for row in table])[start:]
        for field_id, of in columns.items()
    }
    assert mask_of(expr, arrays) == [matches(expr, value_of(row)) for row in table[start:]]


@pytest.mark.parametrize("of", [FLOAT, DOUBLE])
@pytest.mark.parametrize(
    ("op", "literals", "selected"),
    [
        ("lt", (1.0,), [True, True, False, False, False, False]),
        ("gt", (1.0,), [False, False, False, True, True, False]),
        ("gt_eq", (math.inf,), [False, False, False, True, True, False]),
        ("eq", (0.0,), [True, True, False, False, False, False]),
        ("not_eq", (-0.0,), [False, False, True, True, True, False]),
        ("in", (0.0, 1.0), [True, True, True, False, False, False]),
        ("in", (-0.0, 1.0), [True, True, True, False, False, False]),
        ("not_in", (-0.0, 1.0), [False, False, False, True, True, False]),
        ("is_nan", (), [False, False, False, False, True, False]),
        ("not_nan", (), [True, True, True, True, False, True]),
    ],
)
def test_floats(of, op, literals, selected):
    column = pa.array([0.0, -0.0, 1.0, math.inf, math.nan, None], to_arrow(of))
    assert mask_of(ask(of, op, *literals), {1: column}) == selected


def test_bytes_compare_unsigned():
    column = pa.array(
        [bytes([first]) + bytes(15) for first in (0x00, 0x7F, 0x80, 0xFF)], pa.binary(16)
    )
    predicate = ask(UUID, "gt_eq", b"\x80" + bytes(15))
    assert mask_of(predicate, {1: column}) == [False, False, True, True]


def test_strings_compare_by_utf8():
    column = pa.array(["a", "\uffff", "\U00010000", None])
    assert mask_of(ask(STRING, "lt", "\U00010000"), {1: column}) == [True, True, False, False]


@pytest.mark.parametrize("op", ["starts_with", "not_starts_with"])
def test_prefixes_hold_no_wildcards(op):
    column = pa.array(["a%", "ab", "a", None])
    starts = [True, False, False, False]
    expected = starts if op == "starts_with" else [False, True, True, False]
    assert mask_of(ask(STRING, op, "a%"), {1: column}) == expected


@pytest.mark.parametrize(
    ("of", "values"),
    [
        (StructType((NestedField(2, "a", INT),)), [{"a": None}, None]),
        (ListType(2, INT), [[], None]),
        (VARIANT, [{"metadata": b"\x01", "value": b"\x00"}, None]),
    ],
)
def test_nulls_of_nested_columns(of, values):
    column = pa.array(values, to_arrow(of))
    assert mask_of(ask(of, "is_null"), {1: column}) == [False, True]
    assert mask_of(ask(of, "not_null"), {1: column}) == [True, False]


def test_nulls_of_columns_of_unknown_type():
    assert mask_of(ask(UNKNOWN, "is_null"), {1: pa.nulls(2)}) == [True, True]


@pytest.mark.parametrize("size", [0, 3])
def test_constants_have_the_length_of_the_batch(size):
    column = pa.array(range(size), pa.int32())
    assert mask_of(TRUE, {1: column}) == [True] * size
    assert mask_of(FALSE, {1: column}) == [False] * size


def test_connectives_take_no_nulls_over():
    column = pa.array([1, None, 3], pa.int32())
    one, null = ask(INT, "eq", 1), ask(INT, "is_null")
    assert mask_of(or_(one, null), {1: column}) == [True, True, False]
    assert mask_of(and_(one, null), {1: column}) == [False, False, False]


def test_unbound_filters_are_refused():
    with pytest.raises(TypeError, match="bind"):
        mask_of(Predicate(Operation.EQ, "a", (1,)), {1: pa.array([1])})


@pytest.mark.parametrize(
    ("op", "value", "selected"),
    [
        (Operation.GT_EQ, -(2**31) - 2, [True, True, False]),
        (Operation.LT, -(2**31) - 2, [False, False, False]),
        (Operation.LT_EQ, 2**31, [True, True, False]),
        (Operation.NOT_EQ, 2**31, [True, True, False]),
        (Operation.EQ, 2**31, [False, False, False]),
    ],
)
def test_values_beyond_a_type_are_compared_by_value(
    op: Operation, value: int, selected: list[bool]
) -> None:
    batch = pa.record_batch([pa.array([-(2**31), 2**31 - 1, None], pa.int32())], ["v"])
    mask = filter_mask(BoundPredicate(op, 1, INT, (value,)), batch, lambda _: batch.column(0))
    assert mask.to_pylist() == selected
