"""Formats filters for messages."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from typing import Any

from icebergds.expr.nodes import (
    SETS,
    UNARY,
    And,
    BoundPredicate,
    Expr,
    Not,
    Operation,
    Or,
    Predicate,
)

_MOST_VALUES = 10
_SIGNS = {
    Operation.EQ: "=",
    Operation.NOT_EQ: "!=",
    Operation.LT: "<",
    Operation.LT_EQ: "<=",
    Operation.GT: ">",
    Operation.GT_EQ: ">=",
    Operation.NOT_NULL: "is not null",
    Operation.NOT_NAN: "is not nan",
}


def filter_text(expr: Expr) -> str:
    """Formats a filter similar to SQL; long lists of values are cut."""
    match expr:
        case And(left, right):
            return f"({filter_text(left)} and {filter_text(right)})"
        case Or(left, right):
            return f"({filter_text(left)} or {filter_text(right)})"
        case Not(child):
            return f"not {filter_text(child)}"
        case Predicate(op=op, name=name, values=values):
            return _predicate(op, name, values)
        case BoundPredicate(op=op, field_id=field_id, values=values):
            return _predicate(op, f"#{field_id}", values)
        case _:
            return str(expr)


def _predicate(op: Operation, subject: str, values: tuple[Any, ...]) -> str:
    sign = _SIGNS.get(op, op.replace("_", " "))
    if op in UNARY:
        return f"{subject} {sign}"
    shown = ", ".join(map(_value, values[:_MOST_VALUES]))
    if op in SETS:
        return f"{subject} {sign} ({shown}{', ...' if len(values) > _MOST_VALUES else ''})"
    return f"{subject} {sign} {shown}"


def _value(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    return f"'{value}'" if isinstance(value, date | time) else repr(value)
