"""Writes filters as Spark SQL; `sql.parse_filter` can read the text of bound ones.

Predicates that are not bound yet are written for messages.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from icebergds.expr.nodes import (
    SETS,
    UNARY,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    InBuckets,
    Not,
    Operation,
    Or,
    Predicate,
    bound_expected,
    conjuncts,
    disjuncts,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, TypeId, is_scalar
from icebergds.spec.values import dates
from icebergds.spec.values.binary import format_uuid

_SIGNS = {
    Operation.EQ: "=",
    Operation.NOT_EQ: "!=",
    Operation.LT: "<",
    Operation.LT_EQ: "<=",
    Operation.GT: ">",
    Operation.GT_EQ: ">=",
}
_WORDS_OF = {Operation.NOT_NULL: "is not null", Operation.NOT_NAN: "is not nan"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Keywords of conditions, which a parser may not accept as names.
_WORDS = frozenset(
    """
    all and any array between binary case cast current_date current_timestamp date distinct double
    else end escape except exists false float from in infinity interval is isnan isnotnull isnull
    like map nan not null or over rlike select startswith struct then time timestamp true using when
    x r
    """.split()  # noqa: SIM905
)
# How many values of a predicate a message shows.
_MOST_SHOWN = 10
# Days and microseconds of the years 1 to 9999, the range of Spark SQL literals.
_DAYS = range(-719_162, 2_932_897)
_MICROS = range(_DAYS.start * dates.MICROS_PER_DAY, _DAYS.stop * dates.MICROS_PER_DAY)


def sql_text(expr: Expr, schema: Schema) -> str:
    """Writes a filter that is bound to `schema` as Spark SQL."""
    match expr:
        case AlwaysTrue():
            return "TRUE"
        case AlwaysFalse():
            return "FALSE"
        case And():
            parts = ((sql_text(part, schema), isinstance(part, Or)) for part in conjuncts(expr))
            return " AND ".join(f"({text})" if is_or else text for text, is_or in parts)
        case Or():
            return " OR ".join(sql_text(part, schema) for part in disjuncts(expr))
        case BoundPredicate():
            return _predicate(expr, _column(expr.field_id, schema))
        case InBuckets():
            buckets = ", ".join(map(str, expr.buckets))
            return f"system.bucket({expr.count}, {_column(expr.field_id, schema)}) IN ({buckets})"
        case _:
            raise bound_expected(expr)


def predicate_text(predicate: Predicate) -> str:
    """Writes a predicate as a user would, for messages; long lists are cut."""
    values = [_shown(value) for value in predicate.values[:_MOST_SHOWN]]
    if len(predicate.values) > _MOST_SHOWN:
        values.append("...")
    return _operation(predicate.op, predicate.subject, values)


def filter_text(expr: Expr) -> str:
    """Formats a filter similar to SQL; long lists of values are cut."""
    match expr:
        case And(left, right):
            return f"({filter_text(left)} and {filter_text(right)})"
        case Or(left, right):
            return f"({filter_text(left)} or {filter_text(right)})"
        case Not(child):
            return f"not {filter_text(child)}"
        case Predicate(op=op, subject=subject, values=values):
            return _described(op, subject, values)
        case BoundPredicate(op=op, field_id=field_id, values=values):
            return _described(op, f"#{field_id}", values)
        case _:
            return str(expr)


def _predicate(predicate: BoundPredicate, column: str) -> str:
    values = [_literal(predicate.field_type, value) for value in predicate.values]
    return _operation(predicate.op, column, values)


def _operation(op: Operation, column: str, values: Sequence[str]) -> str:
    match op:
        case Operation.IS_NULL:
            return f"{column} IS NULL"
        case Operation.NOT_NULL:
            return f"{column} IS NOT NULL"
        case Operation.IS_NAN:
            return f"isnan({column})"
        case Operation.NOT_NAN:
            return f"NOT isnan({column})"
        case Operation.IN:
            return f"{column} IN ({', '.join(values)})"
        case Operation.NOT_IN:
            return f"{column} NOT IN ({', '.join(values)})"
        case Operation.STARTS_WITH:
            return f"startswith({column}, {values[0]})"
        case Operation.NOT_STARTS_WITH:
            return f"NOT startswith({column}, {values[0]})"
        case _:
            return f"{column} {_SIGNS[op]} {', '.join(values)}"


def _column(field_id: int, schema: Schema) -> str:
    return ".".join(map(_name, schema.paths_by_id[field_id]))


def _name(part: str) -> str:
    if _PLAIN_NAME.fullmatch(part) and part.lower() not in _WORDS:
        return part
    return "`" + part.replace("`", "``") + "`"


def _literal(field_type: IcebergType, value: Any) -> str:
    match field_type.type_id if is_scalar(field_type) else None:
        case TypeId.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case TypeId.FLOAT | TypeId.DOUBLE:
            text = repr(value)
            return f"CAST('{text}' AS DOUBLE)" if "inf" in text else f"{text}D"
        case TypeId.DECIMAL:
            return f"{value:f}"
        case TypeId.DATE:
            return _of_type("DATE" if value in _DAYS else "", dates.format_date(value))
        case TypeId.TIME:
            return _of_type("TIME", dates.format_time(value))
        case TypeId.TIMESTAMP:
            kind = "TIMESTAMP_NTZ" if value in _MICROS else ""
            return _of_type(kind, dates.format_timestamp(value))
        case TypeId.TIMESTAMPTZ:
            kind = "TIMESTAMP" if value in _MICROS else ""
            return _of_type(kind, f"{dates.format_timestamp(value)}Z")
        case TypeId.TIMESTAMP_NS:
            return _of_type("", dates.format_timestamp(value, nanos=True))
        case TypeId.TIMESTAMPTZ_NS:
            return _of_type("", f"{dates.format_timestamp(value, nanos=True)}Z")
        case TypeId.STRING:
            return _quoted(value)
        case TypeId.UUID:
            return _of_type("", format_uuid(value))
        case TypeId.FIXED | TypeId.BINARY:
            return f"X'{value.hex().upper()}'"
        case _:
            return str(value)


def _shown(value: object) -> str:
    match value:
        case None | bool():
            return str(value).upper().replace("NONE", "NULL")
        case bytes():
            return f"X'{value.hex().upper()}'"
        case dt.datetime():
            return f"timestamp'{value.isoformat(' ')}'"
        case dt.date():
            return f"date'{value}'"
        case int() | float() | Decimal():
            return str(value)
        case _:
            return _quoted(str(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _of_type(kind: str, text: str) -> str:
    return f"{kind} '{text}'".lstrip()


def _described(op: Operation, subject: str, values: tuple[Any, ...]) -> str:
    sign = _WORDS_OF.get(op) or _SIGNS.get(op, op.replace("_", " "))
    if op in UNARY:
        return f"{subject} {sign}"
    shown = ", ".join(map(_written, values[:_MOST_SHOWN]))
    if op in SETS:
        return f"{subject} {sign} ({shown}{', ...' if len(values) > _MOST_SHOWN else ''})"
    return f"{subject} {sign} {shown}"


def _written(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    return f"'{value}'" if isinstance(value, dt.date | dt.time) else repr(value)
