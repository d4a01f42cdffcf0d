"""Numbers as partition directories show them."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from icebergds.spec.values.human_text import path_text, shortest_float32


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_single_precision_reads_its_text_back_and_none_shorter(value: float) -> None:
    text = shortest_float32(value)
    assert _single(text) == value
    digits = len(Decimal(text).as_tuple().digits)
    assert digits == 1 or _single(f"{value:.{digits - 1}g}") != value


@given(st.floats(allow_nan=False))
def test_a_path_text_is_the_number(value: float) -> None:
    assert float(path_text(value, single=False)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.1, "1.1"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123_456.75, "-123456.75"),
        (1e300, "1.0E300"),
        (5e-324, "4.9E-324"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert path_text(value, single=False) == text


def test_single_precision_shows_its_own_digits() -> None:
    rounded = struct.unpack("<f", struct.pack("<f", 1.1))[0]
    assert path_text(rounded, single=True) == "1.1"
    assert path_text(rounded, single=False) == "1.100000023841858"


def _single(text: str) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", float(text)))[0]
    except OverflowError:
        return float("inf")
