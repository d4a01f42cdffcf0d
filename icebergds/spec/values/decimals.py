"""Decimals and their unscaled integers, exact up to 38 digits and beyond."""

from __future__ import annotations

from decimal import Context, Decimal

# The default context rounds at 28 digits; nothing here may round.
_EXACT = Context(prec=200)


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that, divided by 10 to the `scale`, is the value.

    Raises ValueError where the value is not finite or has more fraction digits than `scale`.
    """
    if not value.is_finite():
        raise ValueError(f"{value} is not a finite decimal")
    shifted = value.scaleb(scale, context=_EXACT)
    number = int(shifted)
    if number != shifted:
        raise ValueError(f"{value} has more than {scale} fraction digits")
    return number


def from_unscaled(number: int, scale: int) -> Decimal:
    """The decimal with exactly `scale` fraction digits of an unscaled integer."""
    return Decimal(number).scaleb(-scale, context=_EXACT)


def to_twos_complement(number: int) -> bytes:
    """The fewest big-endian two's-complement bytes that hold an integer (at least one)."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
