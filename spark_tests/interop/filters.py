"""Filters on one column, in the forms of every reader, and their plain meaning for a row."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyiceberg import expressions as e

_BINARY = ("fixed", "binary")


@dataclass(frozen=True, slots=True)
class Filter:
    """An operation, by Java's name, on a column of an Iceberg type, with in-memory literals."""

    operation: str
    column: str
    kind: str
    literals: tuple[Any, ...] = ()

    def java(self) -> list[Any]:
        """What `oracles.java_server` takes."""
        condition = [self.operation, self.column, *(_java(v, self.kind) for v in self.literals)]
        # To Java's evaluator null is less than everything and equal to nothing.
        is_null = self.operation == "isNull"
        return condition if is_null else ["and", ["notNull", self.column], condition]

    def pyiceberg(self) -> Any:
        """An expression of PyIceberg."""
        classes: Mapping[str, Any] = {
            "equal": e.EqualTo,
            "notEqual": e.NotEqualTo,
            "lessThan": e.LessThan,
            "lessThanOrEqual": e.LessThanOrEqual,
            "greaterThan": e.GreaterThan,
            "greaterThanOrEqual": e.GreaterThanOrEqual,
            "isNull": e.IsNull,
            "notNull": e.NotNull,
            "isNaN": e.IsNaN,
            "notNaN": e.NotNaN,
            "startsWith": e.StartsWith,
        }
        literals = [
            value
            if self.kind in _BINARY or (isinstance(value, bytes) and self.kind != "uuid")
            else _java(value, self.kind)
            for value in self.literals
        ]
        if self.operation == "in":
            return e.In(self.column, literals)
        return classes[self.operation](self.column, *literals)

    def matches(self, row: Mapping[str, Any]) -> bool:
        """The plain meaning; nulls satisfy nothing but `isNull`."""
        value = row.get(self.column)
        match self.operation:
            case "isNull":
                return value is None
            case "notNull":
                return value is not None
            case "isNaN":
                return value is not None and math.isnan(value)
        if value is None:
            return False
        match self.operation:
            case "notNaN":
                return not math.isnan(value)
            case "in":
                return value in self.literals
            case "startsWith":
                return bool(value.startswith(self.literals[0]))
        literal = self.literals[0]
        return {
            "equal": value == literal,
            "notEqual": value != literal,
            "lessThan": value < literal,
            "lessThanOrEqual": value <= literal,
            "greaterThan": value > literal,
            "greaterThanOrEqual": value >= literal,
        }[self.operation]

    def is_ambiguous(self, row: Mapping[str, Any]) -> bool:
        """Whether readers may differ: NaN compared, and zeros of unlike sign."""
        value = row.get(self.column)
        if not isinstance(value, float) or not self.literals:
            return False
        return math.isnan(value) or (value == 0.0 and 0.0 in self.literals)


def filters_of(columns: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Filter]:
    """Filters on every column of a primitive type, with literals from the rows."""
    return [
        condition
        for column, kind in columns.items()
        if isinstance(kind, str) and kind not in ("unknown", "geometry", "geography", "variant")
        for condition in _of_column(column, kind, [row.get(column) for row in rows])
    ]


def _of_column(column: str, kind: str, values: Sequence[Any]) -> Iterator[Filter]:
    yield Filter("isNull", column, kind)
    yield Filter("notNull", column, kind)
    if kind in ("float", "double"):
        yield Filter("isNaN", column, kind)
        yield Filter("notNaN", column, kind)
    known = sorted({value for value in values if value is not None and value == value})
    known = [value for value in known if not (isinstance(value, float) and math.isinf(value))]
    if len(known) > 12:
        known = known[:4] + known[len(known) // 2 :][:4] + known[-4:]
    for literal in known:
        yield Filter("equal", column, kind, (literal,))
    # Both ends and the middle, from both sides.
    for literal in {known[0], known[len(known) // 2], known[-1]} if known else ():
        for operation in ("lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual"):
            yield Filter(operation, column, kind, (literal,))
        yield Filter("notEqual", column, kind, (literal,))
    if len(known) > 2:
        yield Filter("in", column, kind, (known[1], known[-1]))
    if kind == "string":
        for literal in known:
            yield Filter("startsWith", column, kind, (literal[:3],))


def _java(value: Any, kind: str) -> Any:
    if kind in ("float", "double", "boolean", "int", "long", "string"):
        return value
    if kind.startswith(_BINARY):
        return {"hex": value.hex()}
    return _text(value, kind)


def _text(value: Any, kind: str) -> str:
    if isinstance(value, int):  # nanoseconds
        seconds, nanos = divmod(value, 1_000_000_000)
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
        zone = "+00:00" if kind.startswith("timestamptz") else ""
        return f"{moment.isoformat()}.{nanos:09d}{zone}"
    if isinstance(value, Decimal):
        return format(value, "f")
    if kind == "uuid":
        return str(uuid.UUID(bytes=value))
    return str(value.isoformat())
