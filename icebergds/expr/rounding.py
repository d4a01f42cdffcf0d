"""Detects comparisons that are exact here but that Spark makes on other values."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from decimal import Decimal

from icebergds.expr.coercion import ONE_DATE
from icebergds.expr.literals import is_near_skipped
from icebergds.expr.names import resolve
from icebergds.expr.nodes import And, Expr, Not, Or, Predicate, conjuncts, disjuncts
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
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
_INTEGER_BITS = {INT: 32, LONG: 64}
_TIMESTAMPS = (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
# Spark cuts further digits off.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T][\d:]+(?:\.\d{1,6})?(?:[^\d.:].*)?)?", re.ASCII)


def compares_exactly(expr: Expr, schema: Schema, *, case_sensitive: bool = True) -> bool:
    """Whether Spark compares the columns and literals of a filter by their exact values, too.

    It rounds an integer or decimal to floating point if the other side is a floating-point number:
    to Spark, the long 9007199254740993 equals `9007199254740992D`. Timestamps without a zone that
    the session's time zone skips, and dates whose midnight it skips, become later ones if they are
    compared with a `TIMESTAMP`. A uuid is its text in lower case. Of other text, only that which
    has one form for a value is known to mean the same to Spark.

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
        case str():
            return not _is_plain(field_type, literal)
        case _:
            return False


def _is_plain(field_type: IcebergType, text: str) -> bool:
    """Whether Spark reads a text as the same value of a column's type, to the last digit."""
    match field_type:
        case DecimalType():
            # Both are doubles to Spark.
            digits = text.strip("+-").replace(".", "").lstrip("0")
            is_short = field_type.precision <= _DECIMAL_DIGITS and len(digits) <= _DECIMAL_DIGITS
            return is_short and _NUMBER.fullmatch(text) is not None
        case _ if field_type == UUID:
            # A text to Spark, which it compares as such.
            return text == str(uuid.UUID(text))
        case _ if field_type in _INTEGER_BITS:
            limit = 2 ** (_INTEGER_BITS[field_type] - 1)
            return _WHOLE.fullmatch(text) is not None and -limit <= int(text) < limit
        case _ if field_type == DATE:
            return ONE_DATE.fullmatch(text) is not None
        case _ if field_type in _TIMESTAMPS:
            return _MOMENT.fullmatch(text) is not None
        case _:
            return True


def _moves(field_type: IcebergType, literal: object, time_zone: str | None) -> bool:
    """Whether Spark compares a column without a time zone by instants, in another order."""
    if field_type not in (DATE, TIMESTAMP, TIMESTAMP_NS) or not isinstance(literal, datetime):
        return False
    return time_zone is not None and is_near_skipped(literal, time_zone)


def _fit_together(field_type: IcebergType, literal: Decimal) -> bool:
    """Whether one decimal type can hold a literal and all values of a column."""
    scale = max(-int(literal.as_tuple().exponent), 0)
    whole = max(literal.adjusted() + 1, 0)
    if isinstance(field_type, DecimalType):
        column_whole, column_scale = field_type.precision - field_type.scale, field_type.scale
    else:
        column_whole, column_scale = _LONG_DIGITS, 0
    return max(whole, column_whole) + max(scale, column_scale) <= _MOST_DIGITS
