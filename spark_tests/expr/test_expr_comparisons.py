"""Which comparisons Spark makes by the exact values of both sides."""

from __future__ import annotations

import pytest

from icebergds.expr.comparisons import compares_exactly
from icebergds.expr.sql import parse_filter
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
)

SCHEMA = Schema(
    (
        NestedField(1, "i", INT),
        NestedField(2, "l", LONG),
        NestedField(3, "f", FLOAT),
        NestedField(4, "d", DOUBLE),
        NestedField(5, "narrow", DecimalType(15, 2)),
        NestedField(6, "wide", DecimalType(20, 2)),
        NestedField(7, "s", STRING),
        NestedField(8, "local", TIMESTAMP),
        NestedField(9, "instant", TIMESTAMPTZ),
        NestedField(10, "day", DATE),
    )
)


@pytest.mark.parametrize(
    "condition",
    [
        "l = 9007199254740993",
        "l = 9007199254740991D",
        "l < 1.5D",
        "l = 9007199254740993.0",
        "i = 9007199254740992D",
        "f = 16777216",
        "f = 0.1",
        "d = 9007199254740992",
        "narrow = 0.1D",
        "wide = 0.1",
        "s = '1' and not (l is null or d in (1, 2))",
        "i = '12' and l in ('-9223372036854775808')",
        "narrow = '0.10'",
        "d = '0.1' and f < 'NaN'",
        "day = '2024-03-10'",
        "instant >= '2024-03-10 00:00:00.123456+01:00'",
        "true",
    ],
)
def test_exact_comparisons(condition: str) -> None:
    assert compares_exactly(parse_filter(condition), SCHEMA)


@pytest.mark.parametrize(
    "condition",
    [
        "l = 9007199254740992D",
        "l > -1e16",
        "f = 16777217",
        "d in (1, 9007199254740993)",
        "wide = 0.1D",
        "s = 'a' and (i = 1 or not l = 1e16)",
        "l not in (9007199254740993.0, 1D)",
        "l in (1, 2.5)",
        "l in (1, '2')",
        "wide in (12345678901234567890123456789012345678, 123456789012345678.991)",
        "wide = 1.12345678901234567890123",
        "l = 1.1234567890123456789",
        "l < '9223372036854775808'",
        "i < '2147483648'",
        "wide = '0.1'",
        "narrow = '1234567890123456'",
        "narrow = '1e1'",
        "day < '99999-01-01'",
        "instant >= '2024-03-10 00:00:00.1234567Z'",
        "local >= '2024-03-10 00:00:00.0000001'",
    ],
)
def test_rounded_comparisons(condition: str) -> None:
    assert not compares_exactly(parse_filter(condition), SCHEMA)


def test_names_regardless_of_case() -> None:
    assert not compares_exactly(parse_filter("L = 1e16"), SCHEMA, case_sensitive=False)


@pytest.mark.parametrize(
    ("condition", "is_exact"),
    [
        ("local = timestamp'2024-03-10 01:59:59'", True),
        ("local = timestamp'2024-03-10 02:00:00'", False),
        ("local in (timestamp'2024-03-10 02:30:00')", False),
        ("local = timestamp'2024-03-10 03:00:00'", False),
        ("local < timestamp'2024-03-11 01:59:59'", False),
        ("local < timestamp'2024-03-11 03:00:00'", True),
        ("local = timestamp'2024-11-03 01:30:00'", True),
        ("local = '2024-03-10 02:30:00'", True),
        ("instant = timestamp'2024-03-10 02:30:00'", True),
        ("local > timestamp'9999-12-31 23:59:59'", False),
        ("local > timestamp'0001-01-01 00:00:00'", False),
        ("day = timestamp'2024-03-10 12:00:00'", False),
        ("day = timestamp'2024-03-12 12:00:00'", True),
        ("day = date'2024-03-10'", True),
    ],
)
def test_local_times_that_the_zone_skips_are_others_to_spark(
    condition: str, is_exact: bool
) -> None:
    parsed = parse_filter(condition, time_zone="America/New_York")
    assert compares_exactly(parsed, SCHEMA) is is_exact
    assert compares_exactly(parse_filter(condition), SCHEMA)
