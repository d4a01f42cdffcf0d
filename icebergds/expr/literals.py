"""Converts literals of filters to values of a column's type, without loss.

A literal that is not a value of the type, such as 1.5 or 10**12 for an `int` or a nanosecond for a
`timestamp`, is rounded down and up to the values next to it.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from icebergds.spec.types import DecimalType, FixedType, ScalarType, TypeId
from icebergds.spec.values.dates import NANOS_PER_MICRO, parse_date, parse_time
from icebergds.spec.values.decimals import from_unscaled


@dataclass(frozen=True, slots=True)
class RoundedLiteral:
    """A literal rounded down (`floor`) and up (`ceiling`) to values of a type.

    Both are equal if the literal is a value of the type; None if the type has no such value; both
    NaN for NaN.
    """

    floor: Any
    ceiling: Any

    @property
    def is_exact(self) -> bool:
        return self.floor is not None and bool(self.floor == self.ceiling)

    @property
    def is_nan(self) -> bool:
        return isinstance(self.floor, float) and math.isnan(self.floor)


def round_literal(
    field_type: ScalarType, literal: Any, time_zone: str | None = None
) -> RoundedLiteral:
    """Rounds a literal to values of a type that has an order.

    Numbers keep their exact value, with two exceptions that Spark makes as well: for a
    floating-point column, a Decimal becomes the nearest double, and for a decimal column, a float
    becomes the shortest decimal that reads back as it. Text is parsed as a value of the column's
    type: a number, an ISO-8601 date, time or timestamp, a uuid, `true` or `false`. For timestamps,
    a date is its midnight; a datetime lies between two dates. For types whose values are instants,
    `time_zone` is the zone of dates, datetimes and text without one.

    Raises ValueError, with the reason, for a literal that cannot be compared with the type.
    """
    match field_type.type_id:
        case TypeId.BOOLEAN:
            return _exactly(_boolean(literal))
        case TypeId.INT:
            return _round_integer(literal, 32)
        case TypeId.LONG:
            return _round_integer(literal, 64)
        case TypeId.FLOAT:
            return _round_float(literal, single=True)
        case TypeId.DOUBLE:
            return _round_float(literal, single=False)
        case TypeId.DECIMAL:
            assert isinstance(field_type, DecimalType)
            return _round_decimal(literal, field_type)
        case TypeId.DATE:
            return _round_date(literal)
        case TypeId.TIME:
            nanos = Fraction(_time_nanos(literal), NANOS_PER_MICRO)
            return _round_fraction(nanos, 0, _NANOS_PER_DAY // NANOS_PER_MICRO - 1)
        case TypeId.TIMESTAMP:
            return _round_fraction(Fraction(_local_nanos(literal), NANOS_PER_MICRO), *_range(64))
        case TypeId.TIMESTAMP_NS:
            return _round_fraction(Fraction(_local_nanos(literal)), *_range(64))
        case TypeId.TIMESTAMPTZ:
            instant = _instant_nanos(literal, time_zone)
            return _round_fraction(Fraction(instant, NANOS_PER_MICRO), *_range(64))
        case TypeId.TIMESTAMPTZ_NS:
            return _round_fraction(Fraction(_instant_nanos(literal, time_zone)), *_range(64))
        case TypeId.STRING:
            return _exactly(_instance(literal, str, "a string"))
        case TypeId.UUID:
            return _exactly(_uuid_bytes(literal))
        case TypeId.FIXED:
            assert isinstance(field_type, FixedType)
            return _exactly(_bytes_of_length(literal, field_type.length))
        case TypeId.BINARY:
            return _exactly(_instance(literal, bytes, "bytes"))
        case _:
            raise ValueError(f"values of type {field_type} have no order")


def parse_timestamp(text: str) -> datetime:
    """Parses ISO-8601 text: to a datetime in UTC if the text has a time zone, naive otherwise.

    Raises ValueError for anything else, for years before 1 and after 9999, and for fractions of
    microseconds.
    """
    nanos, zone = _moment(text)
    micros, rest = divmod(nanos if zone is None else nanos - _offset_nanos(nanos, zone), 1000)
    if rest:
        raise ValueError(f"{text!r} has more than 6 fraction digits")
    try:
        return (_EPOCH if zone is None else _UTC_EPOCH) + timedelta(microseconds=micros)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999") from None


def is_near_skipped(moment: datetime, time_zone: str) -> bool:
    """Whether a time zone skips a local time, or others within the day before it.

    Clocks are then set forward, and the skipped times mean later instants. Also true for a moment
    with its own zone, and near the limits of the years 1 and 9999, because the answer is unknown.

    Raises ValueError for an unknown time zone.
    """
    if moment.tzinfo is not None:
        return True
    zone = parse_time_zone(time_zone)
    try:
        day_before = zone.utcoffset(moment - timedelta(days=1)) or timedelta()
        offset = zone.utcoffset(moment) or timedelta()
        instant = moment.replace(tzinfo=zone).astimezone(UTC)
        return instant.astimezone(zone).replace(tzinfo=None) != moment or day_before < offset
    except OverflowError:
        return True


def begins_once(day: date, time_zone: str) -> bool:
    """Whether all times since a day's midnight are after all times of the day before.

    They are not if clocks are set across midnight: back to the day before, or forward over it.

    Raises ValueError for an unknown time zone.
    """
    zone, midnight = parse_time_zone(time_zone), datetime(day.year, day.month, day.day)
    try:
        beside = (midnight, midnight - timedelta(microseconds=1))
    except OverflowError:
        return False
    return any(zone.utcoffset(each) == zone.utcoffset(each.replace(fold=1)) for each in beside)


def parse_time_zone(name: str) -> tzinfo:
    """The time zone with a name, a region such as `Europe/Berlin` or an offset such as `+02:00`.

    Raises ValueError for an unknown one.
    """
    if name.upper() in ("Z", "UTC", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours > 18 or minutes > 59:
            raise ValueError(f"time zone {name!r} is more than 18 hours from UTC")
        distance = timedelta(hours=hours, minutes=minutes)
        return timezone(-distance if offset[1] == "-" else distance)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"time zone {name!r} is unknown") from error


def nearest_single(number: float) -> float | None:
    """The single-precision value nearest to a number; None if a finite number overflows."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return None
    return rounded


def to_single(number: float) -> float:
    """The single-precision value nearest to a number; the greatest or least if it overflows."""
    return _nearest(number, single=True)


_NANOS_PER_DAY = 86_400 * 10**9
_EPOCH = datetime(1970, 1, 1)
_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_SINGLE = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_MAX_DOUBLE = math.nextafter(math.inf, 0.0)
_HUGE = Fraction(10**80)

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
NAMED_FLOAT = re.compile(r"nan|[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_MOMENT = re.compile(
    r"(?P<date>[+-]?\d{4,9}-\d\d-\d\d)"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(?P<zone>Z|[+-]\d\d:\d\d|[A-Z][\w/+-]*)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII | re.IGNORECASE)


def _exactly(value: Any) -> RoundedLiteral:
    return RoundedLiteral(value, value)


def _range(bits: int) -> tuple[int, int]:
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _round_fraction(number: Fraction, low: int, high: int) -> RoundedLiteral:
    floor, ceiling = math.floor(number), math.ceil(number)
    return RoundedLiteral(
        min(floor, high) if floor >= low else None, max(ceiling, low) if ceiling <= high else None
    )


def _instance(literal: Any, kind: type, noun: str) -> Any:
    if not isinstance(literal, kind):
        raise _wrong_type(literal, noun)
    return literal


def _wrong_type(literal: Any, noun: str) -> ValueError:
    return ValueError(f"{literal!r} ({type(literal).__name__}) is not {noun}")


def _boolean(literal: Any) -> bool:
    if isinstance(literal, str) and literal.lower() in ("true", "false"):
        return literal.lower() == "true"
    return bool(_instance(literal, bool, "a boolean"))


def _number(literal: Any, text: re.Pattern[str], noun: str) -> int | float | Decimal:
    if isinstance(literal, str) and text.fullmatch(literal):
        return Decimal(literal)
    if isinstance(literal, bool) or not isinstance(literal, int | float | Decimal):
        raise _wrong_type(literal, noun)
    return literal


def _round_integer(literal: Any, bits: int) -> RoundedLiteral:
    return _round_fraction(_fraction(_number(literal, _INTEGER, "an integer")), *_range(bits))


def _round_decimal(literal: Any, field_type: DecimalType) -> RoundedLiteral:
    number = _number(literal, NUMBER, "a decimal")
    if isinstance(number, float) and math.isfinite(number):
        number = Decimal(repr(number))
    limit = 10**field_type.precision - 1
    units = _round_fraction(_fraction(number) * 10**field_type.scale, -limit, limit)
    return RoundedLiteral(
        *(
            None if unit is None else from_unscaled(unit, field_type.scale)
            for unit in (units.floor, units.ceiling)
        )
    )


def _round_date(literal: Any) -> RoundedLiteral:
    # Text must be a plain date: Spark would truncate a time of day, or compare as timestamps.
    days = (
        Fraction(parse_date(literal))
        if isinstance(literal, str)
        else Fraction(_local_nanos(literal), _NANOS_PER_DAY)
    )
    return _round_fraction(days, *_range(32))


def _fraction(number: int | float | Decimal) -> Fraction:
    """The exact value; a stand-in for numbers larger, or closer to zero, than any column holds."""
    if isinstance(number, float) and not math.isfinite(number):
        return -_HUGE if number < 0 else _HUGE  # NaN is greater than every other value
    if isinstance(number, Decimal):
        if not number.is_finite():
            raise ValueError(f"{number} is not a finite decimal")
        # The fraction of a huge exponent could take more memory than there is.
        if number and abs(number.adjusted()) > 80:
            magnitude = _HUGE if number.adjusted() > 0 else 1 / _HUGE
            return magnitude if number > 0 else -magnitude
    return Fraction(number)


def _round_float(literal: Any, *, single: bool) -> RoundedLiteral:
    if isinstance(literal, str) and NAMED_FLOAT.fullmatch(literal):
        literal = float(literal)
    number = _number(literal, NUMBER, "a number")
    if isinstance(number, Decimal):
        number = float(number)
    if isinstance(number, float) and math.isnan(number):
        return _exactly(math.nan)
    nearest = _nearest(number, single)
    if nearest == number:
        return _exactly(nearest)
    if nearest < number:
        return RoundedLiteral(nearest, _next_above(nearest, single))
    return RoundedLiteral(-_next_above(-nearest, single), nearest)


def _nearest(number: int | float, single: bool) -> float:
    """A floating-point value next to a number that is not NaN."""
    try:
        value = nearest_single(float(number)) if single else float(number)
    except OverflowError:
        value = None
    if value is not None:
        return value
    greatest = _MAX_SINGLE if single else _MAX_DOUBLE
    return greatest if number > 0 else -greatest


def _next_above(value: float, single: bool) -> float:
    if not single:
        return math.nextafter(value, math.inf)
    # Floats of the same sign are ordered like their bits.
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    if value == 0:
        bits = 1
    else:
        bits += 1 if value > 0 else -1
    above: float = struct.unpack("<f", struct.pack("<i", bits))[0]
    return above


def _uuid_bytes(literal: Any) -> bytes:
    if isinstance(literal, str) and _UUID.fullmatch(literal):
        return UUID(literal).bytes
    if isinstance(literal, UUID):
        return literal.bytes
    return _bytes_of_length(literal, 16, "a uuid")


def _bytes_of_length(literal: Any, length: int, noun: str = "bytes") -> bytes:
    if not isinstance(literal, bytes):
        raise _wrong_type(literal, noun)
    if len(literal) != length:
        raise ValueError(f"the literal has {len(literal)} bytes, values of the column {length}")
    return literal


def _time_nanos(literal: Any) -> int:
    if isinstance(literal, str):
        return parse_time(literal, nanos=True)
    moment: time = _instance(literal, time, "a time")
    if moment.tzinfo is not None:
        raise ValueError(f"{literal!r} has a time zone, which times of day do not have")
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return seconds * 10**9 + moment.microsecond * 1000


def _local_nanos(literal: Any) -> int:
    """Nanoseconds since the epoch in local time, of a literal without a time zone."""
    nanos, zone = _moment(literal)
    if zone is not None:
        raise ValueError(
            f"{literal!r} has a time zone but the column has none; write the literal without one"
        )
    return nanos


def _instant_nanos(literal: Any, time_zone: str | None) -> int:
    """Nanoseconds since the epoch in UTC."""
    nanos, zone = _moment(literal)
    if zone is None:
        if time_zone is None:
            raise ValueError(
                f"{literal!r} has no time zone but the column holds instants; write the literal"
                " with an offset, or set its time zone with option 'time-zone'"
            )
        zone = parse_time_zone(time_zone)
    return nanos - _offset_nanos(nanos, zone)


def _moment(literal: Any) -> tuple[int, tzinfo | None]:
    """Nanoseconds since the epoch in local time, and the time zone if the literal has one."""
    match literal:
        case str():
            return _parse_moment(literal)
        case datetime(tzinfo=None):
            return (literal - _EPOCH) // timedelta(microseconds=1) * NANOS_PER_MICRO, None
        case datetime():
            return (literal - _UTC_EPOCH) // timedelta(microseconds=1) * NANOS_PER_MICRO, UTC
        case date():
            return (literal - _EPOCH.date()).days * _NANOS_PER_DAY, None
        case _:
            raise _wrong_type(literal, "a date or a timestamp")


def _parse_moment(text: str) -> tuple[int, tzinfo | None]:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is neither an ISO-8601 date such as 2017-11-16 nor a timestamp such as"
            " 2017-11-16 22:31:08"
        )
    nanos = parse_date(match["date"]) * _NANOS_PER_DAY
    if match["time"]:
        nanos += parse_time(match["time"], nanos=True)
    zone = match["zone"]
    if zone and zone != zone.upper() and zone.upper().startswith(("UTC", "GMT")):
        raise ValueError(f"{text!r} has an unknown time zone; write {zone.upper()}")
    return nanos, parse_time_zone(zone) if zone else None


def _offset_nanos(local_nanos: int, zone: tzinfo) -> int:
    """Offset of a time zone from UTC at a local time.

    As in Spark, a local time that occurs twice (clocks set back) is the first of the two, and one
    that is skipped (clocks set forward) has the offset before the change.
    """
    try:
        local = _EPOCH + timedelta(microseconds=local_nanos // NANOS_PER_MICRO)
    except OverflowError:
        # `datetime` has only the years 1 to 9999.
        raise ValueError("time zones are supported only for the years 1 to 9999") from None
    offset = zone.utcoffset(local)
    assert offset is not None
    return offset // timedelta(microseconds=1) * NANOS_PER_MICRO
