"""Detects comparisons that are exact here, but that Spark makes after converting values."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal

from icebergds.expr.literals import is_near_skipped
from icebergds.expr.names import resolve
from icebergds.expr.nodes import And, Expr, Not, Or, Predicate, conjuncts, disjuncts
from icebergds.expr.terms import term_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    IcebergType,
    TypeId,
    is_scalar,
)

# Literals that Spark compares with a column in the same way whether it follows ANSI or not.
_NUMBERS = (int, float, Decimal)
_OWN_TYPES: dict[TypeId, tuple[type, ...]] = {
    TypeId.BOOLEAN: (bool,),
    TypeId.INT: (int, Decimal),
    TypeId.LONG: (int, Decimal),
    TypeId.FLOAT: _NUMBERS,
    TypeId.DOUBLE: _NUMBERS,
    TypeId.DECIMAL: _NUMBERS,
    TypeId.DATE: (date,),
    TypeId.TIME: (time,),
    TypeId.TIMESTAMP: (datetime,),
    TypeId.TIMESTAMPTZ: (datetime,),
    TypeId.STRING: (str,),
    TypeId.UUID: (str,),
    TypeId.BINARY: (bytes,),
    TypeId.FIXED: (bytes,),
}
# Integers up to these are exact as floats and doubles.
_WHOLE_SINGLES = 2**24
_WHOLE_DOUBLES = 2**53
# Decimals with up to this many digits stay distinct as doubles.
_DECIMAL_DIGITS = 15
_LONG_DIGITS = 20
_MOST_DIGITS = 38
_INTEGER_BITS = {INT: 32, LONG: 64}
_TIMESTAMPS = (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
# Text that Spark reads as one date.
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)
# Spark truncates further digits.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T][\d:]+(?:\.\d{1,6})?(?:[^\d.:].*)?)?", re.ASCII)


def compares_exactly(expr: Expr, schema: Schema, *, case_sensitive: bool = True) -> bool:
    """Whether Spark compares the columns and literals of a filter by their exact values, too.

    It rounds an integer or decimal to floating point if the other side is a floating-point number:
    to Spark, the long 9007199254740993 equals `9007199254740992D`. Timestamps without a zone that
    the session's time zone skips, and dates whose midnight it skips, become later ones if they are
    compared with a `TIMESTAMP`. A uuid is compared as lower-case text. Other text is known to mean
    the same to Spark only if its value has no other form.

    Args:
        expr: a filter that binds to the schema.
    """

    def is_exact(kind: IcebergType, predicate: Predicate) -> bool:
        # Spark casts all values of a list to one type before it compares them.
        kinds = {type(value) for value in predicate.values if value is not None}
        changes = any(
            _rounds(kind, value) or _moves(kind, value, predicate.time_zone)
            for value in predicate.values
        )
        return len(kinds) <= 1 and not changes

    return _holds(expr, schema, is_exact, case_sensitive=case_sensitive)


def compares_own_types(expr: Expr, schema: Schema, *, or_dates_as_text: bool = False) -> bool:
    """Whether all literals of a filter have their columns' types, as far as it matters to Spark.

    If not, the session's settings determine how Spark converts them.

    Args:
        expr: a filter that binds to the schema, whatever the case of names.
        or_dates_as_text: whether dates may be compared with their text as well.
    """

    def is_own(kind: IcebergType, predicate: Predicate) -> bool:
        # Only in Python is a bool an int, and a datetime a date.
        own = _OWN_TYPES.get(kind.type_id, ()) if is_scalar(kind) else ()
        return all(
            value is None
            or type(value) in own
            or (
                or_dates_as_text
                and kind == DATE
                and isinstance(value, str)
                and _DATE.fullmatch(value) is not None
            )
            for value in predicate.values
        )

    return _holds(expr, schema, is_own, case_sensitive=False)


def _holds(
    expr: Expr,
    schema: Schema,
    accepts: Callable[[IcebergType, Predicate], bool],
    *,
    case_sensitive: bool,
) -> bool:
    """Whether all predicates are accepted, with the types of what they compare."""
    match expr:
        case And() | Or():
            parts = conjuncts(expr) if isinstance(expr, And) else disjuncts(expr)
            return all(_holds(p, schema, accepts, case_sensitive=case_sensitive) for p in parts)
        case Not():
            return _holds(expr.child, schema, accepts, case_sensitive=case_sensitive)
        case Predicate(term=term):
            kind = resolve(expr.name, schema, case_sensitive=case_sensitive).field_type
            return accepts(kind if term is None else term_type(term, kind), expr)
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
            # Spark compares both as doubles.
            digits = text.strip("+-").replace(".", "").lstrip("0")
            is_short = field_type.precision <= _DECIMAL_DIGITS and len(digits) <= _DECIMAL_DIGITS
            return is_short and _NUMBER.fullmatch(text) is not None
        case _ if field_type == UUID:
            # Spark compares it as text.
            return text == str(uuid.UUID(text))
        case _ if field_type in _INTEGER_BITS:
            limit = 2 ** (_INTEGER_BITS[field_type] - 1)
            return _WHOLE.fullmatch(text) is not None and -limit <= int(text) < limit
        case _ if field_type == DATE:
            return _DATE.fullmatch(text) is not None
        case _ if field_type == TIME:
            return _TIME.fullmatch(text) is not None
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
