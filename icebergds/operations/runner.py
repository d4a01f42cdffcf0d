"""Runs the tasks of a maintenance action, in this process or with the caller's runner."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from icebergds.interrupts import (
    check_stopped,
    interrupts_held,
    stopping_threads,
    until_stopped,
)
from icebergds.reporting import advance_by, writing_files
from icebergds.scan.tasks import ScanTaskGroup

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """An attempt to run a task. Names of new files have both numbers, so that none is used twice.

    Attributes:
        partition_id: the number of the task.
        attempt_id: different in each attempt of the task.
    """

    partition_id: int
    attempt_id: int


def weight_of_files(group: ScanTaskGroup) -> tuple[int, int]:
    """What a task that reads files advances a stage by: their number and size."""
    return len(group.tasks), sum(task.length for task in group.tasks)


class Runner(Protocol):
    """Runs tasks in parallel."""

    def run(
        self,
        task: Callable[[_Item, TaskAttempt], _Result],
        items: Iterable[_Item],
        discard: Callable[[], int] | None = None,
    ) -> list[_Result]:
        """Runs a task once for each item, or again if an attempt is lost; each advances the stage.

        Args:
            task: can be pickled, as can items and results. It holds what all items share.
            items: made as they are needed, so that many of them need little memory.
            discard: deletes files of the tasks and returns how many it found; called if a task has
                failed, once the others have ended.

        Returns:
            The results, in the order of the items.

        Raises:
            Exception: what a task raised.
        """
        ...


_THREADS = 8
# Items that wait for a thread, so that none idles while a result is taken.
_WAITING = 8


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """Runs tasks in this process, several at a time; they spend their time in Arrow and I/O.

    Of the items, only a few are made before the tasks of those before them have ended. If one
    fails, or the action is interrupted, no other is begun.
    """

    def run(
        self,
        task: Callable[[_Item, TaskAttempt], _Result],
        items: Iterable[_Item],
        discard: Callable[[], int] | None = None,
    ) -> list[_Result]:
        results, running = list[_Result](), deque[tuple[_Item, Future[_Result]]]()

        def take() -> None:
            item, future = running.popleft()
            results.append(future.result())
            advance_by(item)

        with _discarding(discard), ThreadPoolExecutor(_THREADS) as pool, stopping_threads():
            try:
                for number, item in enumerate(until_stopped(items)):
                    if len(running) == _THREADS + _WAITING:
                        take()
                    # With this thread's context, by which tasks notice that they are to stop. A
                    # thread whose start is interrupted would not be waited for.
                    job = partial(_unless_stopped, task, item, TaskAttempt(number, 0))
                    with interrupts_held():
                        running.append((item, pool.submit(copy_context().run, job)))
                while running:
                    check_stopped()
                    take()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return results


def _unless_stopped(
    task: Callable[[_Item, TaskAttempt], _Result], item: _Item, attempt: TaskAttempt
) -> _Result:
    check_stopped()
    return task(item, attempt)


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs tasks one after the other in this process."""

    def run(
        self,
        task: Callable[[_Item, TaskAttempt], _Result],
        items: Iterable[_Item],
        discard: Callable[[], int] | None = None,
    ) -> list[_Result]:
        results = []
        with _discarding(discard):
            for number, item in enumerate(items):
                check_stopped()
                results.append(task(item, TaskAttempt(number, 0)))
                advance_by(item)
        return results


@contextmanager
def _discarding(discard: Callable[[], int] | None) -> Iterator[None]:
    if discard is not None:
        writing_files()
    try:
        yield
    except BaseException:
        if discard is not None:
            discard()
        raise
