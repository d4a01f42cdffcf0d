"""A schema with every type, and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from built.schemas import optional, required
from hypothesis import strategies as st

from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
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
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    StructType,
)

_NANOS = st.integers(-(2**63) + 1, 2**63 - 1)
# The years 1678 to 2262, which every format can hold.
_MICROS = st.integers(-(2**63) // 1000 + 1, (2**63) // 1000 - 1)
_TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from("a\U0010ffff\ud7ff\ue000z"), max_size=40),
    st.builds(lambda c, n: c * n, st.sampled_from("aé\U0010ffff"), st.integers(4090, 5000)),
)
_BYTES = st.one_of(
    st.binary(max_size=40),
    st.builds(lambda c, n: c * n, st.sampled_from([b"a", b"\xff"]), st.integers(4090, 5000)),
)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    most = 10**precision - 1
    return st.integers(-most, most).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale))
    )


def _floats(width: int) -> st.SearchStrategy[Any]:
    common = st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0])
    return st.one_of(common, st.floats(width=width))


SCALARS: dict[IcebergType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: _floats(32),
    DOUBLE: _floats(64),
    DATE: st.integers(-100_000, 100_000),
    TIME: st.integers(0, 86_399_999_999),
    TIMESTAMP: _MICROS,
    TIMESTAMPTZ: _MICROS,
    TIMESTAMP_NS: _NANOS,
    TIMESTAMPTZ_NS: _NANOS,
    STRING: _TEXTS,
    UUID: st.binary(min_size=16, max_size=16),
    BINARY: _BYTES,
    FixedType(5): st.binary(min_size=5, max_size=5),
    FixedType(20): st.binary(min_size=20, max_size=20),
    DecimalType(9, 2): _decimals(9, 2),
    DecimalType(18, 0): _decimals(18, 0),
    DecimalType(38, 10): _decimals(38, 10),
}
"""Every scalar type with an order, with strategies for values in memory."""

EVERY_TYPE = Schema(
    (
        *(optional(at, f"c{at}", scalar) for at, scalar in enumerate(SCALARS, start=1)),
        required(50, "key", LONG),
        optional(
            51,
            "point",
            StructType(
                (
                    required(52, "x", DOUBLE),
                    optional(53, "id", UUID),
                    optional(54, "label", STRING),
                    optional(55, "none", UNKNOWN),
                )
            ),
        ),
        optional(56, "tags", ListType(57, STRING, element_required=True)),
        optional(58, "ids", ListType(59, UUID)),
        optional(60, "by_name", MapType(61, STRING, 62, DecimalType(9, 2))),
        optional(63, "by_id", MapType(64, LONG, 65, DATE, value_required=True)),
        optional(66, "none", UNKNOWN),
        optional(
            67,
            "deep",
            ListType(68, StructType((optional(69, "when", TIMESTAMPTZ), optional(70, "u", UUID)))),
        ),
        optional(71, "shape", GeometryType()),
        optional(72, "place", GeographyType()),
        optional(73, "any", VARIANT),
        optional(74, "events", ListType(75, StructType((required(76, "payload", VARIANT),)))),
        optional(77, "any_by_name", MapType(78, STRING, 79, VARIANT)),
    )
)
"""A schema with every type, at the top and nested."""


def values_of(field_type: IcebergType, is_required: bool = False) -> st.SearchStrategy[Any]:
    """Values in memory of a type, with nulls where they may be."""
    values: st.SearchStrategy[Any]
    match field_type:
        case StructType(fields=fields):
            values = st.tuples(*(values_of(f.field_type, f.required) for f in fields))
        case ListType():
            element = values_of(field_type.element_type, field_type.element_required)
            values = st.lists(element, max_size=3)
        case MapType():
            entry = st.tuples(
                values_of(field_type.key_type, True),
                values_of(field_type.value_type, field_type.value_required),
            )
            values = st.lists(entry, max_size=3, unique_by=lambda e: e[0])
        case GeometryType() | GeographyType():
            values = st.just(b"\x01\x01\x00\x00\x00" + bytes(16))
        case _ if field_type == UNKNOWN:
            return st.none()
        case _ if field_type == VARIANT:
            parts = {"metadata": st.just(b"\x01\x00\x00"), "value": st.binary(min_size=1)}
            values = st.fixed_dictionaries(parts)
        case _:
            values = SCALARS[field_type]
    return values if is_required else st.one_of(st.none(), values)


def rows_of_schema(schema: Schema, max_size: int) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Lists of rows of in-memory values."""
    row = st.tuples(*(values_of(f.field_type, f.required) for f in schema.fields))
    return st.lists(row, max_size=max_size)


def rows_that_fit(
    file_format: FileFormat, schema: Schema, rows: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """The rows; for ORC with whole seconds before 1970, since it takes no fractions of them."""
    if file_format is not FileFormat.ORC:
        return [tuple(row) for row in rows]
    types = [field.field_type for field in schema.fields]
    return [tuple(map(_with_whole_seconds, types, row)) for row in rows]


def _with_whole_seconds(field_type: IcebergType, value: Any) -> Any:
    if value is None:
        return None
    match field_type:
        case StructType(fields=fields):
            return tuple(
                _with_whole_seconds(f.field_type, v) for f, v in zip(fields, value, strict=True)
            )
        case ListType():
            return [_with_whole_seconds(field_type.element_type, v) for v in value]
        case MapType():
            key_type, value_type = field_type.key_type, field_type.value_type
            pairs = ((_with_whole_seconds(key_type, k), v) for k, v in value)
            # Keys that have become the same are one.
            return [(k, _with_whole_seconds(value_type, v)) for k, v in dict(pairs).items()]
    if field_type in (TIMESTAMP, TIMESTAMPTZ) and value < 0:
        return -(-value // 10**6 * 10**6)
    if field_type in (TIMESTAMP_NS, TIMESTAMPTZ_NS) and value < 0:
        return -(-value // 10**9 * 10**9)
    return value
