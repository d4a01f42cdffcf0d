"""Partitioning and sort orders as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from icebergds.errors import InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.spec.partition import PartitionField, PartitionSpec
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
)
from icebergds.spec.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    ListType,
    NestedField,
    StructType,
)

_SCHEMA = Schema(
    (
        NestedField(4, "id", LONG),
        NestedField(2, "ts", TIMESTAMP),
        NestedField(3, "Name", STRING),
        NestedField(9, "point", StructType((NestedField(5, "x", INT), NestedField(6, "y.z", INT)))),
        NestedField(7, "a.b", STRING),
        NestedField(8, "back`tick, (odd) name", STRING),
        NestedField(10, "amount", DOUBLE),
        NestedField(11, "tags", ListType(12, STRING)),
    )
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", (4, IdentityTransform(), "id")),
        ("  identity( id ) ", (4, IdentityTransform(), "id")),
        ("year(ts)", (2, YearTransform(), "ts_year")),
        ("years(ts)", (2, YearTransform(), "ts_year")),
        ("month(ts)", (2, MonthTransform(), "ts_month")),
        ("months(ts)", (2, MonthTransform(), "ts_month")),
        ("day(ts)", (2, DayTransform(), "ts_day")),
        ("days(ts)", (2, DayTransform(), "ts_day")),
        ("date(ts)", (2, DayTransform(), "ts_day")),
        ("hour(ts)", (2, HourTransform(), "ts_hour")),
        ("hours(ts)", (2, HourTransform(), "ts_hour")),
        ("date_hour(ts)", (2, HourTransform(), "ts_hour")),
        ("bucket(16, id)", (4, BucketTransform(16), "id_bucket")),
        ("bucket(id,16)", (4, BucketTransform(16), "id_bucket")),
        ("BUCKET ( 16 , ID )", (4, BucketTransform(16), "id_bucket")),
        ("truncate(3, name)", (3, TruncateTransform(3), "Name_trunc")),
        ("void(id)", (4, VoidTransform(), "id_null")),
        ("point.x", (5, IdentityTransform(), "point.x")),
        ("bucket(2, point.`y.z`)", (6, BucketTransform(2), "point.y.z_bucket")),
        ("`a.b`", (7, IdentityTransform(), "a.b")),
        ("`back``tick, (odd) name`", (8, IdentityTransform(), "back`tick, (odd) name")),
        ("days(ts) as d", (2, DayTransform(), "d")),
        ("days(ts) AS `d of ``it`", (2, DayTransform(), "d of `it")),
    ],
)
def test_terms_of_a_partitioning(text: str, expected: tuple[int, Transform, str]) -> None:
    (field,) = parse_partition_by(text, _SCHEMA).fields
    assert (field.source_id, field.transform, field.name) == expected


def test_partition_fields_are_numbered_in_order() -> None:
    spec = parse_partition_by("days(ts), bucket(4, id),\n Name", _SCHEMA)
    assert [(f.field_id, f.name) for f in spec.fields] == [
        (1000, "ts_day"),
        (1001, "id_bucket"),
        (1002, "Name"),
    ]


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_nothing_is_no_layout(text: str) -> None:
    assert parse_partition_by(text, _SCHEMA) == PartitionSpec()
    assert parse_sort_by(text, _SCHEMA) == SortOrder()


@pytest.mark.parametrize(
    ("text", "direction", "nulls"),
    [
        ("id", SortDirection.ASC, NullOrder.NULLS_FIRST),
        ("id asc", SortDirection.ASC, NullOrder.NULLS_FIRST),
        ("id DESC", SortDirection.DESC, NullOrder.NULLS_LAST),
        ("id nulls last", SortDirection.ASC, NullOrder.NULLS_LAST),
        ("id desc Nulls First", SortDirection.DESC, NullOrder.NULLS_FIRST),
    ],
)
def test_directions_and_nulls_are_as_in_spark(
    text: str, direction: SortDirection, nulls: NullOrder
) -> None:
    order = parse_sort_by(text, _SCHEMA)
    assert order == SortOrder(1, (SortField((4,), IdentityTransform(), direction, nulls),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("idd", "did you mean id"),
        ("bucket(16, idd)", "did you mean id"),
        ("id,", "cannot be parsed at ''"),
        (",id", "cannot be parsed at ',id'"),
        ("id ts", "cannot be parsed at 'id ts'"),
        ("days(ts", "cannot be parsed"),
        ("days()", "cannot be parsed"),
        ("bucket(id)", "bucket needs one number"),
        ("bucket(0, id)", "bucket needs one number from 1"),
        ("bucket(2147483648, id)", "bucket needs one number from 1 to 2147483647"),
        ("bucket(4, id, 8)", "bucket needs one number"),
        ("bucket(-4, id)", "cannot be parsed|did you mean"),
        ("truncate(Name)", "truncate needs one number"),
        ("days(4, ts)", "days with a number is not a transform"),
        ("weeks(ts)", "weeks without a number is not a transform"),
        ("days(id)", "day does not apply to column 'id' of type long"),
        ("hours(Name)", "hour does not apply to column 'Name' of type string"),
        ("bucket(4, amount)", "does not apply to column 'amount' of type double"),
        ("point", "does not apply to column 'point'"),
        ("tags", "does not apply to column 'tags'"),
        ("tags.element", "list"),
        ("id desc", "has a sort direction or null order"),
        ("id nulls first", "has a sort direction or null order"),
        ("id, ID", "two partition fields would be named 'id'"),
        ("bucket(4, id), bucket(8, id)", "rename one with 'as"),
        ("days(ts) as id, id", "two partition fields would be named 'id'"),
    ],
)
def test_what_is_no_partitioning(text: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message) as caught:
        parse_partition_by(text, _SCHEMA)
    assert str(caught.value).startswith(f"partition-by {text!r}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id as x", "sort fields have no names"),
        ("id up", "cannot be parsed"),
        ("id nulls", "cannot be parsed"),
        ("nothing", "sort-by 'nothing': column nothing"),
        ("tags", "does not apply to column 'tags'"),
    ],
)
def test_what_is_no_order(text: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        parse_sort_by(text, _SCHEMA)


_COLUMNS: dict[int, list[Any]] = {
    4: [IdentityTransform(), BucketTransform(7), TruncateTransform(10), VoidTransform()],
    2: [YearTransform(), MonthTransform(), DayTransform(), HourTransform()],
    6: [IdentityTransform(), BucketTransform(1)],
    7: [TruncateTransform(2), IdentityTransform()],
    8: [IdentityTransform(), BucketTransform(3)],
}
_TERMS = st.sampled_from([(i, t) for i, transforms in _COLUMNS.items() for t in transforms])
_NAMES = st.text(min_size=1, max_size=8).filter(lambda name: "\x00" not in name)


def _printed(source_id: int, transform: Transform) -> str:
    column = quote_name(_SCHEMA.paths_by_id[source_id])
    if source_id == 8:
        column = "`back``tick, (odd) name`"
    match transform:
        case BucketTransform(num):
            return f"bucket({num}, {column})"
        case TruncateTransform(width):
            return f"truncate({width}, {column})"
        case IdentityTransform():
            return column
        case _:
            return f"{transform}({column})"


@given(st.lists(st.tuples(_TERMS, _NAMES), max_size=5, unique_by=lambda term: term[1]))
def test_what_is_printed_is_parsed_as_a_partitioning(terms: list[Any]) -> None:
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField((source,), 1000 + at, transform, name)
            for at, ((source, transform), name) in enumerate(terms)
        ),
    )
    text = ", ".join(
        f"{_printed(f.source_id, f.transform)} as `{f.name.replace('`', '``')}`"
        for f in spec.fields
    )
    assert parse_partition_by(text, _SCHEMA) == spec


@given(
    st.lists(
        st.tuples(_TERMS, st.sampled_from(list(SortDirection)), st.sampled_from(list(NullOrder))),
        max_size=5,
    )
)
def test_what_is_printed_is_parsed_as_an_order(terms: list[Any]) -> None:
    keys = tuple(SortField((i,), t, direction, nulls) for (i, t), direction, nulls in terms)
    text = ",".join(
        f"{_printed(k.source_id, k.transform)} {k.direction} {k.null_order.replace('-', ' ')}"
        for k in keys
    )
    assert parse_sort_by(text, _SCHEMA) == SortOrder(1 if keys else 0, keys)
