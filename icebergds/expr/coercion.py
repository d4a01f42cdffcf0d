"""Detects comparisons for which Spark converts values as the session's settings say."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

from icebergds.expr.names import resolve
from icebergds.expr.nodes import And, Expr, Not, Or, Predicate, conjuncts, disjuncts
from icebergds.spec.schema import Schema
from icebergds.spec.types import DATE, IcebergType, TypeId, is_scalar

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
    TypeId.TIMESTAMP: (datetime,),
    TypeId.TIMESTAMPTZ: (datetime,),
    TypeId.STRING: (str,),
    TypeId.UUID: (str,),
    TypeId.BINARY: (bytes,),
    TypeId.FIXED: (bytes,),
}
# Text that Spark reads as one date.
ONE_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def compares_own_types(expr: Expr, schema: Schema) -> bool:
    """Whether all literals of a filter have the types of their columns, as far as Spark minds.

    Args:
        expr: a filter that binds to the schema, whatever the case of names.
    """
    return _holds(expr, schema, _is_own)


def are_dates_as_text(expr: Expr, schema: Schema) -> bool:
    """Whether only dates are compared with literals of another type: with their text.

    Arguments are those of `compares_own_types`.
    """
    return _holds(expr, schema, lambda kind, value: _is_own(kind, value) or _is_date(kind, value))


def _holds(expr: Expr, schema: Schema, accepts: Callable[[IcebergType, object], bool]) -> bool:
    match expr:
        case And() | Or():
            parts = conjuncts(expr) if isinstance(expr, And) else disjuncts(expr)
            return all(_holds(part, schema, accepts) for part in parts)
        case Not():
            return _holds(expr.child, schema, accepts)
        case Predicate():
            field = resolve(expr.name, schema, case_sensitive=False)
            return all(value is None or accepts(field.field_type, value) for value in expr.values)
        case _:
            return True


def _is_own(field_type: IcebergType, literal: object) -> bool:
    # A bool is an int and a datetime a date to Python alone.
    return is_scalar(field_type) and type(literal) in _OWN_TYPES.get(field_type.type_id, ())


def _is_date(field_type: IcebergType, literal: object) -> bool:
    is_text = isinstance(literal, str) and bool(ONE_DATE.fullmatch(literal))
    return field_type == DATE and is_text
