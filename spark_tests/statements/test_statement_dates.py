"""Conditions on dates and times become ranges of columns."""

from __future__ import annotations

import pytest
from read_conditions import SCHEMA, read_condition

from icebergds.expr.sql_text import sql_text


def _read(condition: str) -> str:
    """What a condition says of the rows, as a filter."""
    return sql_text(read_condition(condition), SCHEMA)


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("d < DATE '1994-01-01' + INTERVAL '1' YEAR", "d < DATE '1995-01-01'"),
        ("d < DATE '2024-02-29' - INTERVAL 1 YEAR", "d < DATE '2023-02-28'"),
        ("d >= DATE '2026-01-31' + INTERVAL 1 MONTH", "d >= DATE '2026-02-28'"),
        ("d >= DATE '2026-01-31' - INTERVAL 3 DAYS", "d >= DATE '2026-01-28'"),
        ("d >= DATE '2026-01-31' + 1", "d >= DATE '2026-02-01'"),
        ("d = add_months(DATE '2026-01-31', 13)", "d = DATE '2027-02-28'"),
        ("d > date_sub(DATE '2026-01-01', 1)", "d > DATE '2025-12-31'"),
        (
            "d IN (DATE '2026-01-01' + 1, DATE '2026-01-05')",
            "d IN (DATE '2026-01-02', DATE '2026-01-05')",
        ),
        ("NOT d = DATE '2026-01-01' + 1", "d != DATE '2026-01-02'"),
        (
            "d BETWEEN DATE '2026-01-01' AND DATE '2026-01-01' + 6",
            "d >= DATE '2026-01-01' AND d <= DATE '2026-01-07'",
        ),
    ],
)
def test_constant_dates_are_computed_as_by_spark(condition: str, plain: str) -> None:
    assert _read(condition) == _read(plain) != "TRUE"


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        (
            "CAST(ts AS DATE) = DATE '2026-01-31'",
            "ts >= DATE '2026-01-31' AND ts < DATE '2026-02-01'",
        ),
        ("date(ts) >= '2026-01-31'", "ts >= DATE '2026-01-31'"),
        ("to_date(ntz) > DATE '2026-01-31'", "ntz >= DATE '2026-02-01'"),
        ("ts::date <= DATE '2026-01-31'", "ts < DATE '2026-02-01'"),
        ("DATE '2026-01-31' > date(ts)", "ts < DATE '2026-01-31'"),
        (
            "NOT date(ts) = DATE '2026-01-31'",
            "ts < DATE '2026-01-31' OR ts >= DATE '2026-02-01'",
        ),
        ("year(to_date(ntz)) <> 2026", "ntz < DATE '2026-01-01' OR ntz >= DATE '2027-01-01'"),
        ("date(ts) >= current_date() - 7", "ts >= DATE '2026-03-22'"),
        ("year(d) = 2026", "d >= DATE '2026-01-01' AND d < DATE '2027-01-01'"),
        ("year(ts) > 2026", "ts >= DATE '2027-01-01'"),
        ("year(ts) BETWEEN 2025 AND 2026", "ts >= DATE '2025-01-01' AND ts < DATE '2027-01-01'"),
    ],
)
def test_days_and_years_become_ranges(condition: str, plain: str) -> None:
    assert _read(condition) == _read(plain) != "TRUE"


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("d >= current_date() - INTERVAL 7 DAYS", "d >= DATE '2026-03-22'"),
        ("d > current_date - 7", "d >= DATE '2026-03-22'"),
        ("ts > now() - INTERVAL 2 HOURS", "ts >= DATE '2026-03-29'"),
        ("ts > current_timestamp() - INTERVAL '1' MONTH", "ts >= DATE '2026-02-26'"),
        ("d = current_date()", "d >= DATE '2026-03-29'"),
        ("d >= date_sub(current_date(), 30)", "d >= DATE '2026-02-27'"),
        ("d > current_date() + INTERVAL 1 YEAR", "d >= DATE '2027-02-28'"),
    ],
)
def test_the_current_time_bounds_from_below(condition: str, plain: str) -> None:
    assert _read(condition) == _read(plain) != "TRUE"


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        (
            "lake.system.days(ts) = DATE '2026-01-31'",
            "ts >= TIMESTAMP '2026-01-31 00:00:00Z' AND ts < TIMESTAMP '2026-02-01 00:00:00Z'",
        ),
        ("system.days(d) >= '2026-01-31'", "d >= DATE '2026-01-31'"),
        ("lake.system.days(ntz) < DATE '2026-01-31'", "ntz < TIMESTAMP_NTZ '2026-01-31 00:00:00'"),
        ("56 = lake.system.years(d)", "d >= DATE '2026-01-01' AND d < DATE '2027-01-01'"),
        ("lake.system.months(d) > 671", "d >= DATE '2026-01-01'"),
        ("lake.system.hours(ts) <= -1", "ts < TIMESTAMP '1970-01-01 00:00:00Z'"),
        ("lake.system.truncate(10, n) = -20", "n >= -20 AND n < -10"),
        ("lake.system.truncate(2, t) = 'ab'", "t LIKE 'ab%'"),
        ("lake.system.truncate(3, t) = 'ab'", "t = 'ab'"),
        ("lake.system.truncate(2, t) >= 'ab'", "t >= 'ab'"),
        ("lake.system.truncate(2, t) > 'ab'", "t > 'ab' AND t NOT LIKE 'ab%'"),
        ("lake.system.truncate(2, t) < 'ab'", "t < 'ab'"),
        ("lake.system.truncate(2, t) <= 'ab'", "t < 'ab' OR t LIKE 'ab%'"),
        ("lake.system.truncate(3, t) <= 'ab'", "t <= 'ab'"),
        (
            "lake.system.truncate(10, n) IN (10, 30)",
            "n >= 10 AND n < 20 OR n >= 30 AND n < 40",
        ),
        (
            "lake.system.days(d) IN (DATE '2026-01-31', DATE '2026-02-02')",
            "d >= DATE '2026-01-31' AND d < DATE '2026-02-01' "
            "OR d >= DATE '2026-02-02' AND d < DATE '2026-02-03'",
        ),
    ],
)
def test_transforms_become_ranges(condition: str, plain: str) -> None:
    assert _read(condition) == _read(plain) != "TRUE"


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("lake.system.truncate(10, n) >= 20", "n >= 20 OR n < -2147483640"),
        ("lake.system.truncate(10, n) > 20", "n >= 30 OR n < -2147483640"),
        ("lake.system.truncate(10, n) < 20", "n < 20 AND n >= -2147483640"),
        ("lake.system.truncate(16, n) > 16", "n >= 32"),
    ],
)
def test_truncations_of_the_least_integers_are_the_greatest(condition: str, plain: str) -> None:
    assert _read(condition) == _read(plain)


@pytest.mark.parametrize(
    ("condition", "buckets"),
    [
        ("lake.system.bucket(4, n) = 1", "system.bucket(4, n) IN (1)"),
        ("2 < system.bucket(5, t)", "system.bucket(5, t) IN (3, 4)"),
        ("lake.system.bucket(4, d) IN (7, 3, 0, 3)", "system.bucket(4, d) IN (0, 3)"),
        ("lake.system.bucket(3, ts) <= 1", "system.bucket(3, ts) IN (0, 1)"),
        ("lake.system.bucket(4, n) <> 1", "system.bucket(4, n) IN (0, 2, 3)"),
        ("NOT lake.system.bucket(4, n) IN (1, 2)", "system.bucket(4, n) IN (0, 3)"),
    ],
)
def test_conditions_on_buckets_choose_buckets(condition: str, buckets: str) -> None:
    assert _read(condition) == buckets


def test_a_bucket_that_no_value_is_in_is_never_chosen() -> None:
    assert _read("lake.system.bucket(4, n) = 4") == "FALSE"


@pytest.mark.parametrize(
    "condition",
    [
        "lake.system.bucket(4, n) IN (1, n)",
        "lake.system.bucket(n, n) = 1",
        "lake.system.bucket(0, n) = 0",
        "lake.system.bucket(4, n + 1) = 1",
        "lake.system.bucket(100000, n) < 99999",
        "lake.system.bucket(4, n) = 1 OR abs(n) = 3",
        "lake.system.truncate(10, n) = 3",
        "lake.system.truncate(2, t) > 'abc'",
        "lake.system.truncate(10, n) IN (10, 33)",
        "lake.system.truncate(10, n) IN (SELECT 10)",
        "lake.system.hours(d) = 3",
        "days(ts) = DATE '2026-01-31'",
        "d < current_date()",
        "d <> current_date()",
        "NOT d > current_date()",
        "CAST(t AS DATE) = DATE '2026-01-01'",
        "year(t) = 2026",
        "to_date(t, 'yyyyMMdd') = DATE '2026-01-01'",
        "month(d) = 3",
        "date(ts) = 'yesterday'",
        "d < DATE '2026-01-01' + INTERVAL 1 HOUR",
        "CAST(n AS DATE) = DATE '2026-01-01'",
    ],
)
def test_what_is_no_range_says_nothing(condition: str) -> None:
    assert _read(condition) == "TRUE"
