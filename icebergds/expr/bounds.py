"""Evaluates predicates on the lower and upper bounds of a column.

Bounds come from data files' metrics and from manifests' partition summaries. They cover all values
that are neither null nor NaN, and need not be values themselves: bounds of strings are truncated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from icebergds.errors import FormatError
from icebergds.expr.nodes import NEGATED, BoundPredicate, Operation, contains
from icebergds.spec.manifest import FileFormat
from icebergds.spec.types import DATE, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMPTZ, UUID, IcebergType
from icebergds.spec.values.binary import from_bytes
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY, MICROS_PER_DAY

FIRST_GREGORIAN: Mapping[IcebergType, int] = {
    DATE: FIRST_GREGORIAN_DAY,
    TIMESTAMP: FIRST_GREGORIAN_DAY * MICROS_PER_DAY,
    TIMESTAMPTZ: FIRST_GREGORIAN_DAY * MICROS_PER_DAY,
}
"""The first values that also hold in the hybrid calendar of imported ORC files."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Covers every value of a column that is neither null nor NaN; None is an unknown bound.

    `nan_free` is True if the column is known to have no NaN.
    """

    lower: Any
    upper: Any
    nan_free: bool


def decode_bounds(
    field_type: IcebergType,
    lower: bytes | None,
    upper: bytes | None,
    nan_count_is_zero: bool,
    file_format: FileFormat | None = None,
) -> Bounds:
    """Decodes serialised bounds of a type that has an order.

    Invalid bounds count as unknown: bytes that are not a value of the type, NaN (old writers
    stored it if it was the first value), and a lower bound above the upper one. So do bounds of
    ORC files before 1582: imported files may use the Julian calendar.
    """
    least, greatest = _decode(field_type, lower), _decode(field_type, upper)
    if file_format is FileFormat.ORC and field_type in FIRST_GREGORIAN:
        first = FIRST_GREGORIAN[field_type]
        least = None if least is None or least < first else least
        greatest = None if greatest is None or greatest < first else greatest
    if field_type == UUID:
        least, greatest = _uuid_range(least, greatest)
    broken = least != least or greatest != greatest
    if broken or (least is not None and greatest is not None and least > greatest):
        least = greatest = None
    return Bounds(least, greatest, nan_count_is_zero or not is_floating(field_type))


def is_floating(field_type: IcebergType) -> bool:
    """Whether values of a type can be NaN."""
    return field_type in (FLOAT, DOUBLE)


def might_hold(predicate: BoundPredicate, bounds: Bounds) -> bool:
    """Whether a comparison may be true for some value within bounds, or for a NaN."""
    lower, upper, values = bounds.lower, bounds.upper, predicate.values
    match predicate.op:
        case Operation.LT:
            return lower is None or bool(lower < values[0])
        case Operation.LT_EQ:
            return lower is None or bool(lower <= values[0])
        case Operation.GT:
            return not bounds.nan_free or upper is None or bool(upper > values[0])
        case Operation.GT_EQ:
            return not bounds.nan_free or upper is None or bool(upper >= values[0])
        case Operation.EQ | Operation.IN:
            first = 0 if lower is None else bisect_left(values, lower)
            return first < (len(values) if upper is None else bisect_right(values, upper))
        case Operation.NOT_EQ | Operation.NOT_IN:
            single = bounds.nan_free and lower is not None and bool(lower == upper)
            return not (single and contains(values, lower))
        case Operation.STARTS_WITH:
            prefix = values[0]
            return (lower is None or lower[: len(prefix)] <= prefix) and (
                upper is None or upper >= prefix
            )
        case Operation.NOT_STARTS_WITH:
            prefix = values[0]
            return not (
                lower is not None
                and upper is not None
                and lower.startswith(prefix)
                and upper.startswith(prefix)
            )
        case _:
            raise ValueError(f"{predicate} does not compare values")


def must_hold(predicate: BoundPredicate, bounds: Bounds) -> bool:
    """Whether a comparison is true for every value within bounds, and for any NaN."""
    # For a value that is not null, either a comparison is true or its negation.
    return not might_hold(replace(predicate, op=NEGATED[predicate.op]), bounds)


def _decode(field_type: IcebergType, data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return from_bytes(field_type, data)
    except FormatError:
        return None


def _uuid_range(lower: bytes | None, upper: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Bounds of uuids by unsigned bytes, from bounds that may follow another order.

    Java Iceberg orders uuids as two signed longs, Parquet by unsigned bytes, and Java's bounds of a
    file with several row groups mix both. In each of these orders, a lower bound with the first bit
    clear is not above the first 8 bytes of any value, and an upper bound with it set is not below
    them.
    """
    return (
        lower[:8] + bytes(8) if lower is not None and lower[0] < 0x80 else None,
        upper[:8] + b"\xff" * 8 if upper is not None and upper[0] >= 0x80 else None,
    )
