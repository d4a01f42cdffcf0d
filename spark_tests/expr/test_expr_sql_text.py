"""Bound filters written as Spark SQL, which reads back as the same filter."""

from __future__ import annotations

import pytest
from effort import examples
from hypothesis import assume, given, strategies as st
from strategies.expressions import SCALAR_TYPES, Row, filters, rows, value_of

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import (
    FALSE,
    TRUE,
    And,
    BoundPredicate,
    Expr,
    Or,
)
from icebergds.expr.sql import parse_filter
from icebergds.expr.sql_text import sql_text
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    NestedField,
    StructType,
)

TYPES = dict(enumerate(SCALAR_TYPES, start=1))
INSTANTS = {TIMESTAMPTZ: 10**6, TIMESTAMPTZ_NS: 10**9}
NAMES = ["id", "order", "not", "a b", "it`s", "a.b", "Date", "x", "null", "é", "1a"]


def is_readable(expr: Expr) -> bool:
    """Whether text can express a filter: instants only of the years 1 to 9999."""
    match expr:
        case And(left, right) | Or(left, right):
            return is_readable(left) and is_readable(right)
        case BoundPredicate(field_type=kind, values=values) if kind in INSTANTS:
            seconds = [value // INSTANTS[kind] for value in values]
            return all(-62_135_510_400 <= second < 253_402_214_400 for second in seconds)
        case _:
            return True


@given(filters(TYPES), rows(TYPES, min_size=1), st.sampled_from(NAMES))
@examples(300)
def test_the_text_of_a_filter_selects_the_same_rows(expr: Expr, some: list[Row], name: str) -> None:
    assume(is_readable(expr))
    schema = Schema(
        tuple(NestedField(i, f"{name}{i}" if i > 1 else name, t) for i, t in TYPES.items())
    )
    text = sql_text(expr, schema)
    read = bind(parse_filter(text), schema)
    found = [matches(read, value_of(row)) for row in some]
    assert found == [matches(expr, value_of(row)) for row in some], text


@pytest.mark.parametrize(
    "text",
    [
        "day = DATE '2026-01-31' AND (id > 5 OR name IS NULL)",
        "name IN ('a', 'it\\'s') AND s.city != 'Rome'",
        "NOT startswith(name, 'a%')",
        "`a b` IS NOT NULL",
    ],
)
def test_the_text_is_what_one_would_write(text: str) -> None:
    city = StructType((NestedField(4, "city", STRING),))
    schema = Schema(
        (
            NestedField(1, "id", LONG),
            NestedField(2, "name", STRING),
            NestedField(3, "s", city),
            NestedField(5, "a b", LONG),
            NestedField(6, "day", DATE),
        )
    )
    assert sql_text(bind(parse_filter(text), schema), schema) == text


def test_constants_are_written_as_words() -> None:
    assert [sql_text(expr, Schema(())) for expr in (TRUE, FALSE)] == ["TRUE", "FALSE"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("at >= timestamp'2026-03-01'", "filter at >= timestamp'2026-03-01 00:00:00': column at"),
        ("n IN ('a', 'it''s')", "filter n IN ('a', 'it\\'s'): column n"),
    ],
)
def test_messages_show_a_filter_as_sql(text: str, said: str) -> None:
    schema = Schema((NestedField(1, "at", TIMESTAMPTZ), NestedField(2, "n", INT)))
    with pytest.raises(InvalidFilterError) as raised:
        bind(parse_filter(text), schema)
    assert str(raised.value).startswith(said)
    assert "gt_eq" not in str(raised.value)
