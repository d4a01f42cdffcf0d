"""Computes partition transforms, one value at a time (spec: Partition Transforms).

Values are in-memory values (see `types`); every transform of a null is null.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

import mmh3

from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.spec.types import (
    DATE,
    INT,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    DecimalType,
    IcebergType,
    TypeId,
    is_scalar,
)
from icebergds.spec.values.dates import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    NANOS_PER_MICRO,
    civil_from_days,
)
from icebergds.spec.values.decimals import from_unscaled, to_twos_complement, unscaled
from icebergds.spec.values.human_text import (
    human_day,
    human_hour,
    human_month,
    human_text,
    human_year,
)


@dataclass(frozen=True, slots=True)
class IdentityTransform:
    """The value itself."""

    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True, slots=True)
class BucketTransform:
    """A hash of the value modulo `num_buckets`."""

    num_buckets: int

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"


@dataclass(frozen=True, slots=True)
class TruncateTransform:
    """Rounds numbers down to a multiple of `width`; truncates strings and bytes to that length."""

    width: int

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


@dataclass(frozen=True, slots=True)
class YearTransform:
    """Years since 1970."""

    def __str__(self) -> str:
        return "year"


@dataclass(frozen=True, slots=True)
class MonthTransform:
    """Months since 1970-01."""

    def __str__(self) -> str:
        return "month"


@dataclass(frozen=True, slots=True)
class DayTransform:
    """The date."""

    def __str__(self) -> str:
        return "day"


@dataclass(frozen=True, slots=True)
class HourTransform:
    """Hours since 1970-01-01T00:00."""

    def __str__(self) -> str:
        return "hour"


@dataclass(frozen=True, slots=True)
class VoidTransform:
    """Always null; version 1 tables use it for dropped partition fields."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class UnknownTransform:
    """An unknown transform: readers ignore its field, and tables cannot be written with it."""

    text: str

    def __str__(self) -> str:
        return self.text


Transform = (
    IdentityTransform
    | BucketTransform
    | TruncateTransform
    | YearTransform
    | MonthTransform
    | DayTransform
    | HourTransform
    | VoidTransform
    | UnknownTransform
)

MAX_WIDTH = 2**31 - 1
"""The greatest width or number of buckets that other engines can read, too."""

KNOWN_TRANSFORMS = "identity, bucket[N], truncate[W], year, month, day, hour or void"
"""The transforms of the spec, as messages list them."""


def parse_transform(text: str) -> Transform:
    """Parses the text of a transform in metadata; an `UnknownTransform` if it is not known."""
    lowered = text.lower()
    simple = _SIMPLE.get(lowered)
    if simple is not None:
        return simple
    match = _WITH_WIDTH.fullmatch(lowered)
    if match is None or int(match[2]) == 0:
        return UnknownTransform(text)
    width = int(match[2])
    return BucketTransform(width) if match[1] == "bucket" else TruncateTransform(width)


def width_of(transform: Transform) -> int:
    """The number of buckets, or the width; 1 for other transforms."""
    match transform:
        case BucketTransform(num_buckets=width) | TruncateTransform(width=width):
            return width
        case _:
            return 1


def can_transform(transform: Transform, source_type: IcebergType) -> bool:
    """Whether a transform accepts columns of a type; unknown transforms accept every type."""
    if isinstance(transform, VoidTransform | UnknownTransform):
        return True
    if not is_scalar(source_type):
        return False
    type_id = source_type.type_id
    match transform:
        case IdentityTransform():
            return type_id not in _NO_IDENTITY
        case BucketTransform():
            return type_id in _BUCKETED
        case TruncateTransform():
            return type_id in _TRUNCATED
        case HourTransform():
            return type_id in _TIMESTAMPS
        case _:
            return type_id in _TIMESTAMPS or type_id is TypeId.DATE


def result_type(transform: Transform, source_type: IcebergType) -> IcebergType:
    """The type of a transform's values: `unknown` for unknown transforms."""
    match transform:
        case IdentityTransform() | TruncateTransform() | VoidTransform():
            return source_type
        case DayTransform():
            return DATE
        case UnknownTransform():
            return UNKNOWN
        case _:
            return INT


def apply(transform: Transform, source_type: IcebergType, value: Any) -> Any:
    """Transforms a column's value to a partition value.

    Raises InvalidDataError if the transform does not accept the type, UnsupportedFeatureError
    for unknown transforms.
    """
    if isinstance(transform, UnknownTransform):
        raise UnsupportedFeatureError(
            f"partition transform {transform.text!r} is unknown: its values cannot be computed"
        )
    if not can_transform(transform, source_type):
        raise InvalidDataError(f"transform {transform} does not accept type {source_type}")
    if value is None:
        return None
    match transform:
        case IdentityTransform():
            return value
        case VoidTransform():
            return None
        case BucketTransform(num_buckets=num_buckets):
            return (bucket_hash(source_type, value) & 0x7FFFFFFF) % num_buckets
        case TruncateTransform(width=width):
            return _truncate(width, source_type, value)
        case HourTransform():
            return _micros(source_type, value) // MICROS_PER_HOUR
        case DayTransform():
            return _days(source_type, value)
        case MonthTransform():
            year, month, _ = civil_from_days(_days(source_type, value))
            return (year - 1970) * 12 + month - 1
        case YearTransform():
            return civil_from_days(_days(source_type, value))[0] - 1970


def bucket_hash(source_type: IcebergType, value: Any) -> int:
    """The signed 32-bit hash of a value that is not null (spec: Appendix B).

    Also defined for boolean, float and double, which bucket transforms do not accept.
    Raises InvalidDataError for types that have no hash.
    """
    return int(mmh3.hash(_hashed_bytes(source_type, value), 0))


def preserves_order(transform: Transform) -> bool:
    """Whether a <= b implies that the partition value of a is <= that of b.

    One exception: truncated integers less than a width above their type's minimum wrap around to
    its maximum, in Java Iceberg and therefore here.
    """
    return not isinstance(transform, BucketTransform | VoidTransform | UnknownTransform)


def to_human(transform: Transform, source_type: IcebergType, partition_value: Any) -> str:
    """The text of a partition value in partition directories; None is `null`."""
    if partition_value is None:
        return "null"
    match transform:
        case YearTransform():
            return human_year(partition_value)
        case MonthTransform():
            return human_month(partition_value)
        case DayTransform():
            return human_day(partition_value)
        case HourTransform():
            return human_hour(partition_value)
        case _:
            return human_text(result_type(transform, source_type), partition_value)


_SIMPLE: dict[str, Transform] = {
    str(transform): transform
    for transform in (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
}
_WITH_WIDTH = re.compile(r"(bucket|truncate)\[(\d+)\]", re.ASCII)
_NO_IDENTITY = frozenset({TypeId.VARIANT, TypeId.GEOMETRY, TypeId.GEOGRAPHY})
_NANO_TYPES = (TIMESTAMP_NS, TIMESTAMPTZ_NS)
_TIMESTAMPS = frozenset(
    {TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ, TypeId.TIMESTAMP_NS, TypeId.TIMESTAMPTZ_NS}
)
_TRUNCATED = frozenset({TypeId.INT, TypeId.LONG, TypeId.DECIMAL, TypeId.STRING, TypeId.BINARY})
_BUCKETED = _TRUNCATED | _TIMESTAMPS | {TypeId.DATE, TypeId.TIME, TypeId.UUID, TypeId.FIXED}
_LONG = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")


def _hashed_bytes(source_type: IcebergType, value: Any) -> bytes:
    match source_type.type_id if is_scalar(source_type) else None:
        case (
            TypeId.BOOLEAN
            | TypeId.INT
            | TypeId.LONG
            | TypeId.DATE
            | TypeId.TIME
            | TypeId.TIMESTAMP
            | TypeId.TIMESTAMPTZ
        ):
            return _LONG.pack(value)
        case TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS:
            return _LONG.pack(value // NANOS_PER_MICRO)
        case TypeId.DECIMAL:
            assert isinstance(source_type, DecimalType)
            return to_twos_complement(unscaled(value, source_type.scale))
        case TypeId.STRING:
            text: str = value
            return text.encode()
        case TypeId.UUID | TypeId.FIXED | TypeId.BINARY:
            return bytes(value)
        case TypeId.FLOAT | TypeId.DOUBLE:
            # Appendix B: only one zero and one NaN, so that equal values have equal hashes.
            canonical = value + 0.0 if value == value else float("nan")
            return _DOUBLE.pack(canonical)
        case _:
            raise InvalidDataError(f"type {source_type} has no bucket hash")


def _truncate(width: int, source_type: IcebergType, value: Any) -> Any:
    match source_type:
        case DecimalType(scale=scale):
            number = unscaled(value, scale)
            return from_unscaled(number - number % width, scale)
        case _ if isinstance(value, int):
            # Just above the type's minimum, the result overflows. Java wraps around, and manifests
            # hold the values that Java computes.
            bits = 32 if source_type == INT else 64
            half = 1 << (bits - 1)
            return (value - value % width + half) % (1 << bits) - half
        case _:
            return value[:width]


def _micros(source_type: IcebergType, value: int) -> int:
    return value // NANOS_PER_MICRO if source_type in _NANO_TYPES else value


def _days(source_type: IcebergType, value: int) -> int:
    return value if source_type == DATE else _micros(source_type, value) // MICROS_PER_DAY
