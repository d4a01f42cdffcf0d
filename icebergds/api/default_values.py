"""Converts defaults of columns to values of their types."""

from __future__ import annotations

import math
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.expr.literals import nearest_single, round_literal
from icebergds.spec.types import FLOAT, IcebergType, TypeId, is_scalar


def default_value(column: str, field_type: IcebergType, value: Any) -> Any:
    """A default as a value of the column's type.

    Args:
        column: its name, for messages.
        value: not None; datetimes without a zone are in UTC.

    Raises:
        InvalidOptionError: the type has fields of its own, or it has no such value.
    """
    if not is_scalar(field_type):
        raise InvalidOptionError(
            f"column {column!r} of type {field_type} cannot have a default; give the fields inside "
            "it one"
        )
    shown = f"default {value!r} of column {column!r} of type {field_type}"
    if field_type.type_id in (TypeId.BINARY, TypeId.FIXED) and isinstance(value, bytes):
        length = getattr(field_type, "length", len(value))
        if len(value) != length:
            raise InvalidOptionError(f"{shown} has {len(value)} bytes, expected {length}")
        return value
    try:
        rounded = round_literal(field_type, value, "UTC")
    except ValueError as error:
        raise InvalidOptionError(f"{shown}: {error}") from None
    if field_type == FLOAT and not isinstance(value, int) and math.isfinite(float(value)):
        # Few fractions are exact in single precision: the nearest one is meant.
        nearest = nearest_single(float(value))
        if nearest is not None:
            return nearest
    bounds = (rounded.floor, rounded.ceiling)
    if any(isinstance(bound, float) and not math.isfinite(bound) for bound in bounds):
        raise InvalidOptionError(f"{shown}: expected a finite number, as JSON has no others")
    if rounded.is_exact:
        return rounded.floor
    raise InvalidOptionError(f"{shown} is not a value of the type")
