"""Detects comparisons that are exact here but that Spark makes on other values."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal

from icebergds.expr.literals import is_skipped
from icebergds.expr.names import resolve
from icebergds.expr.nodes import And, Expr, Not, Or, Predicate, conjuncts, disjuncts
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    UUID,
    DecimalType,
    IcebergType,
)

# Integers up to these are exact as floats and doubles.
_WHOLE_SINGLES = 2**24
_WHOLE_DOUBLES = 2**53
# Decimals with up to so many digits stay distinct as doubles.
_DECIMAL_DIGITS = 15
_LONG_DIGITS = 20
_MOST_DIGITS = 38


def compares_exactly(expr: Expr, schema: Schema, *, case_sensitive: bool = True) -> bool:
    """Whether Spark compares the columns and literals of a filter by their exact values, too.

    It rounds an integer or decimal to floating point if the other side is a floating-point number:
    to Spark, the long 9007199254740993 equals `9007199254740992D`. A timestamp without a zone that
    the session's time zone skips becomes a later one, unless it is written as `TIMESTAMP_NTZ`. A
    uuid is its text in lower case.

    Args:
        expr: a filter that binds to the schema.
    """
    match expr:
        case And() | Or():
            parts = conjuncts(expr) if isinstance(expr, And) else disjuncts(expr)
            return all(compares_exactly(p, schema, case_sensitive=case_sensitive) for p in parts)
        case Not():
            return compares_exactly(expr.child, schema, case_sensitive=case_sensitive)
        case Predicate():
            field = resolve(expr.name, schema, case_sensitive=case_sensitive)
            # Spark casts all values of a list to one type before it compares them.
            kinds = {type(value) for value in expr.values if value is not None}
            changes = any(
                _rounds(field.field_type, value) or _moves(field.field_type, value, expr.time_zone)
                for value in expr.values
            )
            return len(kinds) <= 1 and not changes
        case _:
            return True


def _rounds(field_type: IcebergType, literal: object) -> bool:
    match literal:
        case bool():
            return False
        case float() if field_type == LONG:
            return abs(literal) >= _WHOLE_DOUBLES
        case float() if isinstance(field_type, DecimalType):
            return field_type.precision > _DECIMAL_DIGITS
        case int() if field_type == FLOAT:
            return abs(literal) > _WHOLE_SINGLES
        case int() if field_type == DOUBLE:
            return abs(literal) > _WHOLE_DOUBLES
        case int() | Decimal() if isinstance(field_type, DecimalType) or field_type == LONG:
            return not _fit_together(field_type, Decimal(literal))
        case str() if field_type == UUID:
            # A text to Spark, which it compares as such.
            return literal != str(uuid.UUID(literal))
        case _:
            return False


def _moves(field_type: IcebergType, literal: object, time_zone: str | None) -> bool:
    return (
        field_type in (TIMESTAMP, TIMESTAMP_NS)
        and time_zone is not None
        and isinstance(literal, datetime)
        and is_skipped(literal, time_zone)
    )


def _fit_together(field_type: IcebergType, literal: Decimal) -> bool:
    """Whether one decimal type can hold a literal and all values of a column."""
    scale = max(-int(literal.as_tuple().exponent), 0)
    whole = max(literal.adjusted() + 1, 0)
    if isinstance(field_type, DecimalType):
        column_whole, column_scale = field_type.precision - field_type.scale, field_type.scale
    else:
        column_whole, column_scale = _LONG_DIGITS, 0
    return max(whole, column_whole) + max(scale, column_scale) <= _MOST_DIGITS
