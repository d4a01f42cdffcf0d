"""Turns comparisons of a transform with constants into conditions on its column.

Days, months, years, hours and truncations become ranges; buckets become `InBuckets`. The transform
of null is null, so neither a comparison nor its negation is true for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from icebergds.expr.evaluate import holds
from icebergds.expr.literals import begins_once
from icebergds.expr.nodes import (
    FALSE,
    BoundPredicate,
    Expr,
    InBuckets,
    Operation,
    Predicate,
    Term,
    and_,
    or_,
)
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
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

_EPOCH = datetime(1970, 1, 1)
_TIMES = (TIMESTAMP, TIMESTAMPTZ)
# Types whose Spark values have the same hashes as the table's values.
_IN_BUCKETS = (INT, LONG, *_TIMES, DATE, STRING, BINARY)
_MOST_BUCKETS = 100_000
# Conditions on views are analysed again within these, each bucket by its number.
_MOST_CHOSEN = 2000


def term_type(term: Term, column_type: IcebergType) -> IcebergType:
    """The result type of a term on a column; ValueError if it does not accept the column."""
    match term.transform:
        case DayTransform() if column_type in (DATE, *_TIMES):
            return DATE
        case YearTransform() | MonthTransform() if column_type in (DATE, *_TIMES):
            return INT
        case HourTransform() if column_type in _TIMES:
            return INT
        case TruncateTransform() if column_type in (INT, LONG, STRING):
            return column_type
        case BucketTransform() if column_type in _IN_BUCKETS or isinstance(
            column_type, DecimalType
        ):
            return INT
    raise ValueError(f"{term} of it cannot be compared")


def on_column(leaf: BoundPredicate, predicate: Predicate, column_type: IcebergType) -> Expr:
    """Turns a predicate on a term into a filter on the column that is true for the same rows.

    Args:
        leaf: the predicate, bound to the values of the term, with the id of the column.
        predicate: the predicate before binding; its term applies to the column.

    Returns:
        An unbound filter, except that `InBuckets` is bound.

    Raises:
        ValueError: nothing is known about the column.
    """
    assert predicate.term is not None
    transform = predicate.term.transform
    if leaf.op is Operation.NOT_NULL or leaf.op is Operation.IS_NULL:
        return Predicate(leaf.op, predicate.name)
    if isinstance(transform, BucketTransform):
        return _in_buckets(leaf, transform.num_buckets)
    column = _Column(predicate, column_type)
    match transform:
        case TruncateTransform(width) if column_type == STRING:
            return _of_beginning(column, leaf, width)
        case TruncateTransform(width):
            return _of_multiples(column, leaf, width)
        case _:
            return _ranges(leaf.op, [column.period(value) for value in leaf.values], column)


@dataclass(frozen=True, slots=True)
class _Column:
    """Compares a column with values, and knows the periods of a term's results."""

    _of: Predicate
    _type: IcebergType

    def __call__(self, op: Operation, value: Any) -> Expr:
        return Predicate(op, self._of.name, (value,), self._of.time_zone)

    def period(self, number: int) -> tuple[Any, Any]:
        """The first values for which the term returns a number, and the number after it."""
        try:
            return self._begin(number), self._begin(number + 1)
        except OverflowError:
            raise ValueError("only the years 1 to 9999 can be compared") from None

    def _begin(self, number: int) -> date | datetime:
        term = self._of.term
        assert term is not None
        match term.transform:
            case HourTransform():
                moment = _EPOCH + timedelta(hours=number)
            case DayTransform():
                moment = _EPOCH + timedelta(days=number)
            case MonthTransform():
                moment = _month(number)
            case _:
                moment = _month(12 * (number - 1970 if term.is_local else number))
        if self._type == TIMESTAMP:
            return moment
        if self._type == DATE:
            return moment.date()
        if not term.is_local:
            return moment.replace(tzinfo=UTC)
        zone = self._of.time_zone
        if zone is not None and not begins_once(moment.date(), zone):
            raise ValueError(f"in {zone}, clocks are set across the midnight of {moment.date()}")
        return moment.date()


def _month(number: int) -> datetime:
    """The beginning of a month, counted from January 1970."""
    years, month = divmod(number, 12)
    if not 1 <= 1970 + years <= 9999:
        raise OverflowError
    return datetime(1970 + years, month + 1, 1)


def _ranges(op: Operation, periods: Sequence[tuple[Any, Any]], column: _Column) -> Expr:
    """Selects values in one of the periods, or values that compare like this with the only one."""
    match op:
        case Operation.EQ | Operation.IN:
            within = [
                and_(column(Operation.GT_EQ, start), column(Operation.LT, end))
                for start, end in periods
            ]
            return or_(*within)
        case Operation.NOT_EQ | Operation.NOT_IN:
            beyond = [
                or_(column(Operation.LT, start), column(Operation.GT_EQ, end))
                for start, end in periods
            ]
            return and_(*beyond)
    [(start, end)] = periods
    edge = start if op in (Operation.LT, Operation.GT_EQ) else end
    return column(Operation.LT if op in _BELOW else Operation.GT_EQ, edge)


_BELOW = (Operation.LT, Operation.LT_EQ)


def _of_multiples(column: _Column, leaf: BoundPredicate, width: int) -> Expr:
    if any(value % width for value in leaf.values):
        raise ValueError(f"it is no multiple of {width}")
    found = _ranges(leaf.op, [(value, value + width) for value in leaf.values], column)
    least = -(2**31) if leaf.field_type == INT else -(2**63)
    if leaf.op not in (*_BELOW, Operation.GT, Operation.GT_EQ) or not least % width:
        return found
    # Values within a width of the least one wrap around to the greatest ones.
    end = least - least % width + width
    if leaf.op in _BELOW:
        return and_(found, column(Operation.GT_EQ, end))
    return or_(found, column(Operation.LT, end))


def _of_beginning(column: _Column, leaf: BoundPredicate, width: int) -> Expr:
    if any(len(value) > width for value in leaf.values):
        raise ValueError(f"it has more than {width} characters")
    match leaf.op:
        case Operation.IN:
            return or_(*(_beginning(column, Operation.EQ, value, width) for value in leaf.values))
        case Operation.NOT_IN:
            parts = (_beginning(column, Operation.NOT_EQ, value, width) for value in leaf.values)
            return and_(*parts)
        case _:
            return _beginning(column, leaf.op, leaf.value, width)


def _beginning(column: _Column, op: Operation, text: str, width: int) -> Expr:
    """Selects texts whose first `width` characters compare like this with a text."""
    starts = column(Operation.STARTS_WITH, text)
    other = column(Operation.NOT_STARTS_WITH, text)
    match op:
        case _ if len(text) < width:
            return column(op, text)
        case Operation.EQ:
            return starts
        case Operation.NOT_EQ:
            return other
        case Operation.LT_EQ:
            return or_(column(Operation.LT, text), starts)
        case Operation.GT:
            return and_(column(op, text), other)
        case _:
            return column(op, text)


def _in_buckets(leaf: BoundPredicate, count: int) -> Expr:
    if count > _MOST_BUCKETS:
        raise ValueError(f"there are more than {_MOST_BUCKETS} buckets")
    chosen = [bucket for bucket in range(count) if holds(leaf, bucket)]
    if len(chosen) > _MOST_CHOSEN:
        raise ValueError(f"it chooses more than {_MOST_CHOSEN} buckets")
    return InBuckets(leaf.field_id, count, tuple(chosen)) if chosen else FALSE
