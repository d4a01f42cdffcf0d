"""Decimals of up to 38 digits stay exact."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from icebergds.spec.values.decimals import from_unscaled, to_twos_complement, unscaled

UNSCALED = st.integers(-(10**38) + 1, 10**38 - 1)
SCALES = st.integers(-38, 38)


@given(UNSCALED, SCALES)
def test_an_unscaled_integer_survives_its_decimal(number: int, scale: int) -> None:
    value = from_unscaled(number, scale)
    assert unscaled(value, scale) == number
    assert value.as_tuple().exponent == -scale


@given(UNSCALED, st.integers(0, 38))
def test_trailing_zeros_do_not_change_the_unscaled_integer(number: int, scale: int) -> None:
    assert unscaled(from_unscaled(number, scale), scale + 2) == number * 100


@given(UNSCALED)
def test_twos_complement_is_exact_and_minimal(number: int) -> None:
    data = to_twos_complement(number)
    assert int.from_bytes(data, "big", signed=True) == number
    assert len(data) == 1 or int.from_bytes(data[1:], "big", signed=True) != number


@pytest.mark.parametrize("value", [Decimal("1.234"), Decimal("NaN"), Decimal("Infinity")])
def test_what_two_fraction_digits_cannot_hold_is_refused(value: Decimal) -> None:
    with pytest.raises(ValueError):
        unscaled(value, 2)
