"""Partitioning and sort orders written as text: `days(ts), bucket(16, id)`, `ts desc, id`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.names import resolve
from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    can_transform,
)
from icebergds.spec.types import NestedField


def parse_partition_by(text: str, schema: Schema) -> PartitionSpec:
    """A partition spec from terms joined by commas.

    A term is a column, or one of `years`, `months`, `days`, `hours` (also without the s), `date`,
    `date_hour`, `bucket(n, column)`, `truncate(width, column)`, `identity`, `void`; `as name` names
    the partition field, which else is named as Java does: `ts_day`, `id_bucket`.

    Raises:
        InvalidOptionError: something else stands there, an unknown column, a transform that
            does not take the column's type, or a name that is taken.
    """
    fields: list[PartitionField] = []
    for term in _terms(text, "partition-by"):
        if term.direction or term.nulls:
            raise InvalidOptionError(
                f"partition-by {text!r}: {term.text!r} orders, which sort-by does"
            )
        source = _column(term, schema, "partition-by", text)
        path = ".".join(schema.paths_by_id[source.field_id])
        name = term.alias or path + _SUFFIXES.get(type(term.transform), "")
        taken = {field.name for field in fields}
        if name in taken:
            raise InvalidOptionError(
                f"partition-by {text!r}: two fields would be named {name!r}; name one with 'as'"
            )
        field_id = FIRST_PARTITION_FIELD_ID + len(fields)
        fields.append(PartitionField((source.field_id,), field_id, term.transform, name))
    return PartitionSpec(0, tuple(fields))


def parse_sort_by(text: str, schema: Schema) -> SortOrder:
    """A sort order from terms joined by commas: `ts desc nulls last, bucket(16, id)`.

    Ascending by default; nulls come first in ascending and last in descending order, as in Spark.

    Raises:
        InvalidOptionError: something else stands there, an unknown column, or a transform that
            does not take the column's type.
    """
    fields = []
    for term in _terms(text, "sort-by"):
        if term.alias:
            raise InvalidOptionError(
                f"sort-by {text!r}: {term.text!r} has a name, sort keys do not"
            )
        source = _column(term, schema, "sort-by", text)
        direction = SortDirection.DESC if term.direction == "desc" else SortDirection.ASC
        first = term.nulls == "first" if term.nulls else direction is SortDirection.ASC
        nulls = NullOrder.NULLS_FIRST if first else NullOrder.NULLS_LAST
        fields.append(SortField((source.field_id,), term.transform, direction, nulls))
    return SortOrder(1 if fields else 0, tuple(fields))


@dataclass(frozen=True, slots=True)
class _Term:
    text: str
    column: str
    transform: Transform
    alias: str | None
    direction: str | None
    nulls: str | None


_PART = r"(?:`(?:[^`]|``)+`|[^\s`.,()]+)"
_COLUMN = rf"{_PART}(?:\.{_PART})*"
_TERM = re.compile(
    rf"""\s*(?:
        (?P<function>[A-Za-z_]+)\s*\(\s*
            (?:(?P<first>\d+)\s*,\s*)?
            (?P<argument>{_COLUMN})
            (?:\s*,\s*(?P<second>\d+))?
        \s*\)
        | (?P<column>{_COLUMN})
    )
    (?:\s+as\s+(?P<alias>{_PART}))?
    (?:\s+(?P<direction>asc|desc))?
    (?:\s+nulls\s+(?P<nulls>first|last))?
    \s*(?P<end>,|$)""",
    re.VERBOSE | re.IGNORECASE,
)
_WITHOUT_ARGUMENT: dict[str, Transform] = {
    "identity": IdentityTransform(),
    "void": VoidTransform(),
    "year": YearTransform(),
    "years": YearTransform(),
    "month": MonthTransform(),
    "months": MonthTransform(),
    "day": DayTransform(),
    "days": DayTransform(),
    "date": DayTransform(),
    "hour": HourTransform(),
    "hours": HourTransform(),
    "date_hour": HourTransform(),
}
# Numbers of transforms have 32 bits in other implementations.
_GREATEST = 2**31 - 1
_SUFFIXES: dict[type[Transform], str] = {
    VoidTransform: "_null",
    YearTransform: "_year",
    MonthTransform: "_month",
    DayTransform: "_day",
    HourTransform: "_hour",
    BucketTransform: "_bucket",
    TruncateTransform: "_trunc",
}


def _terms(text: str, option: str) -> Iterator[_Term]:
    at = 0
    if not text.strip():
        return
    while True:
        match = _TERM.match(text, at)
        if match is None:
            raise InvalidOptionError(
                f"{option} {text!r}: cannot be read at {text[at:].strip()[:40]!r}; expected "
                "columns and transforms joined by commas: days(ts), bucket(16, id), country"
            )
        function = (match["function"] or "identity").lower()
        alias = match["alias"]
        numbers = [number for number in (match["first"], match["second"]) if number]
        yield _Term(
            match[0].strip(" ,\n\t"),
            match["argument"] or match["column"],
            _transform(function, numbers, option, text),
            alias[1:-1].replace("``", "`") if alias and alias[0] == "`" else alias,
            match["direction"] and match["direction"].lower(),
            match["nulls"] and match["nulls"].lower(),
        )
        at = match.end()
        if not match["end"]:
            return


def _transform(function: str, numbers: list[str], option: str, text: str) -> Transform:
    if function in ("bucket", "truncate"):
        if len(numbers) != 1 or not 1 <= int(numbers[0]) <= _GREATEST:
            raise InvalidOptionError(
                f"{option} {text!r}: {function} needs one number from 1 to {_GREATEST}, such as "
                f"{function}(16, id)"
            )
        number = int(numbers[0])
        return BucketTransform(number) if function == "bucket" else TruncateTransform(number)
    found = _WITHOUT_ARGUMENT.get(function)
    if found is None or numbers:
        raise InvalidOptionError(
            f"{option} {text!r}: {function} with {'a' if numbers else 'no'} number is no "
            "transform; expected bucket(n, column), truncate(width, column) or one of "
            f"{', '.join(_WITHOUT_ARGUMENT)}"
        )
    return found


def _column(term: _Term, schema: Schema, option: str, text: str) -> NestedField:
    try:
        field = resolve(term.column, schema, case_sensitive=False)
    except InvalidFilterError as error:
        raise InvalidOptionError(f"{option} {text!r}: {error}") from None
    if not can_transform(term.transform, field.field_type):
        raise InvalidOptionError(
            f"{option} {text!r}: {term.transform} does not take column {field.name!r} of type "
            f"{field.field_type}"
        )
    return field
