"""Formats partition values for messages and partition directories."""

from __future__ import annotations

import math
import struct
from binascii import b2a_base64
from typing import Any

from icebergds.spec.types import IcebergType, TypeId, is_scalar
from icebergds.spec.values import dates
from icebergds.spec.values.binary import format_uuid


def human_text(field_type: IcebergType, value: Any) -> str:
    """The text of an in-memory value, the same as in Java Iceberg; None is `null`."""
    if value is None:
        return "null"
    match field_type.type_id if is_scalar(field_type) else None:
        case TypeId.BOOLEAN:
            return "true" if value else "false"
        case TypeId.FLOAT:
            return path_text(value, single=True)
        case TypeId.DOUBLE:
            return path_text(value, single=False)
        case TypeId.DATE:
            return human_day(value)
        case TypeId.TIME:
            return _human_time(value)
        case TypeId.TIMESTAMP:
            return dates.format_timestamp(value)
        case TypeId.TIMESTAMPTZ:
            return dates.format_timestamp(value) + "+00:00"
        case TypeId.TIMESTAMP_NS:
            return dates.format_timestamp(value, nanos=True)
        case TypeId.TIMESTAMPTZ_NS:
            return dates.format_timestamp(value, nanos=True) + "+00:00"
        case TypeId.UUID:
            return format_uuid(value)
        case TypeId.FIXED | TypeId.BINARY:
            return b2a_base64(value, newline=False).decode()
        case _:
            return str(value)


def human_year(years: int) -> str:
    """The year, such as `2017`, of years since 1970."""
    return f"{1970 + years:04}"


def human_month(months: int) -> str:
    """The month, such as `2017-11`, of months since 1970-01."""
    years, month = divmod(months, 12)
    return f"{1970 + years:04}-{month + 1:02}"


def human_day(days: int) -> str:
    """The date, such as `2017-11-16`, of days since the epoch."""
    year, month, day = dates.civil_from_days(days)
    return f"{year:04}-{month:02}-{day:02}"


def human_hour(hours: int) -> str:
    """The hour, such as `2017-11-16-22`, of hours since the epoch."""
    days, hour = divmod(hours, 24)
    return f"{human_day(days)}-{hour:02}"


def _human_time(micros: int) -> str:
    # Seconds only if not zero, fraction digits in groups of three: 10:12, 10:00:00.500.
    text = dates.format_time(micros)
    whole, separator, fraction = text.partition(".")
    if separator:
        return f"{whole}.{fraction.ljust(3 if len(fraction) <= 3 else 6, '0')}"
    return whole.removesuffix(":00")


def shortest_float32(value: float) -> str:
    """The shortest decimal text that parses to the same single-precision value.

    `value` must be exact in single precision, as in-memory values of `float` are.
    """
    if not math.isfinite(value):
        return repr(value)
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        if _single(float(text)) == value:
            return text
    return f"{value:.9g}"


def path_text(value: float, *, single: bool) -> str:
    """Java's text of a number, as used in partition directories.

    Plain from 1e-3 up to 1e7, with an `E` exponent otherwise, always with a fraction digit.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = shortest_float32(value) if single else repr(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, exponent = _digits(text.removeprefix("-"))
    if len(digits) == 1:
        # Java shows at least two digits, the nearest ones: 4.9E-324.
        digits, exponent = _digits(f"{abs(value):.1e}")
    if value == 0 or -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _single(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.inf
    return rounded


def _digits(text: str) -> tuple[str, int]:
    """The significant digits, without outer zeros, and the decimal exponent of the first."""
    mantissa, _, exponent_text = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    exponent = int(exponent_text or 0) + len(whole) - 1 - (len(digits) - len(stripped))
    return (stripped.rstrip("0") or "0", exponent if stripped else 0)
