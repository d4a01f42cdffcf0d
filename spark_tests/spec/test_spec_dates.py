"""Calendar arithmetic and ISO-8601 text."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, strategies as st
from strategies.spec_values import INT32, INT64

from icebergds.spec.values.dates import (
    civil_from_days,
    days_from_civil,
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_time,
    parse_timestamp,
    parse_utc_timestamp,
)


@given(st.dates())
def test_days_count_as_the_standard_library_counts_them(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert civil_from_days(days) == (day.year, day.month, day.day)
    assert days_from_civil(day.year, day.month, day.day) == days


def test_leap_years_repeat_after_400() -> None:
    for year in range(1600, 2001):
        first_of_march = days_from_civil(year, 3, 1)
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert civil_from_days(first_of_march) == (year, 3, 1)
        assert civil_from_days(first_of_march - 1) == (year, 2, 29 if is_leap else 28)
        assert civil_from_days(days_from_civil(year, 1, 1) - 1) == (year - 1, 12, 31)


@given(INT32)
def test_every_day_of_32_bits_survives_its_text(days: int) -> None:
    assert parse_date(format_date(days)) == days


@given(INT64, st.booleans())
def test_every_instant_of_64_bits_survives_its_text(value: int, nanos: bool) -> None:
    assert parse_timestamp(format_timestamp(value, nanos=nanos), nanos=nanos) == value


@given(st.integers(0, 86_400_000_000 - 1))
def test_every_time_of_day_survives_its_text(micros: int) -> None:
    assert parse_time(format_time(micros)) == micros


@given(st.integers(-800_000, 800_000))
def test_consecutive_days_are_consecutive_dates(days: int) -> None:
    year, month, day = civil_from_days(days)
    following = civil_from_days(days + 1)
    assert following > (year, month, day)
    assert following[2] in (day + 1, 1)


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (-719_528, "0000-01-01"),
        (-719_529, "-0001-12-31"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "+10000-01-01"),
        (17_486, str(date(1970, 1, 1) + timedelta(days=17_486))),
    ],
)
def test_years_outside_four_digits_carry_a_sign(days: int, text: str) -> None:
    assert format_date(days) == text


@pytest.mark.parametrize(
    "text", ["2007-13-01", "2007-02-29", "2007-1-1", "2007-01-01T00:00", "", "٢٠٠٧-01-01"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_date(text)


@pytest.mark.parametrize(
    "text", ["24:00:00", "10:60:00", "10:00:60", "10", "10:00:00.", "10:00:00.1234567", "1:00:00"]
)
def test_what_is_no_time_of_microseconds_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


def test_seconds_and_fraction_may_be_left_out() -> None:
    assert parse_time("10:12") == parse_time("10:12:00") == parse_time("10:12:00.000000000")


def test_a_timestamp_with_an_offset_is_no_timestamp_without_one() -> None:
    with pytest.raises(ValueError):
        parse_timestamp("2007-12-03T10:15:30+00:00")


@pytest.mark.parametrize("offset", ["", "+01:00", "-08:00", "+00", "z"])
def test_utc_timestamps_must_say_that_they_are(offset: str) -> None:
    with pytest.raises(ValueError):
        parse_utc_timestamp("2007-12-03T10:15:30" + offset)


def test_z_is_utc() -> None:
    text = "2007-12-03T10:15:30"
    assert parse_utc_timestamp(text + "Z") == parse_utc_timestamp(text + "+00:00")
