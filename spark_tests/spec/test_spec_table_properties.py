"""Table properties as typed values."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.spec.table_properties import bool_property, float_property, int_property


def test_what_is_not_set_has_its_default() -> None:
    assert int_property({}, "a", 3) == 3
    assert float_property({}, "a", 0.5) == 0.5
    assert bool_property({}, "a", True) is True


def test_values_are_parsed() -> None:
    assert int_property({"a": " 12 "}, "a", 3) == 12
    assert int_property({"a": "-1"}, "a", 3) == -1
    assert float_property({"a": "1e-2"}, "a", 0.5) == 0.01
    assert bool_property({"a": "TRUE"}, "a", False) is True
    assert bool_property({"a": "false"}, "a", True) is False


@pytest.mark.parametrize("text", ["", "x", "1.5", "1_000", "1e3", "٣"])
def test_what_is_no_integer_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"property a is {text!r}, expected an integer"):
        int_property({"a": text}, "a", 3)


def test_values_below_the_least_are_named() -> None:
    assert int_property({"a": "0"}, "a", 3, minimum=0) == 0
    with pytest.raises(InvalidOptionError, match="'-1', expected an integer of at least 0"):
        int_property({"a": "-1"}, "a", 3, minimum=0)


@pytest.mark.parametrize("text", ["", "nan", "inf", "1,5", "1e999"])
def test_what_is_no_finite_number_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected a number"):
        float_property({"a": text}, "a", 3)


@pytest.mark.parametrize("text", ["", "yes", "1"])
def test_what_is_neither_true_nor_false_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected true or false"):
        bool_property({"a": text}, "a", True)
