"""Reads conditions on Iceberg's transforms, such as `lake.system.days(ts) = DATE '2026-01-01'`.

They are ranges of the column: days, months, years and hours are those of UTC. Buckets are no range:
they choose files by their partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from icebergds.expr.names import quote_name, resolve
from icebergds.expr.nodes import FALSE, Expr, InBuckets, Operation, Predicate, and_, or_
from icebergds.expr.sql import column_parts
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
)
from icebergds.statements.queries.dates import MIRRORED, DateTerms

# A class of sqlglot's tree.
_Node = Any

_OPERATIONS = {
    "eq": Operation.EQ,
    "lt": Operation.LT,
    "lte": Operation.LT_EQ,
    "gt": Operation.GT,
    "gte": Operation.GT_EQ,
}
_Call: TypeAlias = tuple[str, list[_Node]]

_EPOCH = datetime(1970, 1, 1)
# Of which Spark's values have the hashes of the table's.
_IN_BUCKETS = (INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY)
_MOST_BUCKETS = 100_000
# Conditions on views are analysed again within these, each bucket by its number.
_MOST_CHOSEN = 2000


def transform_condition(
    node: _Node,
    schema: Schema,
    terms: DateTerms,
    name_of: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Expr | None:
    """What a comparison of a transform with constants says of its column; None for others.

    The condition is not bound yet.

    Raises:
        InvalidFilterError: the column is not one of the table's.
    """
    call, key, values = _compared(node)
    if call is None or call[0] == "bucket":
        return None
    found = [_of_value(call, key, value, schema, terms, name_of) for value in values]
    said = [each for each in found if each is not None]
    return or_(*said) if said and len(said) == len(found) else None


def _of_value(
    call: _Call,
    key: str,
    value: _Node,
    schema: Schema,
    terms: DateTerms,
    name_of: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Expr | None:
    function, arguments = call
    parts = column_parts(arguments[-1])
    if parts is None:
        return None
    name = quote_name(name_of(parts))
    kind = resolve(name, schema, case_sensitive=False).field_type
    if function == "truncate":
        return _truncated(name, kind, key, terms.integer(arguments[0]), value, terms)
    period = _period(function, value, terms)
    if period is None:
        return None
    start, end = (_moment(each, kind) for each in period)
    return None if start is None or end is None else _between(name, key, start, end)


def bucket_condition(
    node: _Node,
    schema: Schema,
    terms: DateTerms,
    name_of: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Expr | None:
    """The buckets that a condition on a bucket chooses; None for other conditions.

    Raises:
        InvalidFilterError: the column is not one of the table's.
    """
    call, key, values = _compared(node)
    if call is None or call[0] != "bucket":
        return None
    count, parts = terms.integer(call[1][0]), column_parts(call[1][1])
    numbers = [number for value in values if (number := terms.integer(value)) is not None]
    if count is None or parts is None or not numbers or len(numbers) < len(values):
        return None
    field = resolve(quote_name(name_of(parts)), schema, case_sensitive=False)
    if field.field_type not in _IN_BUCKETS and not isinstance(field.field_type, DecimalType):
        return None
    if not 0 < count <= _MOST_BUCKETS:
        return None
    chosen = sorted(_buckets(key, numbers, range(count)))
    if len(chosen) > _MOST_CHOSEN:
        return None
    return InBuckets(field.field_id, count, tuple(chosen)) if chosen else FALSE


def _buckets(key: str, numbers: list[int], buckets: range) -> set[int]:
    """The buckets that equal one of the numbers, or compare so with the only one."""
    first = numbers[0]
    match key:
        case "eq":
            return set(numbers).intersection(buckets)
        case "lt":
            return {bucket for bucket in buckets if bucket < first}
        case "lte":
            return {bucket for bucket in buckets if bucket <= first}
        case "gt":
            return {bucket for bucket in buckets if bucket > first}
        case _:
            return {bucket for bucket in buckets if bucket >= first}


def call_of(node: _Node) -> _Call | None:
    """The name and arguments of a call of a transform, by a name of several parts.

    Queries that call other functions of such names are not analysed.
    """
    if node.key != "dot" or node.expression.key != "anonymous":
        return None
    function, arguments = str(node.expression.name).lower(), node.expression.expressions
    expected = 2 if function in ("truncate", "bucket") else 1
    return (function, arguments) if len(arguments) == expected else None


def as_call(function: str, arguments: Sequence[_Node]) -> _Node:
    """A call of a transform, as a part of the tree."""
    from sqlglot.expressions import Anonymous, Dot, to_identifier

    call = Anonymous(this=function, expressions=list(arguments))
    return Dot(this=to_identifier("system"), expression=call)


def _compared(node: _Node) -> tuple[_Call | None, str, list[_Node]]:
    """The call in a comparison, how it is compared, and with which values: with one, or by IN."""
    if node.key == "in":
        return call_of(node.this), "eq", node.expressions
    if node.key not in MIRRORED:
        return None, "", []
    call = call_of(node.this)
    if call is not None:
        return call, node.key, [node.expression]
    return call_of(node.expression), MIRRORED[node.key], [node.this]


def _period(function: str, value: _Node, terms: DateTerms) -> tuple[datetime, datetime] | None:
    """The times at which a period begins that a transform gives, and the next one."""
    try:
        if function in ("day", "days"):
            day = terms.date(value)
            return None if day is None else (_midnight(day), _midnight(day) + timedelta(days=1))
        number = terms.integer(value)
        if number is None:
            return None
        match function:
            case "hour" | "hours":
                start = _EPOCH + timedelta(hours=number)
                return start, start + timedelta(hours=1)
            case "month" | "months":
                return _month(number), _month(number + 1)
            case "year" | "years":
                return _month(number * 12), _month(number * 12 + 12)
    except (OverflowError, ValueError):
        pass
    return None


def _truncated(
    name: str, kind: IcebergType, key: str, width: int | None, value: _Node, terms: DateTerms
) -> Expr | None:
    if width is None or width <= 0:
        return None
    if kind == STRING:
        text = terms.text(value)
        if text is None or len(text) > width:
            return None
        return _of_beginning(name, key, text, is_whole=len(text) == width)
    start = terms.integer(value) if kind in (INT, LONG) else None
    if start is None or start % width:
        return None
    found = _between(name, key, start, start + width)
    least = -(2**31) if kind == INT else -(2**63)
    if key in ("gt", "gte") and least % width:
        # Values within a width of the least one wrap around to the greatest ones.
        end = least - least % width + width
        return or_(found, Predicate(Operation.LT, name, (end,)))
    return found


def _of_beginning(name: str, key: str, text: str, *, is_whole: bool) -> Expr:
    """What is true for texts whose beginning compares so.

    Args:
        is_whole: whether the text is as long as a beginning can be.
    """
    starts = Predicate(Operation.STARTS_WITH, name, (text,))
    match key:
        case "eq" if is_whole:
            return starts
        case "lte" if is_whole:
            return or_(Predicate(Operation.LT, name, (text,)), starts)
        case _:
            return Predicate(_OPERATIONS[key], name, (text,))


def _between(name: str, key: str, start: Any, end: Any) -> Expr:
    """The range of a column whose transform compares so with the value of `start` to `end`."""
    from_start = Predicate(Operation.GT_EQ, name, (start,))
    before_end = Predicate(Operation.LT, name, (end,))
    match key:
        case "eq":
            return and_(from_start, before_end)
        case "gte":
            return from_start
        case "gt":
            return Predicate(Operation.GT_EQ, name, (end,))
        case "lt":
            return Predicate(Operation.LT, name, (start,))
        case _:
            return before_end


def _moment(moment: datetime, kind: IcebergType) -> Any:
    if kind == TIMESTAMPTZ:
        return moment.replace(tzinfo=UTC)
    if kind == TIMESTAMP:
        return moment
    return moment.date() if kind == DATE and moment == _midnight(moment.date()) else None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _month(number: int) -> datetime:
    """The beginning of a month, counted from January 1970."""
    years, month = divmod(number, 12)
    return datetime(1970 + years, month + 1, 1)
