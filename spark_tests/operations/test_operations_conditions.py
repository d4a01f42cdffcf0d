"""Which conditions may be planned with, as Spark's settings say how it reads and compares them."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr, InBuckets, Not, Operation, Predicate, and_
from icebergds.operations.conditions import (
    choosing_filter,
    default_setting,
    plannable_condition,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    NestedField,
)

_TYPES = {
    "i": INT,
    "l": LONG,
    "f": FLOAT,
    "g": DOUBLE,
    "m": DecimalType(9, 2),
    "b": BOOLEAN,
    "d": DATE,
    "t": TIMESTAMPTZ,
    "s": STRING,
    "u": UUID,
}
_SCHEMA = Schema(tuple(NestedField(n, *named) for n, named in enumerate(_TYPES.items(), 1)))
_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
_DATES = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"


def is_plannable(condition: str) -> bool:
    return plannable_condition(condition, _SCHEMA, "UTC", default_setting) is not None


def is_plannable_with(condition: str, settings: dict[str, str]) -> bool:
    return plannable_condition(condition, _SCHEMA, "UTC", settings.get) is not None


@pytest.mark.parametrize(
    ("condition", "setting"),
    [
        ('s = "c"', _QUOTES),
        (r"s = 'x\\y'", _ESCAPES),
        ("s = 'it''s'", _CONSECUTIVE),
    ],
)
def test_text_that_a_setting_gives_another_meaning(condition: str, setting: str) -> None:
    assert is_plannable(condition)
    assert is_plannable_with(condition, {setting: "false"})
    assert not is_plannable_with(condition, {setting: "true"})
    assert is_plannable_with("s = 'c' and i > 5", {setting: "true"})


@pytest.mark.parametrize(
    "condition",
    [
        "f = '0.1'",
        "i = 16777217F",
        "l = '1'",
        "b = 'true'",
        "t > '2024-01-01'",
        "t > date'2024-01-01'",
    ],
)
def test_comparisons_that_follow_ansi(condition: str) -> None:
    assert is_plannable(condition)
    assert not is_plannable_with(condition, {"spark.sql.ansi.enabled": "false"})


@pytest.mark.parametrize(
    "condition",
    [
        "i = 5",
        "i = 5.5",
        "f = 5",
        "f = 0.1D",
        "g > 0.1",
        "m = 1.5D",
        "b = true",
        "d = date'2024-01-01'",
        "t > timestamp'2024-01-01 00:00:00'",
        "s in ('a', 'b') or s is null",
        "not s like 'a%'",
    ],
)
def test_comparisons_that_are_the_same_without_ansi(condition: str) -> None:
    assert is_plannable_with(condition, {"spark.sql.ansi.enabled": "false"})


def test_dates_as_text_are_dates_unless_spark_makes_all_dates_text() -> None:
    without_ansi = {"spark.sql.ansi.enabled": "false"}
    assert is_plannable_with("d >= '2024-01-01' and i = 1", without_ansi)
    assert not is_plannable_with("d >= '2024-1-1'", without_ansi)
    assert not is_plannable_with("d >= '2024-01-01'", {**without_ansi, _DATES: "true"})


def test_numbers_that_spark_rounds() -> None:
    assert not is_plannable("l = 9007199254740993D")
    assert not is_plannable("f = 16777217")


def test_uuids_are_text_to_spark() -> None:
    assert is_plannable("u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")
    assert not is_plannable("u != 'F79C3E09-677C-4BBD-A479-3F349CB785E7'")


_IS_ONE = Predicate(Operation.EQ, "i", (1,))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (_IS_ONE, "not bound to the table's schema"),
        (Not(_IS_ONE), "not bound to the table's schema"),
        (bind(_IS_ONE, Schema((NestedField(77, "i", INT),))), "the table has no field 77"),
        (InBuckets(78, 4, (1,)), "the table has no field 78"),
    ],
)
def test_filters_that_are_not_of_the_table_choose_no_files(given: Expr, error: str) -> None:
    with pytest.raises(InvalidFilterError, match=error):
        choosing_filter(given, _SCHEMA, "UTC")


def test_bound_filters_choose_files_as_they_are() -> None:
    given = and_(bind(_IS_ONE, _SCHEMA), InBuckets(2, 4, (1,)))
    assert choosing_filter(given, _SCHEMA, "UTC") == given
