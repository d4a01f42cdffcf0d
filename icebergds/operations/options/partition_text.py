"""Parses partition specs and sort orders from text: `days(ts), bucket(16, id)`, `ts desc, id`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.names import resolve
from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import (
    MAX_WIDTH,
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


def parse_partition_by(text: str, schema: Schema, option: str = "partition-by") -> PartitionSpec:
    """Parses a partition spec from terms separated by commas.

    A term is a column or a transform of one: `years`, `months`, `days`, `hours` (also without the
    s), `date`, `date_hour`, `identity`, `void`, `bucket(n, column)` or `truncate(width, column)`.
    `as name` names the partition field; the default is Java Iceberg's name: `ts_day`, `id_bucket`.
    Errors name the option.

    Raises:
        InvalidOptionError: the text cannot be parsed, a column does not exist, a transform does
            not apply to its column's type, or two fields have the same name.
    """
    fields: list[PartitionField] = []
    for term in _terms(text, option):
        if term.direction or term.nulls:
            raise InvalidOptionError(
                f"{option} {text!r}: {term.text!r} has a sort direction or null order; "
                "give those in the sort order"
            )
        source = _column(term, schema, option, text)
        path = ".".join(schema.paths_by_id[source.field_id])
        name = term.alias or path + _SUFFIXES.get(type(term.transform), "")
        taken = {field.name for field in fields}
        if name in taken:
            raise InvalidOptionError(
                f"{option} {text!r}: two partition fields would be named {name!r}; "
                "rename one with 'as <name>'"
            )
        field_id = FIRST_PARTITION_FIELD_ID + len(fields)
        fields.append(PartitionField((source.field_id,), field_id, term.transform, name))
    return PartitionSpec(0, tuple(fields))


def parse_sort_by(text: str, schema: Schema, option: str = "sort-by") -> SortOrder:
    """Parses a sort order from terms separated by commas: `ts desc nulls last, bucket(16, id)`.

    The default is ascending. Nulls come first in ascending and last in descending order, as in
    Spark. Errors name the option.

    Raises:
        InvalidOptionError: the text cannot be parsed, a column does not exist, or a transform does
            not apply to its column's type.
    """
    fields = []
    for term in _terms(text, option):
        if term.alias:
            raise InvalidOptionError(
                f"{option} {text!r}: {term.text!r} names the field with 'as', but sort fields have "
                "no names; leave 'as' out"
            )
        source = _column(term, schema, option, text)
        direction = SortDirection.DESC if term.direction == "desc" else SortDirection.ASC
        first = term.nulls == "first" if term.nulls else direction is SortDirection.ASC
        nulls = NullOrder.NULLS_FIRST if first else NullOrder.NULLS_LAST
        fields.append(SortField((source.field_id,), term.transform, direction, nulls))
    return SortOrder(1 if fields else 0, tuple(fields))


def parse_term(
    text: str, schema: Schema, transform: Transform | None, option: str = "field"
) -> tuple[int, Transform, str | None]:
    """Parses one term: the id of its column, the transform and the name after `as`.

    Args:
        transform: the column's transform, if the text is a column's name alone.

    Raises:
        InvalidOptionError: it is not one term, has two transforms, a sort direction or null order,
            or does not fit the schema.
    """
    terms = list(_terms(text, option))
    if len(terms) != 1 or terms[0].direction or terms[0].nulls:
        raise InvalidOptionError(
            f"{option} {text!r}: expected one column or transform of a column, such as ts or "
            "days(ts)"
        )
    term = terms[0]
    if transform is not None:
        if term.transform != IdentityTransform():
            raise InvalidOptionError(
                f"{option} {text!r}: it has a transform already, {term.transform}, and {transform} "
                "is given besides; give the column's name alone"
            )
        term = replace(term, transform=transform)
    return _column(term, schema, option, text).field_id, term.transform, term.alias


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
# Other implementations hold the argument of a transform in 32 bits.
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
                f"{option} {text!r}: cannot be parsed at {text[at:].strip()[:40]!r}; expected "
                "columns and transforms separated by commas, such as days(ts), bucket(16, id), "
                "country"
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
        if len(numbers) != 1 or not 1 <= int(numbers[0]) <= MAX_WIDTH:
            raise InvalidOptionError(
                f"{option} {text!r}: {function} needs one number from 1 to {MAX_WIDTH}, such as "
                f"{function}(16, id)"
            )
        number = int(numbers[0])
        return BucketTransform(number) if function == "bucket" else TruncateTransform(number)
    found = _WITHOUT_ARGUMENT.get(function)
    if found is None or numbers:
        raise InvalidOptionError(
            f"{option} {text!r}: {function} {'with' if numbers else 'without'} a number is not a "
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
            f"{option} {text!r}: {term.transform} does not apply to column {field.name!r} of type "
            f"{field.field_type}"
        )
    return field
