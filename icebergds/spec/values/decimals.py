"""Converts decimals to and from unscaled integers, exactly, even beyond 38 digits."""

from __future__ import annotations

from decimal import Context, Decimal

# The default context rounds to 28 digits, but nothing here may be rounded.
_EXACT = Context(prec=200)


def unscaled(value: Decimal, scale: int) -> int:
    """The unscaled integer: the value times 10 to the power of `scale`.

    Raises ValueError if the value is not finite or has more fraction digits than `scale`.
    """
    if not value.is_finite():
        raise ValueError(f"{value} is not a finite decimal")
    shifted = value.scaleb(scale, context=_EXACT)
    number = int(shifted)
    if number != shifted:
        raise ValueError(f"{value} has more than {scale} fraction digits")
    return number


def from_unscaled(number: int, scale: int) -> Decimal:
    """The decimal of an unscaled integer, with exactly `scale` fraction digits."""
    return Decimal(number).scaleb(-scale, context=_EXACT)


def to_twos_complement(number: int) -> bytes:
    """The fewest big-endian two's-complement bytes that hold an integer (at least one)."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
