"""Values, filters and projections of random tables.

Values come from small pools, so that rows, keys, bounds, partitions and literals meet often.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from icebergds.expr.nodes import SETS, TRUE, UNARY, BoundPredicate, Expr, Operation, and_, or_
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
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)

_DAY = 86_400_000_000
_NARROW, WIDE = DecimalType(4, 2), DecimalType(20, 2)
_THIRD: float = struct.unpack("<f", struct.pack("<f", 1 / 3))[0]
# Null, true and the number 7.
_VARIANTS = [
    {"metadata": b"\x01\x00\x00", "value": value} for value in (b"\x00", b"\x04", b"\x0c\x07")
]
_INTS = [-3, -1, 0, 1, 2, 3, 2**31 - 1]
_FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, _THIRD]
_DECIMALS = [Decimal("-1.50"), Decimal("0.00"), Decimal("0.49"), Decimal("99.99")]
POOLS: dict[IcebergType, list[Any]] = {
    BOOLEAN: [False, True],
    INT: _INTS,
    LONG: [*_INTS, -(2**63), 2**40],
    FLOAT: _FLOATS,
    DOUBLE: [*_FLOATS, 0.1, 1e300],
    _NARROW: _DECIMALS,
    WIDE: [*_DECIMALS, Decimal("-123456789012345678.90")],
    DATE: [-366, -1, 0, 1, 31, 365, 18_262],
    TIMESTAMP: [-_DAY, -1, 0, 1, _DAY // 24, _DAY, 31 * _DAY, 365 * _DAY + 1],
    STRING: ["", "a", "a\x00", "ab", "abc", "b", "\u00e9", "\uffff", "\U00010000"],
    BINARY: [b"", b"a", b"a\x00", b"ab", b"\x00", b"\xff", b"\xff\xff"],
    UUID: [bytes([first]) + bytes(14) + bytes([last]) for first in (0, 0x80) for last in (0, 1)],
}
TYPES: list[IcebergType] = [*(t for t in POOLS if t != WIDE), INT, INT, STRING]
_WIDE_POOLS: dict[IcebergType, list[Any]] = {
    TIMESTAMPTZ: POOLS[TIMESTAMP],
    TIME: [0, 1, 3_600_000_000, 86_399_999_999],
    FixedType(3): [b"\x00\x00\x00", b"abc", b"\xff\xff\xff"],
    DecimalType(38, 0): [Decimal(0), Decimal(-1), Decimal(10**38 - 1)],
    TIMESTAMP_NS: [value * 1000 for value in POOLS[TIMESTAMP]],
    TIMESTAMPTZ_NS: [0, 1, 999, 1000, 86_400_000_000_001],
}
POOLS |= _WIDE_POOLS
WIDE_TYPES = list(_WIDE_POOLS)
"""Types of tables that are to have all of them; the last two came with version 3."""


def filters(schema: Schema) -> st.SearchStrategy[Expr]:
    """Bound filters on the scalar columns of a schema, at any depth of structs."""
    leaves = [field for field in scalar_fields(schema.fields) if field.field_type != UNKNOWN]
    if not leaves:
        return st.just(TRUE)
    predicate = st.sampled_from(leaves).flatmap(_predicates)
    return st.recursive(
        predicate,
        lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda parts: st.sampled_from([and_(*parts), or_(*parts)])
        ),
        max_leaves=4,
    )


def projections(schema: Schema, metadata_columns: Sequence[NestedField]) -> Any:
    """Names of columns in any order, nested and metadata columns among them."""
    own = [path for path in schema.paths_by_id.values() if not {"element"} & set(path)]
    names = [*own, *((column.name,) for column in metadata_columns)]
    return st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True)


def _predicates(field: NestedField) -> st.SearchStrategy[Expr]:
    field_type = field.field_type
    literals = st.sampled_from([value for value in POOLS[field_type] if value == value])
    skipped = set() if field_type == STRING else {"starts_with", "not_starts_with"}
    if field_type not in (FLOAT, DOUBLE):
        skipped |= {"is_nan", "not_nan"}
    operations = [op for op in Operation if op.value not in skipped]

    def with_values(op: Operation) -> st.SearchStrategy[Expr]:
        if op in UNARY:
            values = st.just([])
        elif op in SETS:
            values = st.lists(literals, min_size=1, max_size=3)
        elif op in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
            values = literals.filter(bool).map(lambda value: [value])
        else:
            values = literals.map(lambda value: [value])
        return values.map(
            lambda found: BoundPredicate(op, field.field_id, field_type, tuple(found))
        )

    return st.sampled_from(operations).flatmap(with_values)


def values_of_field(field: NestedField) -> st.SearchStrategy[Any]:
    match field.field_type:
        case StructType(fields=inner):
            value: st.SearchStrategy[Any] = st.tuples(*map(values_of_field, inner))
        case ListType(element_type=element):
            value = st.lists(values_of_field(NestedField(0, "", element)), max_size=2)
        case MapType(key_type=key, value_type=element):
            entry = st.tuples(
                values_of_field(NestedField(0, "", key, True)),
                values_of_field(NestedField(0, "", element)),
            )
            value = st.lists(entry, max_size=2, unique_by=lambda e: e[0])
        case _ if field.field_type == UNKNOWN:
            return st.none()
        case _ if field.field_type == VARIANT:
            value = st.sampled_from(_VARIANTS)
        case field_type:
            pool = POOLS[field_type]
            return st.sampled_from(pool if field.required else [None, *pool])
    return value if field.required else st.none() | value


def scalar_fields(fields: Sequence[NestedField]) -> list[NestedField]:
    """Scalar fields at the top and inside structs."""
    found: list[NestedField] = []
    for field in fields:
        if isinstance(field.field_type, StructType):
            found += scalar_fields(field.field_type.fields)
        elif is_scalar(field.field_type) and field.field_type != VARIANT:
            found.append(field)
    return found
