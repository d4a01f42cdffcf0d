"""Hypothesis strategies of columns, rows and bound filters, crowded where mistakes would be.

Values come from small pools around each type's edges, so that rows, literals, bounds and partition
boundaries meet often.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from icebergds.expr.nodes import SETS, UNARY, BoundPredicate, Expr, Operation, and_, or_
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)
from icebergds.spec.values.decimals import from_unscaled

DAY = 86_400_000_000
SCALAR_TYPES: tuple[IcebergType, ...] = (
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DecimalType(4, 2),
    DecimalType(38, 0),
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    STRING,
    UUID,
    FixedType(2),
    BINARY,
)
Row = dict[int, Any]


@cache
def values_of(field_type: IcebergType) -> st.SearchStrategy[Any]:
    """Values of a type that are not null; NaN among them for floating-point types."""
    match field_type:
        case DecimalType(precision=precision, scale=scale):
            limit = 10**precision - 1
            return _around([0, -limit, limit], -limit, limit).map(
                lambda number: from_unscaled(number, scale)
            )
        case FixedType(length=length):
            return st.lists(_BYTES, min_size=length, max_size=length).map(bytes)
        case _:
            return _VALUES[field_type]


@cache
def literals_of(field_type: IcebergType) -> st.SearchStrategy[Any]:
    """Values that a bound predicate may hold."""
    return values_of(field_type).filter(lambda value: value == value)


def rows(
    columns: dict[int, IcebergType], min_size: int = 0, max_size: int = 6, nulls: bool = True
) -> st.SearchStrategy[list[Row]]:
    value = {
        field_id: st.none() | values_of(field_type) if nulls else values_of(field_type)
        for field_id, field_type in columns.items()
    }
    return st.lists(st.fixed_dictionaries(value), min_size=min_size, max_size=max_size)


@cache
def predicates(field_id: int, field_type: IcebergType) -> st.SearchStrategy[Expr]:
    literal = literals_of(field_type)
    return st.sampled_from(operations_of(field_type)).flatmap(
        lambda op: _values_for(op, literal).map(
            lambda values: BoundPredicate(op, field_id, field_type, tuple(values))
        )
    )


def filters(columns: dict[int, IcebergType], max_leaves: int = 4) -> st.SearchStrategy[Expr]:
    leaf = st.one_of(*(predicates(*column) for column in columns.items()))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: and_(*parts)),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: or_(*parts)),
        ),
        max_leaves=max_leaves,
    )


def operations_of(field_type: IcebergType) -> list[Operation]:
    skipped: set[Operation] = set()
    if field_type != STRING:
        skipped |= {Operation.STARTS_WITH, Operation.NOT_STARTS_WITH}
    if field_type not in (FLOAT, DOUBLE):
        skipped |= {Operation.IS_NAN, Operation.NOT_NAN}
    return [op for op in Operation if op not in skipped]


def value_of(row: Row) -> Callable[[int], Any]:
    return row.__getitem__


def _values_for(op: Operation, literal: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    if op in UNARY:
        return st.just([])
    if op in SETS:
        return st.lists(literal, min_size=1, max_size=4)
    if op in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return literal.filter(bool).map(lambda value: [value])
    return literal.map(lambda value: [value])


def _around(centres: list[int], low: int, high: int) -> st.SearchStrategy[int]:
    return (
        st.builds(int.__add__, st.sampled_from(centres), st.integers(-3, 3))
        .filter(lambda value: low <= value <= high)
        .map(int)
    )


def _instants(unit: int) -> st.SearchStrategy[int]:
    """Around the boundaries of hours, days, months and years before and after 1970."""
    days = [-719_528, -366, -365, -59, -31, -1, 0, 1, 31, 59, 365, 11_016, 18_262]
    hours = [-1, 0, 1, 12]
    edges = [day * DAY + hour * DAY // 24 for day in days for hour in hours]
    if unit > 1:  # nanoseconds reach from 1677 to 2262
        edges = [edge for edge in edges if abs(edge) * unit < 2**63 - 10]
    return _around([edge * unit for edge in edges], -(2**63), 2**63 - 1)


def _single(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


_INTS = [0, 10, -10, 7, 100]
_BYTES = st.sampled_from([0x00, 0x01, 0x61, 0x7F, 0x80, 0xFF])
_TEXTS = st.text(alphabet="aab\u00e9\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=4)
_FLOATS = [0.0, -0.0, 1.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308]
_SINGLES = [0.0, -0.0, 1.0, 1.5, math.inf, -math.inf, math.nan, _single(0.1), _single(3.4028234e38)]
_VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: _around([*_INTS, -(2**31), 2**31 - 1], -(2**31), 2**31 - 1),
    LONG: _around([*_INTS, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1], -(2**63), 2**63 - 1),
    FLOAT: st.sampled_from(_SINGLES),
    DOUBLE: st.sampled_from(_FLOATS),
    DATE: _around([-719_528, -366, -365, -31, -1, 0, 31, 365, 18_262], -(2**31), 2**31 - 1),
    TIME: _around([0, DAY // 2, DAY - 1], 0, DAY - 1),
    TIMESTAMP: _instants(1),
    TIMESTAMPTZ: _instants(1),
    TIMESTAMP_NS: _instants(1000),
    TIMESTAMPTZ_NS: _instants(1000),
    STRING: _TEXTS,
    UUID: st.lists(_BYTES, min_size=3, max_size=3).map(
        lambda b: bytes([b[0]]) + bytes(6) + bytes([b[1]]) + bytes([b[2]]) + bytes(7)
    ),
    BINARY: st.lists(_BYTES, max_size=3).map(bytes),
}
