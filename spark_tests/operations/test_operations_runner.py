"""`ThreadRunner`: how many items it makes and tasks it begins, and what stops it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from icebergds.interrupts import check_stopped, interrupts_held, stoppable
from icebergds.operations.runner import TaskAttempt, ThreadRunner

_AT_ONCE = 8
_MADE_AHEAD = 17
_LONG = 10.0


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """What starts the tests may ignore it, as shells do for jobs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Work:
    """Items, and what has happened to them."""

    def __init__(self) -> None:
        self.made = self.begun = self.ended = self.discarded_after = 0
        self._lock = threading.Lock()

    def items(self, count: int) -> Iterator[int]:
        for number in range(count):
            with self._lock:
                self.made += 1
                # The last one of these waits to be handed to a thread.
                assert self.made - self.ended <= _MADE_AHEAD, "too many items are in memory"
            yield number

    def begin(self) -> None:
        with self._lock:
            self.begun += 1

    def end(self) -> None:
        with self._lock:
            self.ended += 1

    def discard(self) -> int:
        self.discarded_after = self.ended
        return 0


def test_results_are_in_the_order_of_the_items_of_which_few_are_made_ahead() -> None:
    work = Work()

    def task(item: int, attempt: TaskAttempt) -> int:
        time.sleep(0.002 if item % 7 else 0.01)
        work.end()
        return item + attempt.partition_id

    assert ThreadRunner().run(task, work.items(200), work.discard) == list(range(0, 400, 2))
    assert ThreadRunner().run(task, []) == []
    assert work.discarded_after == 0


def test_a_task_that_fails_ends_the_others() -> None:
    work = Work()

    def task(item: int, _: TaskAttempt) -> None:
        work.begin()
        try:
            if item == 20:
                raise ValueError("a broken file")
        finally:
            work.end()

    with pytest.raises(ValueError, match="a broken file"):
        ThreadRunner().run(task, work.items(1_000), work.discard)
    assert work.begun <= 20 + 2 * _MADE_AHEAD
    assert work.discarded_after == work.ended == work.begun


@pytest.mark.parametrize("around", [nullcontext, stoppable, interrupts_held])
def test_ctrl_c_ends_tasks_that_run_and_begins_no_others(
    around: type[AbstractContextManager[None]],
) -> None:
    work = Work()
    all_run = threading.Barrier(_AT_ONCE, action=lambda: os.kill(os.getpid(), signal.SIGINT))

    def task(_: int, __: TaskAttempt) -> None:
        work.begin()
        all_run.wait(_LONG)
        deadline = time.monotonic() + _LONG
        try:
            while time.monotonic() < deadline:
                check_stopped()
                time.sleep(0.001)
        finally:
            work.end()

    with pytest.raises(KeyboardInterrupt), around():
        ThreadRunner().run(task, work.items(1_000), work.discard)
    assert work.begun == _AT_ONCE
    assert work.discarded_after == work.ended == work.begun
