"""Hypothesis strategies of types and of their in-memory values."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

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
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.spec.values.decimals import from_unscaled

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)


@st.composite
def decimal_types(draw: st.DrawFn) -> DecimalType:
    precision = draw(st.integers(1, 38))
    return DecimalType(precision, draw(st.integers(0, precision)))


def scalar_types() -> st.SearchStrategy[IcebergType]:
    """Every type whose values have a binary and a JSON form."""
    return st.one_of(
        st.sampled_from(list(_PLAIN)), decimal_types(), st.builds(FixedType, st.integers(1, 8))
    )


def all_types() -> st.SearchStrategy[IcebergType]:
    """Scalars and nested types; the ids of their fields may repeat."""
    return st.recursive(
        scalar_types(),
        lambda inner: st.one_of(
            st.builds(ListType, _IDS, inner, st.booleans()),
            st.builds(MapType, _IDS, inner, _IDS, inner, st.booleans()),
            st.lists(st.builds(NestedField, _IDS, TEXT, inner), max_size=3, unique_by=_by_name).map(
                lambda fields: StructType(tuple(fields))
            ),
        ),
        max_leaves=5,
    )


def values_of(field_type: IcebergType) -> st.SearchStrategy[Any]:
    match field_type:
        case DecimalType(precision=precision, scale=scale):
            return decimals(precision, scale)
        case FixedType(length=length):
            return st.binary(min_size=length, max_size=length)
        case _:
            return _PLAIN[field_type]


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda number: from_unscaled(number, scale))


def typed_values(types: st.SearchStrategy[IcebergType]) -> st.SearchStrategy[tuple[Any, Any]]:
    return types.flatmap(lambda t: st.tuples(st.just(t), values_of(t)))


def _by_name(field: NestedField) -> str:
    return field.name


_IDS = st.integers(1, 1000)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: INT32,
    LONG: INT64,
    FLOAT: st.floats(width=32, allow_nan=False).map(
        lambda value: struct.unpack("<f", struct.pack("<f", value))[0]
    ),
    DOUBLE: st.floats(allow_nan=False),
    DATE: INT32,
    TIME: st.integers(0, 86_400_000_000 - 1),
    TIMESTAMP: INT64,
    TIMESTAMPTZ: INT64,
    TIMESTAMP_NS: INT64,
    TIMESTAMPTZ_NS: INT64,
    STRING: TEXT,
    UUID: st.binary(min_size=16, max_size=16),
    BINARY: st.binary(max_size=20),
}
