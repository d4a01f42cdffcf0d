"""Parses points in time, given as numbers or timestamps, to milliseconds since 1970."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.expr.literals import parse_timestamp, round_literal
from icebergds.operations.options.values import integer
from icebergds.spec.types import TIMESTAMPTZ
from icebergds.spec.values.dates import now_ms

# The end of the year 9999, in seconds since 1970.
_LAST_SECOND = 253_402_300_799
_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_YEAR_2000_MS = 946_684_800_000


def milliseconds_or_timestamp(time_zone: str | None) -> Callable[[str], int]:
    """A parser of Java Iceberg's options of moments: a number means milliseconds since 1970.

    This and the function below raise ValueError for any other text.

    Args:
        time_zone: the zone of timestamps without an offset; if None, they are refused.
    """

    def convert(text: str) -> int:
        if _WHOLE_NUMBER.fullmatch(text.strip()):
            return integer(text)
        return _timestamp_ms(text, time_zone, "milliseconds")

    return convert


def seconds_or_timestamp(time_zone: str | None) -> Callable[[str], int]:
    """A parser of Spark's `timestampAsOf`, where a number means seconds since 1970."""

    def convert(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text.strip()):
            return _timestamp_ms(text, time_zone, "seconds")
        if abs(int(text)) > _LAST_SECOND:
            raise ValueError(
                "a number means seconds since 1970, and this one is beyond the year 9999; use "
                "'as-of-timestamp' for milliseconds"
            )
        return int(text) * 1000

    return convert


def moment_or_age(name: str, value: Any) -> int | None:
    """A moment in milliseconds since 1970, given as such, as an age, or as a timestamp; or None.

    Raises:
        InvalidOptionError: it is something else, a negative age, has no time zone, or is a number
            of milliseconds that cannot be meant.
    """
    if value is None:
        return None
    shown = f"{name} = {value!r}"
    if isinstance(value, timedelta):
        if value < timedelta():
            raise InvalidOptionError(f"{shown}: expected an age of 0 or more")
        return now_ms() - value // _MILLISECOND
    if isinstance(value, str):
        if _WHOLE_NUMBER.fullmatch(value.strip()):
            return _meant(shown, int(value))
        try:
            value = parse_timestamp(value.strip())
        except ValueError:
            raise _no_moment(shown) from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidOptionError(
                f"{shown} has no time zone; give one, such as the Z in 2026-01-31T12:00:00Z, or "
                "give an age, such as timedelta(days=7)"
            )
        return (value - _EPOCH) // _MILLISECOND
    if isinstance(value, bool):
        raise _no_moment(shown)
    try:
        return _meant(shown, operator.index(value))
    except TypeError:
        raise _no_moment(shown) from None


def _meant(shown: str, number: int) -> int:
    # Probably seconds since 1970, or a number of days. 0 is accepted: nothing is older.
    if number and number < _YEAR_2000_MS:
        raise InvalidOptionError(
            f"{shown}: a number means milliseconds since 1970, and this one is before the year "
            "2000; give an age, such as timedelta(days=7), or a timestamp, such as "
            "'2026-01-31T12:00:00Z'"
        )
    return number


def _no_moment(shown: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"{shown}: expected an age, such as timedelta(days=7), a datetime with a time zone, a "
        "timestamp, such as '2026-01-31T12:00:00Z', or milliseconds since 1970"
    )


def microseconds(text: str, time_zone: str | None) -> int:
    """The moment of a timestamp, in microseconds since 1970.

    Raises ValueError for any other text.

    Args:
        time_zone: the zone of timestamps without an offset; if None, they are refused.
    """
    return _timestamp_us(text, time_zone, "expected a timestamp such as 2026-01-31T12:00:00Z")


def _timestamp_ms(text: str, time_zone: str | None, unit: str) -> int:
    expected = f"expected a timestamp such as 2026-01-31T12:00:00Z, or {unit} since 1970"
    return _timestamp_us(text, time_zone, expected) // 1000


def _timestamp_us(text: str, time_zone: str | None, expected: str) -> int:
    try:
        moment = parse_timestamp(text.strip())
    except ValueError:
        raise ValueError(expected) from None
    if moment.tzinfo is None and time_zone is None:
        raise ValueError(
            "its time zone is not known here; give an offset (2026-01-31T12:00:00Z) or "
            "option('time-zone', '<zone>')"
        )
    micros: int = round_literal(TIMESTAMPTZ, moment, time_zone).floor
    return micros
