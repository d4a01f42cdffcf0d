"""Files that are opened before they are needed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from icebergds.io.read_ahead import ReadAhead


def opening(name: str, opened: list[str]) -> tuple[object, Callable[[], str]]:
    def open_it() -> str:
        opened.append(name)
        return name.upper()

    return name, open_it


def test_files_are_taken_in_order() -> None:
    opened: list[str] = []
    names = [f"f{number:02}" for number in range(50)]
    ahead = ReadAhead([opening(name, opened) for name in names])
    assert [ahead.take(name) for name in names] == [name.upper() for name in names]
    assert sorted(opened) == names


def test_several_are_opened_at_a_time() -> None:
    meeting = threading.Barrier(4, timeout=60)

    def meet() -> int:
        return meeting.wait()

    ahead = ReadAhead([(number, meet) for number in range(4)])
    assert sorted(ahead.take(number) or 0 for number in range(4)) == [0, 1, 2, 3]


def test_only_a_few_are_opened_before_they_are_taken() -> None:
    opened: list[str] = []
    ahead = ReadAhead([opening(str(number), opened) for number in range(100)], most=16)
    assert ahead.take("3") == "3"
    assert len(opened) <= 20


def test_files_that_are_skipped_are_dropped() -> None:
    opened: list[str] = []
    ahead = ReadAhead([opening(str(number), opened) for number in range(100)])
    for number in range(10, 100, 10):
        assert ahead.take(str(number)) == str(number)
        assert ahead.take(str(number - 5)) is None


def test_a_few_files_may_be_taken_out_of_their_order() -> None:
    opened: list[str] = []
    ahead = ReadAhead([opening(str(number), opened) for number in range(40)])
    order = [at for first in range(0, 40, 4) for at in (first + 3, first + 1, first, first + 2)]
    assert [ahead.take(str(number)) for number in order] == [str(number) for number in order]
    assert len(opened) == 40


def test_so_many_are_opened_as_are_asked_for() -> None:
    opened: list[str] = []
    ahead = ReadAhead([opening(str(number), opened) for number in range(100)], 3)
    assert ahead.take("0") == "0"
    assert len(opened) <= 4


def test_what_is_not_expected_is_not_there() -> None:
    ahead = ReadAhead([opening("a", []), opening("b", [])])
    assert ahead.take("c") is None
    assert ahead.take("a") == "A"


def test_an_error_is_raised_where_the_file_is_taken() -> None:
    def fail() -> str:
        raise PermissionError("no")

    ahead: ReadAhead[str] = ReadAhead([opening("a", []), ("b", fail)])
    assert ahead.take("a") == "A"
    with pytest.raises(PermissionError):
        ahead.take("b")
