"""Serialises the bounds of column metrics, truncated so that they still hold for every value.

Values are ordered as in the spec and in all readers: strings by code point, which is the order of
their UTF-8 bytes, and bytes as unsigned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.bounding_boxes import is_geospatial
from icebergds.formats.data_file.metrics_modes import MetricsKind, MetricsMode
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    STRING,
    UNKNOWN,
    UUID,
    VARIANT,
    ScalarType,
)
from icebergds.spec.values.binary import to_bytes


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest of some in-memory values, leaving out nulls and NaN."""

    least: Any
    greatest: Any

    def union(self, other: Range | None) -> Range:
        """The range that covers both."""
        if other is None:
            return self
        return Range(min(self.least, other.least), max(self.greatest, other.greatest))


def union_of(ranges: Iterable[Range | None]) -> Range | None:
    """The range that covers all; None if there is none."""
    whole: Range | None = None
    for values in ranges:
        whole = whole if values is None else values.union(whole)
    return whole


def has_bounds(field_type: ScalarType) -> bool:
    """Whether bounds are kept for a type that are the least and the greatest value.

    Bounds of geometries and geographies are corners of a box.
    """
    return not is_geospatial(field_type) and field_type not in (VARIANT, UNKNOWN)


def serialized_bounds(
    field_type: ScalarType, values: Range, mode: MetricsMode
) -> tuple[bytes | None, bytes | None]:
    """The lower and upper bound for a metrics mode; None if there is no bound that short."""
    least, greatest = bounds_of(field_type, values, mode)
    return _serialized(field_type, least), _serialized(field_type, greatest)


def bounds_of(field_type: ScalarType, values: Range, mode: MetricsMode) -> tuple[Any, Any]:
    """The in-memory values of `serialized_bounds`."""
    least, greatest = values.least, values.greatest
    if field_type == UUID:
        return _uuid_bounds(least, greatest)
    if field_type in (FLOAT, DOUBLE):
        # The zeros are equal in Python, but readers order -0.0 before 0.0.
        least = -0.0 if least == 0 else least
        greatest = 0.0 if greatest == 0 else greatest
    elif mode.kind is MetricsKind.TRUNCATE:
        if field_type == STRING:
            least, greatest = least[: mode.length], _truncated_string_above(greatest, mode.length)
        elif field_type == BINARY:
            least, greatest = least[: mode.length], _truncated_bytes_above(greatest, mode.length)
    return least, greatest


_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def _serialized(field_type: ScalarType, value: Any) -> bytes | None:
    try:
        return None if value is None else to_bytes(field_type, value)
    except InvalidDataError:
        return None


def _truncated_string_above(value: str, length: int) -> str | None:
    """The least string of at most `length` that is not below the value; None if there is none."""
    if len(value) <= length:
        return value
    for at in reversed(range(length)):
        code_point = ord(value[at]) + 1
        if code_point in _SURROGATES:
            code_point = _SURROGATES.stop
        if code_point <= _LAST_CODE_POINT:
            return value[:at] + chr(code_point)
    return None


def _truncated_bytes_above(value: bytes, length: int) -> bytes | None:
    if len(value) <= length:
        return value
    for at in reversed(range(length)):
        if value[at] < 0xFF:
            return value[:at] + bytes([value[at] + 1])
    return None


_FIRST_BIT = 1 << 63


def _uuid_bounds(least: bytes, greatest: bytes) -> tuple[bytes | None, bytes | None]:
    """Bounds that hold whether readers compare uuids as unsigned bytes or as two signed longs.

    Java Iceberg did the latter up to version 1.10. Both orders agree on the first halves if their
    first bits are equal, so bounds are rounded to the next first half, and left out if bits differ.
    """
    first, last = int.from_bytes(least[:8], "big"), int.from_bytes(greatest[:8], "big")
    if (first ^ last) & _FIRST_BIT:
        return None, None
    below, above = first - 1, last + 1
    lower = below.to_bytes(8, "big") + bytes(8) if first % _FIRST_BIT else None
    upper = above.to_bytes(8, "big") + bytes(8) if above % _FIRST_BIT else None
    return lower, upper
