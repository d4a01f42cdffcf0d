"""Formats floating-point numbers: the shortest text, and Java's text in partition paths."""

from __future__ import annotations

import math
import struct


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
