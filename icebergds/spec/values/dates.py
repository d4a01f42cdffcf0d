"""Parses and formats dates, times and timestamps as ISO-8601 text (spec: Appendix D).

The calendar is the proleptic Gregorian one without bounds: tables may hold years before 1 and after
9999, which the standard library's dates do not support.
"""

from __future__ import annotations

import re
import time

MICROS_PER_SECOND = 1_000_000
MICROS_PER_HOUR = 3_600 * MICROS_PER_SECOND
MICROS_PER_DAY = 24 * MICROS_PER_HOUR
NANOS_PER_MICRO = 1_000
NANOS_PER_MILLI = 1_000_000

FIRST_GREGORIAN_DAY = -141_427
"""1582-10-15, from which on the Julian calendar is not in use."""


def now_ms() -> int:
    """The current time in milliseconds since the epoch."""
    return time.time_ns() // NANOS_PER_MILLI


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month (1-12) and day (1-31) of a count of days since 1970-01-01."""
    # Counts eras of 400 years that begin on 1 March, so that leap days end a year.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a valid date of the proleptic Gregorian calendar."""
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def format_date(days: int) -> str:
    """Formats days since 1970-01-01 as an ISO date, such as `2017-11-16`."""
    year, month, day = civil_from_days(days)
    return f"{_format_year(year)}-{month:02}-{day:02}"


def format_time(micros: int) -> str:
    """Formats microseconds since midnight as an ISO time, with as few fraction digits as needed."""
    return _format_time(micros, 6)


def format_timestamp(value: int, *, nanos: bool = False) -> str:
    """Formats microseconds (or nanoseconds) since the epoch as ISO date and time, no offset."""
    digits = 9 if nanos else 6
    days, rest = divmod(value, 86_400 * 10**digits)
    return f"{format_date(days)}T{_format_time(rest, digits)}"


def parse_date(text: str) -> int:
    """Parses an ISO date to days since the epoch.

    Raises ValueError for anything else.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO-8601 date such as 2017-11-16")
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    days = days_from_civil(year, month, day)
    if civil_from_days(days) != (year, month, day):
        raise ValueError(f"{text!r} does not exist in the calendar")
    return days


def parse_time(text: str, *, nanos: bool = False) -> int:
    """Parses an ISO time to microseconds (or nanoseconds) since midnight.

    Raises ValueError for anything else, and for digits beyond that precision.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO-8601 time such as 22:31:08.123456")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} is not a time of day")
    digits, units = (9, 1_000_000_000) if nanos else (6, 1_000_000)
    fraction = (match[4] or "").ljust(digits, "0")
    if fraction[digits:].strip("0"):
        raise ValueError(f"{text!r} has more than {digits} fraction digits")
    return (hour * 3_600 + minute * 60 + second) * units + int(fraction[:digits])


def parse_timestamp(text: str, *, nanos: bool = False) -> int:
    """Parses an ISO date and time without offset to microseconds (or nanoseconds) since the epoch.

    Raises ValueError for anything else, and for digits beyond that precision.
    """
    date, separator, time = text.partition("T")
    if not separator:
        raise ValueError(f"{text!r} is not an ISO-8601 timestamp such as 2017-11-16T22:31:08")
    units_per_day = 86_400 * (1_000_000_000 if nanos else 1_000_000)
    return parse_date(date) * units_per_day + parse_time(time, nanos=nanos)


def parse_utc_timestamp(text: str, *, nanos: bool = False) -> int:
    """Like `parse_timestamp`, for text that ends with the offset `+00:00` (or `Z`).

    Raises ValueError without that offset.
    """
    for offset in ("+00:00", "Z"):
        if text.endswith(offset):
            return parse_timestamp(text.removesuffix(offset), nanos=nanos)
    raise ValueError(f"{text!r} does not end with the offset +00:00")


_DATE = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?", re.ASCII)


def _format_year(year: int) -> str:
    if year > 9999:
        return f"+{year}"
    return f"{year:04}" if year >= 0 else f"-{-year:04}"


def _format_time(value: int, digits: int) -> str:
    seconds, fraction = divmod(value, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02}:{minute:02}:{second:02}"
    return f"{text}.{fraction:0{digits}}".rstrip("0") if fraction else text
