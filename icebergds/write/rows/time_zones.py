"""Converts columns between instants and local times of a time zone.

Offsets come from Python's `zoneinfo`, since Arrow ignores daylight saving time after 2037. They are
looked up once for each day that occurs, not for each value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import numpy.typing as npt

from icebergds.expr.literals import parse_time_zone
from icebergds.spec.values.dates import MICROS_PER_DAY

Micros = npt.NDArray[np.int64]

_SECONDS_PER_DAY = 86_400
_MICROS_PER_SECOND = 10**6
_EPOCH = datetime(1970, 1, 1)
_FIRST = int((datetime(1, 1, 2) - _EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 30) - _EPOCH).total_seconds())


def local_times(instants: Micros, time_zone: str) -> Micros:
    """The local times of instants, both in microseconds since 1970.

    Raises:
        ValueError: the time zone is unknown, or an instant is outside the years 1 to 9999.
    """
    zone = parse_time_zone(time_zone)
    return instants + _offsets(instants, lambda second: _offset_of(second, zone))


def instants(local: Micros, time_zone: str) -> Micros:
    """The instants of local times, both in microseconds since 1970.

    As in Spark, a time that occurs twice (clocks set back) is the first of the two, and one that is
    skipped (clocks set forward) is as much later as the clocks are set forward.

    Raises:
        ValueError: the time zone is unknown, or a time is outside the years 1 to 9999.
    """
    zone = parse_time_zone(time_zone)
    return local - _offsets(local, lambda second: _offset_at(second, zone))


def first_instants(days: Micros, time_zone: str) -> Micros:
    """The first instant of each day, in microseconds since 1970; that is not always midnight.

    Raises:
        ValueError: the time zone is unknown, or a day is outside the years 1 to 9999.
    """
    zone = parse_time_zone(time_zone)
    found, at = np.unique(days, return_inverse=True)
    seconds = found * _SECONDS_PER_DAY
    _check(seconds)
    starts = np.array([_start(int(second), zone) for second in seconds], np.int64)
    return starts[at] * _MICROS_PER_SECOND


def _offsets(micros: Micros, offset: Callable[[int], int]) -> Micros:
    """The offset of each time; assumes at most one change of the offset per day."""
    days, at = np.unique(np.floor_divide(micros, MICROS_PER_DAY), return_inverse=True)
    starts = days * _SECONDS_PER_DAY
    _check(starts)
    before = np.empty(len(days), np.int64)
    after = np.empty(len(days), np.int64)
    change = np.empty(len(days), np.int64)
    for index, start in enumerate(starts.tolist()):
        end = start + _SECONDS_PER_DAY
        before[index] = offset(_inside(start))
        after[index] = offset(_inside(end - 1))
        change[index] = start
        if before[index] != after[index]:
            change[index] = _first_with(after[index], range(start, end), offset)
    is_after = micros >= change[at] * _MICROS_PER_SECOND
    return np.where(is_after, after[at], before[at]) * _MICROS_PER_SECOND


def _start(midnight: int, zone: tzinfo) -> int:
    """The first second of a local day."""
    before = _offset_at(_inside(midnight), zone)
    after = _offset_at(_inside(midnight), zone, fold=1)
    if after <= before:
        return midnight - before
    # Midnight is skipped: the day begins when the clocks are set forward.
    seconds = range(midnight - after, midnight - before)
    return _first_with(after, seconds, lambda second: _offset_of(second, zone))


def _first_with(wanted: int, seconds: range, offset: Callable[[int], int]) -> int:
    """The first second with the same offset as the last one."""
    return seconds.start + bisect_left(seconds, True, key=lambda at: offset(at) == wanted)


def _offset_of(instant: int, zone: tzinfo) -> int:
    moment = (_EPOCH + timedelta(seconds=instant)).replace(tzinfo=UTC)
    return _seconds(moment.astimezone(zone).utcoffset())


def _offset_at(local: int, zone: tzinfo, fold: int = 0) -> int:
    moment = (_EPOCH + timedelta(seconds=local)).replace(fold=fold)
    return _seconds(zone.utcoffset(moment))


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None, "time zones have offsets"
    return int(offset.total_seconds())


def _inside(second: int) -> int:
    """The second, or one close to it that is not next to the limits of `datetime`."""
    return min(max(second, _FIRST), _LAST)


def _check(seconds: Micros) -> None:
    if len(seconds) and (
        seconds[0] < _FIRST - 2 * _SECONDS_PER_DAY or seconds[-1] > _LAST + 2 * _SECONDS_PER_DAY
    ):
        raise ValueError("time zones are supported only for the years 1 to 9999")
