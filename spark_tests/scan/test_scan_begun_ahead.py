"""Parts that begin before their turn."""

from __future__ import annotations

import multiprocessing
import multiprocessing.queues
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from icebergds.scan.read.begun_ahead import Part, begun_ahead

Log = list[str]


def part(
    name: str, log: Log, count: int = 2, *, may_begin: bool = True, size: int = 1
) -> Part[str]:
    def read() -> Iterator[str]:
        for number in range(count):
            log.append(f"{name}{number}")
            yield f"{name}{number}"

    return Part(read, may_begin, size)


def until(holds: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if holds():
            return
        waiting.wait(0.01)
    raise AssertionError("it never holds")


def test_items_come_in_the_order_of_the_parts() -> None:
    parts = [
        part(name, [], count)
        for name, count in zip("abcdefgh", (2, 0, 3, 1, 0, 0, 5, 1), strict=True)
    ]
    expected = [
        f"{name}{n}"
        for name, count in (("a", 2), ("c", 3), ("d", 1), ("g", 5), ("h", 1))
        for n in range(count)
    ]
    assert list(begun_ahead(parts)) == expected


def test_there_may_be_no_parts() -> None:
    assert list(begun_ahead([])) == []


def test_the_first_items_of_the_next_four_parts_are_made_ahead() -> None:
    log: Log = []
    items = begun_ahead(part(name, log) for name in "abcdefgh")
    assert next(items) == "a0"
    until(lambda: sorted(log) == ["a0", "b0", "c0", "d0", "e0"])
    assert list(items) == [f"{name}{n}" for name in "abcdefgh" for n in range(2)][1:]


def test_nothing_is_made_before_the_first_item() -> None:
    log: Log = []

    def slow() -> Iterator[str]:
        threading.Event().wait(0.2)
        log.append("a0")
        yield "a0"

    next(begun_ahead([Part(slow, True, 1), part("b", log, 1)]))
    assert log[0] == "a0"


def test_a_part_that_may_not_begin_holds_up_those_after_it() -> None:
    log: Log = []
    items = begun_ahead([part("a", log), part("b", log, may_begin=False), part("c", log)])
    assert [next(items), next(items)] == ["a0", "a1"]
    assert log == ["a0", "a1"]
    assert list(items) == ["b0", "b1", "c0", "c1"]


def test_large_parts_are_begun_one_at_a_time() -> None:
    log: Log = []
    items = begun_ahead([part(name, log, size=60 << 20) for name in "abc"])
    assert next(items) == "a0"
    until(lambda: "b0" in log)
    assert [next(items), next(items)] == ["a1", "b0"]
    until(lambda: "c0" in log)
    assert log.index("a1") < log.index("c0")
    assert list(items) == ["b1", "c0", "c1"]


def test_an_error_is_raised_at_its_turn() -> None:
    def fail() -> Iterator[str]:
        raise ValueError("damaged")
        yield ""

    items = begun_ahead([part("a", []), Part(fail, True, 1), part("c", [])])
    assert [next(items), next(items)] == ["a0", "a1"]
    with pytest.raises(ValueError, match="damaged"):
        next(items)


def test_a_part_is_begun_until_its_first_step_alone() -> None:
    log: Log = []

    def without_items() -> Iterator[str | None]:
        for number in range(3):
            log.append(f"b{number}")
            yield None

    items = begun_ahead([part("a", log), Part(without_items, True, 1), part("c", log)])
    assert next(items) == "a0"
    until(lambda: sorted(log) == ["a0", "b0", "c0"])
    assert list(items) == ["a1", "c0", "c1"]
    assert log == ["a0", *sorted(["b0", "c0"], key=log.index), "a1", "b1", "b2", "c1"]


def test_one_thread_asks_for_the_parts_in_their_order() -> None:
    asked: list[tuple[str, str]] = []

    def asking(name: str) -> Part[str]:
        def read() -> Iterator[str]:
            asked.append((name, threading.current_thread().name))
            return iter([name, name])

        return Part(read, True, 1)

    assert len(list(begun_ahead(map(asking, "abcdefgh")))) == 16
    assert asked == [(name, threading.current_thread().name) for name in "abcdefgh"]


def test_whoever_stops_early_does_not_wait() -> None:
    stopped = threading.Event()

    def wait() -> Iterator[str]:
        assert stopped.wait(60)
        yield "b0"

    items = begun_ahead([part("a", []), Part(wait, True, 1), part("c", [])])
    assert next(items) == "a0"
    items.close()  # type: ignore[attr-defined]
    stopped.set()
    until(lambda: not any("icebergds-ahead" in each.name for each in threading.enumerate()))


def all_of(items: Iterator[str], found: multiprocessing.queues.Queue[list[str]]) -> None:
    found.put(list(items))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_fork_reads_on_without_the_threads() -> None:
    processes = multiprocessing.get_context("fork")
    found: multiprocessing.queues.Queue[list[str]] = processes.Queue()
    log: Log = []
    items = begun_ahead(part(name, log) for name in "abcdefgh")
    assert next(items) == "a0"
    until(lambda: len(log) == 5)
    fork = processes.Process(target=all_of, args=(items, found))
    fork.start()
    assert found.get(timeout=60) == [f"{name}{n}" for name in "abcdefgh" for n in range(2)][1:]
    fork.join(60)
