"""Reads the local times of ORC files, which are stored as instants of their writer's time zone.

Hive and Spark write in the zone of their session, Iceberg in UTC. The offsets from UTC are those of
the JVM that wrote the file: until 1900 a zone has its latest standard time.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

_DAY = 86_400
_YEAR_1900 = -2_208_988_800
_YEAR_2038 = 2_145_916_800
# The Gregorian calendar repeats after 400 years, which are whole weeks.
_CYCLE = 146_097 * _DAY
_UTC_NAMES = frozenset({"", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "UCT", "Universal"})

Seconds = np.ndarray[Any, np.dtype[np.int64]]


def is_utc(zone: str) -> bool:
    """Whether a time zone is UTC; files that name none are taken to be in UTC."""
    return zone in _UTC_NAMES


def epoch_of(zone: str) -> int:
    """The seconds from 1970 in UTC to 2015 in a time zone, from which its local times are counted.

    Raises:
        ZoneInfoNotFoundError: the zone is not known here.
    """
    if is_utc(zone):
        return int(dt.datetime(2015, 1, 1, tzinfo=dt.UTC).timestamp())
    return int(dt.datetime(2015, 1, 1, tzinfo=_zone(zone)).timestamp())


def local_times(instants: Seconds, zone: str) -> Seconds:
    """The wall clock of a time zone at some instants, both in seconds since 1970.

    Raises:
        ZoneInfoNotFoundError: the zone is not known here.
    """
    if is_utc(zone) or not len(instants):
        return instants
    starts, offsets, standard = _offsets_of(zone)
    # No zone has other rules after 2037 than a year that repeats.
    known = np.where(instants < _YEAR_2038, instants, _YEAR_2038 + (instants - _YEAR_2038) % _CYCLE)
    found = offsets[np.maximum(np.searchsorted(starts, known, side="right") - 1, 0)]
    return instants + np.where(instants < _YEAR_1900, standard, found)


@lru_cache(maxsize=16)
def _offsets_of(zone: str) -> tuple[Seconds, Seconds, int]:
    """From when a zone has which offset, from 1900 to a cycle after 2037; its standard offset."""
    info = _zone(zone)

    def offset_at(instant: int) -> int:
        return _seconds(dt.datetime.fromtimestamp(instant, info).utcoffset())

    days = range(_YEAR_1900, _YEAR_2038 + _CYCLE + _DAY, _DAY)
    starts, offsets = [days[0]], [offset_at(days[0])]
    for day, following in pairwise(days):
        if (after := offset_at(following)) != offsets[-1]:
            # Offsets change at most once a day.
            changed = partial(lambda new, instant: offset_at(instant) == new, after)
            starts.append(day + bisect_left(range(day, following), True, key=changed))
            offsets.append(after)
    # As in Java, standard time is that of winter, in Ireland too.
    standard = min(map(offset_at, range(_YEAR_2038 - 366 * _DAY, _YEAR_2038, _DAY)))
    return np.array(starts), np.array(offsets), standard


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError) as error:
        raise ZoneInfoNotFoundError(f"No time zone found with key {name}") from error


def _seconds(offset: dt.timedelta | None) -> int:
    return round(offset.total_seconds()) if offset is not None else 0
