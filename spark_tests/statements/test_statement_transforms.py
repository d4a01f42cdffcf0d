"""What a condition on Iceberg's transforms says is true for the rows for which the condition is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from effort import examples
from hypothesis import event, given, strategies as st
from read_conditions import SCHEMA, read_condition

from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import FALSE, TRUE, Expr, InBuckets, map_leaves
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
    apply,
)

_TYPES = {field.name: field.field_type for field in SCHEMA.fields}
_EPOCH = date(1970, 1, 1)
_DAY_US = 86_400_000_000
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PERIODS = {"years": YearTransform(), "months": MonthTransform(), "hours": HourTransform()}
_TEXTS = ("", "a", "ab", "abc", "abd", "b", "\U0001f9ca", "\U0001f9caa")
# Near one another, so that conditions hold often.
_DAYS = st.integers(-40, 40) | st.sampled_from([-3487, 20454, 20485])
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "d": _DAYS,
    "ts": st.builds(lambda day, us: day * _DAY_US + us, _DAYS, st.sampled_from([0, 1, -1])),
    "ntz": st.builds(lambda day, us: day * _DAY_US + us, _DAYS, st.sampled_from([0, 1, -1])),
    "n": st.integers(-40, 40) | st.sampled_from([-(2**31), -(2**31) + 5, 2**31 - 1]),
    "t": st.sampled_from(_TEXTS),
}
_TIMES = ["d", "ts", "ntz"]
_ROWS = st.fixed_dictionaries({name: st.none() | values for name, values in _VALUES.items()})


@dataclass(frozen=True)
class _Call:
    """A transform of a column, and the values that it is compared with.

    Attributes:
        constants: as written, with what they mean.
    """

    text: str
    column: str
    transform: Transform
    constants: st.SearchStrategy[tuple[str, Any]]

    def value(self, row: dict[str, Any]) -> Any:
        """As Spark has it; None for null."""
        value = row[self.column]
        if value is None:
            return None
        found = apply(self.transform, _TYPES[self.column], value)
        # Truncated below the least integer, it wraps around.
        return found + 2**32 if isinstance(found, int) and found < -(2**31) else found


@st.composite
def _calls(draw: st.DrawFn) -> _Call:
    numbers = st.integers(-12, 12)
    match draw(st.sampled_from(["bucket", "truncate of numbers", "truncate of texts", "period"])):
        case "bucket":
            column, count = draw(st.sampled_from(list(_VALUES))), draw(st.integers(1, 8))
            text = f"lake.system.bucket({count}, {column})"
            return _Call(text, column, BucketTransform(count), _written(numbers))
        case "truncate of numbers":
            width = draw(st.integers(1, 10))
            multiples = _written(numbers.map(lambda number: number * width))
            return _Call(
                f"lake.system.truncate({width}, n)", "n", TruncateTransform(width), multiples
            )
        case "truncate of texts":
            width, texts = draw(st.integers(1, 3)), st.sampled_from(_TEXTS)
            chosen = texts.map(lambda each: (f"'{each}'", each))
            return _Call(f"lake.system.truncate({width}, t)", "t", TruncateTransform(width), chosen)
        case _:
            function = draw(st.sampled_from(["days", *_PERIODS]))
            column = draw(st.sampled_from(["ts", "ntz"] if function == "hours" else _TIMES))
            text = f"lake.system.{function}({column})"
            if function == "days":
                return _Call(text, column, DayTransform(), _DAYS.map(lambda day: (_day(day), day)))
            return _Call(text, column, _PERIODS[function], _written(numbers))


def _written(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[str, int]]:
    return numbers.map(lambda number: (str(number), number))


def _day(number: int) -> str:
    return f"DATE '{_EPOCH + timedelta(days=number)}'"


@st.composite
def _conditions(draw: st.DrawFn) -> tuple[str, Callable[[dict[str, Any]], bool]]:
    """A condition, and whether it is true for a row."""
    call = draw(_calls())
    if draw(st.booleans()):
        chosen = draw(st.lists(call.constants, min_size=1, max_size=3))
        values = [value for _, value in chosen]
        text = f"{call.text} IN ({', '.join(text for text, _ in chosen)})"
        if draw(st.booleans()):
            return f"NOT {text}", lambda row: call.value(row) not in [None, *values]
        return text, lambda row: call.value(row) in values
    sign, (constant, value) = draw(st.sampled_from(list(_COMPARED))), draw(call.constants)

    def holds(row: dict[str, Any]) -> bool:
        found = call.value(row)
        return found is not None and _COMPARED[sign](found, value)

    return f"{call.text} {sign} {constant}", holds


@examples(2000)
@given(_conditions(), st.lists(_ROWS, min_size=20, max_size=20))
def test_what_is_said_is_true_for_the_same_rows(
    condition: tuple[str, Callable[[dict[str, Any]], bool]], rows: list[dict[str, Any]]
) -> None:
    text, holds = condition
    said = read_condition(text)
    event("says something" if said != TRUE else "says nothing")
    for row in rows:
        assert said == TRUE or holds(row) == _is_true(said, row), (text, said, row)


def _is_true(said: Expr, row: dict[str, Any]) -> bool:
    by_id = {field.field_id: field for field in SCHEMA.fields}

    def in_buckets(leaf: InBuckets) -> Expr:
        field = by_id[leaf.field_id]
        value = row[field.name]
        if value is None:
            return FALSE
        found = apply(BucketTransform(leaf.count), field.field_type, value)
        return TRUE if found in leaf.buckets else FALSE

    plain = map_leaves(said, lambda leaf: leaf, in_buckets)
    return matches(plain, lambda field_id: row[by_id[field_id].name])
