"""Decides which types a column may be promoted to (spec: Schema Evolution)."""

from __future__ import annotations

from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    UNKNOWN,
    DecimalType,
    IcebergType,
)


def can_promote(from_type: IcebergType, to_type: IcebergType, format_version: int = 3) -> bool:
    """Whether data of one type may be read as another; every type may be read as itself.

    Nested types must be equal: call this for the fields inside them one by one.
    """
    if from_type == to_type or (from_type, to_type) in _SINCE_V1:
        return True
    if isinstance(from_type, DecimalType) and isinstance(to_type, DecimalType):
        return from_type.scale == to_type.scale and from_type.precision <= to_type.precision
    return format_version >= 3 and (from_type == UNKNOWN or (from_type, to_type) in _SINCE_V3)


_SINCE_V1 = ((INT, LONG), (FLOAT, DOUBLE))
_SINCE_V3 = ((DATE, TIMESTAMP), (DATE, TIMESTAMP_NS))
