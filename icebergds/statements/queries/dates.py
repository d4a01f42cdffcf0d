"""Rewrites conditions on dates so that they compare a column with a literal.

Constants such as `DATE '1994-01-01' + INTERVAL 1 YEAR` are computed, by Spark's rules. Comparisons
of `CAST(ts AS DATE)` and `year(ts)` become ranges of `ts`. The current time is later when Spark
runs the query: it bounds a column from below only.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

# A class of sqlglot's tree.
_Node = Any

MIRRORED = {"eq": "eq", "lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte"}
"""What a comparison becomes when its sides change places."""

_SUMS = ("add", "sub", "addmonths", "tsordsadd")
_PERIODS = {"cast", "trycast", "tsordstodate", "year"}
_ISO = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UNITS = {"DAY": (0, 1), "WEEK": (0, 7), "MONTH": (1, 0), "QUARTER": (3, 0), "YEAR": (12, 0)}
_HOURS = ("HOUR", "MINUTE", "SECOND")
# Today is another day in other time zones, and begins before now.
_MARGIN = dt.timedelta(days=2)


def period_of(term: _Node) -> tuple[_Node, str] | None:
    """The column that a term is the "day" or the "year" of; None for other terms."""
    if term.key not in _PERIODS:
        return None
    column = term.this
    if term.key == "year":
        if column.key == "tsordstodate":
            column = column.this
        return (column, "year") if column.key in ("column", "dot") else None
    if term.args.get("format") or (
        term.key != "tsordstodate" and term.args["to"].this.name != "DATE"
    ):
        return None
    return (column, "day") if column.key in ("column", "dot") else None


def day_of(term: _Node) -> _Node:
    """The day of a term, as a part of the tree."""
    from sqlglot.expressions import Cast, DataType

    # `DataType.build` parses text.
    return Cast(this=term, to=DataType(this=DataType.Type.DATE, nested=False))


@dataclass(frozen=True, slots=True)
class DateTerms:
    """Rewrites the conditions of one query.

    Attributes:
        literals: of the query; what the rewritten conditions need is added.
        now: the time.
    """

    literals: list[str | bytes]
    now: dt.datetime

    def plain(self, node: _Node) -> tuple[_Node, bool]:
        """A condition that is true for at least the same rows, and whether it is of dates only.

        Its columns must then be dates or timestamps.
        """
        if node.key not in MIRRORED:
            return self._with_dates(node), False
        left, key, right = node.this, node.key, node.expression
        if self._is_constant(left):
            left, key, right = right, MIRRORED[key], left
        if self._is_of_now(right):
            return self._after(left, key, right) or node, True
        if (found := self._range(left, key, right)) is not None:
            return found, True
        return self._with_dates(node), False

    def date(self, node: _Node) -> dt.date | None:
        """The date that a constant or a text is; None if it is none."""
        return self._date(node) or self._iso(node)

    def integer(self, node: _Node) -> int | None:
        """The value of a whole number; None for anything else."""
        return _integer(self.literals, node)

    def text(self, node: _Node) -> str | None:
        """The value of a text; None for anything else."""
        if node.key != "literal" or not node.is_string:
            return None
        text = str(node.this)
        value = self.literals[int(text[1:])] if text.startswith("@") else text
        return value if isinstance(value, str) else None

    def _with_dates(self, node: _Node) -> _Node:
        """A condition with its constant dates computed."""
        if not any(part.key in _SUMS for part in node.walk()):
            return node

        def computed(part: _Node) -> _Node:
            if part.key in _SUMS:
                found = self._date(part)
                return part if found is None else self._literal(found)
            return part

        return node.copy().transform(computed)

    def _range(self, term: _Node, key: str, value: _Node) -> _Node | None:
        """The range of a column whose day or year compares so with a value."""
        period = period_of(term)
        if period is None:
            return None
        column, length = period
        bounds = self._year(value) if length == "year" else self._day(value)
        if bounds is None:
            return None
        start, end = bounds
        match key:
            case "eq":
                return _and(self._compared(column, "gte", start), self._compared(column, "lt", end))
            case "gte":
                return self._compared(column, "gte", start)
            case "gt":
                return self._compared(column, "gte", end)
            case "lt":
                return self._compared(column, "lt", start)
            case _:
                return self._compared(column, "lt", end)

    def _after(self, column: _Node, key: str, value: _Node) -> _Node | None:
        """The condition that a column is not before a time that is reckoned from now."""
        moment = self._moment(value)
        if key not in ("gt", "gte", "eq") or moment is None:
            return None
        return self._compared(column, "gte", (moment - _MARGIN).date())

    def _compared(self, column: _Node, key: str, value: dt.date) -> _Node:
        from sqlglot.expressions import GTE, LT

        kind = {"gte": GTE, "lt": LT}[key]
        return kind(this=column.copy(), expression=self._literal(value))

    def _is_constant(self, node: _Node) -> bool:
        from sqlglot.expressions import Column

        return (node.find(Column) is None and node.key != "anonymous") or _is_now(node)

    def _is_of_now(self, node: _Node) -> bool:
        return self._is_constant(node) and any(_is_now(part) for part in node.walk())

    def _moment(self, node: _Node) -> dt.datetime | None:
        """A time reckoned from now, about."""
        if _is_now(node):
            return self.now
        if node.key in ("add", "sub"):
            start = self._moment(node.this)
            length = _length(self.literals, node.expression, 1 if node.key == "add" else -1)
            return None if start is None or length is None else start + length
        if node.key == "tsordsadd":
            start, days = self._moment(node.this), _integer(self.literals, node.expression)
            return None if start is None or days is None else start + dt.timedelta(days=days)
        return None

    def _date(self, node: _Node) -> dt.date | None:
        """The value of a constant date; None if it is none."""
        match node.key:
            case "paren":
                return self._date(node.this)
            case "cast" | "trycast" | "tsordstodate":
                is_date = node.key == "tsordstodate" or node.args["to"].this.name == "DATE"
                return self._iso(node.this) if is_date and not node.args.get("format") else None
            case "add" | "sub":
                start = self._date(node.this)
                if start is None:
                    return None
                return _moved(self.literals, start, node.expression, 1 if node.key == "add" else -1)
            case "addmonths":
                start, months = self._date(node.this), _integer(self.literals, node.expression)
                return None if start is None or months is None else _months_later(start, months)
            case "tsordsadd":
                start, days = self._date(node.this), _integer(self.literals, node.expression)
                is_days = str(node.args.get("unit") or "DAY").upper() == "DAY"
                if start is None or days is None or not is_days:
                    return None
                return _days_later(start, days)
            case _:
                return None

    def _day(self, node: _Node) -> tuple[dt.date, dt.date] | None:
        """The day that a value is, and the next one."""
        found = self.date(node)
        following = None if found is None else _days_later(found, 1)
        return None if found is None or following is None else (found, following)

    def _year(self, node: _Node) -> tuple[dt.date, dt.date] | None:
        """The first days of the year that a number is, and of the next one."""
        number = _integer(self.literals, node)
        if number is None or not 1 <= number < 9999:
            return None
        return dt.date(number, 1, 1), dt.date(number + 1, 1, 1)

    def _iso(self, node: _Node) -> dt.date | None:
        text = self.text(node)
        if text is None or _ISO.fullmatch(text) is None:
            return None
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            return None

    def _literal(self, value: dt.date) -> _Node:
        from sqlglot.expressions import Literal

        self.literals.append(value.isoformat())
        place = Literal.string(f"@{len(self.literals) - 1}")
        return day_of(place)


def _is_now(node: _Node) -> bool:
    return node.key in ("currentdate", "currenttimestamp") or (
        node.key == "anonymous" and str(node.this).lower() == "now" and not node.expressions
    )


def _moved(literals: list[str | bytes], start: dt.date, step: _Node, sign: int) -> dt.date | None:
    """A date plus or minus an interval, or a number of days."""
    if step.key == "literal":
        days = _integer(literals, step)
        return None if days is None else _days_later(start, sign * days)
    if step.key != "interval":
        return None
    amount, unit = _integer(literals, step.this), _unit(step)
    if amount is None or unit not in _UNITS:
        return None
    months, days = _UNITS[unit]
    if months:
        return _months_later(start, sign * amount * months)
    return _days_later(start, sign * amount * days)


def _length(literals: list[str | bytes], step: _Node, sign: int) -> dt.timedelta | None:
    """The least length of an interval, or of a number of days; more before than after now."""
    amount = _integer(literals, step if step.key == "literal" else step.this)
    if step.key not in ("literal", "interval") or amount is None or abs(amount) > 100_000:
        return None
    amount *= sign
    if step.key == "literal":
        return dt.timedelta(days=amount)
    unit = _unit(step)
    if unit in _HOURS:
        return dt.timedelta(**{f"{unit.lower()}s": amount})
    if unit not in _UNITS:
        return None
    months, days = _UNITS[unit]
    return dt.timedelta(days=amount * ((31 if amount < 0 else 28) * months + days))


def _unit(interval: _Node) -> str:
    unit = interval.args.get("unit")
    return "" if unit is None else str(unit.name).upper().removesuffix("S")


def _integer(literals: list[str | bytes], node: _Node) -> int | None:
    if node.key == "mul":
        left, right = _integer(literals, node.this), _integer(literals, node.expression)
        return None if left is None or right is None else left * right
    if node.key == "neg":
        value = _integer(literals, node.this)
        return None if value is None else -value
    text = str(node.this) if node.key == "literal" else ""
    if text.startswith("@"):
        text = str(literals[int(text[1:])])
    return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else None


def _months_later(start: dt.date, months: int) -> dt.date | None:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return dt.date(year, month + 1, min(start.day, calendar.monthrange(year, month + 1)[1]))


def _days_later(start: dt.date, days: int) -> dt.date | None:
    try:
        return start + dt.timedelta(days=days)
    except OverflowError:
        return None


def _and(left: _Node, right: _Node) -> _Node:
    from sqlglot.expressions import And

    return And(this=left, expression=right)
