"""Counts what an action has done and has left, by stages; whoever shows it looks or listens.

An action opens a report and names its stages; whatever does the work, in any thread that has the
action's context, says what it has done. Without a report all of this does nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar

from icebergds.display import counted, printable, size_text

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_SECONDS_TO_POLL = 0.5
_FIRST = "plan"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an action has come.

    Attributes:
        action: such as `rewrite_data_files`.
        table: its name.
        stage: what the action does now, such as `rewrite groups of files`.
        done: how many of these are done.
        total: how many there are; None if that is not known.
        bytes_done: the size of the files that were read for that.
        bytes_total: the size of all files to read; None if that is not known.
        seconds: since the action began.
    """

    action: str
    table: str
    stage: str
    done: int
    total: int | None
    bytes_done: int
    bytes_total: int | None
    seconds: float

    @property
    def left(self) -> int | None:
        """How many are left; None if that is not known."""
        return None if self.total is None else max(self.total - self.done, 0)

    @property
    def bytes_left(self) -> int | None:
        """The size of the files that are left; None if that is not known."""
        return None if self.bytes_total is None else max(self.bytes_total - self.bytes_done, 0)

    @property
    def amount(self) -> str:
        """What is done of how much: `12 of 40, 1.2 GB of 4.0 GB`."""
        done = f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"
        if self.bytes_total is None:
            return done
        return f"{done}, {size_text(self.bytes_done)} of {size_text(self.bytes_total)}"

    def __str__(self) -> str:
        left = "" if self.total is None else f", {self.left:,} left"
        return (
            f"{self.action} {self.table}: {self.stage}, {self.amount}{left}, {self.seconds:.0f} s"
        )


class Report:
    """The progress of one action.

    Attributes:
        commits: how many the action has made.
        kept: how much of the work these have, if the action says so: `12 of 40 groups`; or what
            stands without a commit.
        has_files: whether tasks of the action write files that it commits later.
    """

    def __init__(
        self, action: str, table: str, listener: Callable[[Progress], object] | None = None
    ) -> None:
        self._action, self._table = action, printable(table)
        self._listener = listener
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._stage = _Stage(self, _FIRST)
        self.commits = 0
        self.kept = ""
        self.has_files = False

    def progress(self) -> Progress:
        """What the stage that has gone on last has done."""
        stage = self._stage
        return Progress(
            self._action,
            self._table,
            stage.name,
            stage.done,
            stage.total,
            stage.bytes_done,
            stage.bytes_total,
            time.monotonic() - self._started,
        )

    def interrupted(self) -> str:
        """Says what an action that was interrupted has left, once it has cleaned up."""
        now = self.progress()
        kept, commits = self.kept or "nothing was committed", self.commits
        if commits:
            kept = f"{counted(commits, 'commit')} {'stands' if commits == 1 else 'stand'}"
            kept += f" with {self.kept}" if self.kept else ""
        amount = f" ({now.amount})" if now.done or now.total is not None else ""
        return (
            f"{self._action} of {self._table} was interrupted at the stage '{now.stage}'"
            f"{amount}: {kept}"
            f"{', new files that are in no commit are deleted' if self.has_files else ''}"
        )

    def _update(self, stage: _Stage, done: int = 0, nbytes: int = 0) -> None:
        with self._lock:
            stage.done += done
            stage.bytes_done += nbytes
            self._stage = stage
            if self._listener is None:
                return
            try:
                self._listener(self.progress())
            except Exception:
                self._listener = None
                _LOG.warning(
                    "%s of %s: its progress is not reported any more, since `progress` raised",
                    self._action,
                    self._table,
                    exc_info=True,
                )


class _Stage:
    """What a part of an action has done."""

    __slots__ = ("bytes_done", "bytes_total", "done", "name", "report", "total", "weigh")

    def __init__(
        self,
        report: Report,
        name: str,
        total: int | None = None,
        bytes_total: int | None = None,
        weigh: Callable[[Any], tuple[int, int]] | None = None,
    ) -> None:
        self.report = report
        self.name = name
        self.total, self.bytes_total = total, bytes_total
        self.done = self.bytes_done = 0
        self.weigh = weigh


_current: ContextVar[_Stage | None] = ContextVar("stage", default=None)


@contextmanager
def reporting(report: Report) -> Iterator[Report]:
    """Has the block report, also from other threads with its context.

    In a block that reports already, that report goes on.
    """
    if (outer := _current.get()) is not None:
        yield outer.report
        return
    token = _current.set(report._stage)
    report._update(report._stage)
    try:
        yield report
    finally:
        _current.reset(token)


@contextmanager
def stage(
    name: str,
    total: int | None = None,
    bytes_total: int | None = None,
    weigh: Callable[[Any], tuple[int, int]] | None = None,
) -> Iterator[None]:
    """Names what the block does, after the stage that it is a part of.

    Args:
        total: how often it will `advance`; None if that is not known.
        weigh: what a task of the block does, given its item: how many, and their size in bytes;
            one of no known size by default.
    """
    if (outer := _current.get()) is None:
        yield
        return
    name = name if outer.name == _FIRST else f"{outer.name}: {name}"
    inner = _Stage(outer.report, name, total, bytes_total, weigh)
    token = _current.set(inner)
    inner.report._update(inner)
    try:
        yield
    finally:
        _current.reset(token)


def advance(done: int = 1, nbytes: int = 0) -> None:
    """Says that some more of the current stage is done."""
    if (current := _current.get()) is not None:
        current.report._update(current, done, nbytes)


def advance_by(item: object) -> None:
    """Says that the task of an item is done."""
    advance(*weight_of(item))


def weight_of(item: object) -> tuple[int, int]:
    """How many the task of an item does in the current stage, and their size in bytes."""
    current = _current.get()
    return (1, 0) if current is None or current.weigh is None else current.weigh(item)


def expect(total: int) -> None:
    """Says that the current stage has so many more to do."""
    if (current := _current.get()) is not None:
        current.total = (current.total or 0) + total


def advancing(results: Iterator[_Item], counts: Iterable[int] = repeat(1)) -> Iterator[_Item]:
    """Results with which the stage advances; if it ends early, threads do not begin the others.

    Args:
        results: of `map`, also of an executor.
        counts: by how much each result advances.
    """
    try:
        for result, count in zip(results, counts):  # noqa: B905
            advance(count)
            yield result
    finally:
        if (close := getattr(results, "close", None)) is not None:
            close()


@contextmanager
def polled(done: Callable[[], float], weight: tuple[int, int]) -> Iterator[None]:
    """Advances by a weight in the course of the block, as far as a function says.

    Args:
        done: the part that is done, from 0 to 1; called now and then in a thread. Its errors end
            the questions.
    """
    if _current.get() is None or not any(weight):
        yield
        return
    ended, reported = threading.Event(), (0, 0)

    def advance_to(part: float) -> None:
        nonlocal reported
        count, nbytes = (int(part * whole) for whole in weight)
        if (count, nbytes) > reported:
            advance(count - reported[0], nbytes - reported[1])
            reported = count, nbytes

    def poll() -> None:
        while not ended.wait(_SECONDS_TO_POLL):
            try:
                part = done()
            except Exception:
                return
            advance_to(part)

    thread = threading.Thread(target=copy_context().run, args=(poll,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    advance_to(1.0)


def committed() -> None:
    """Says that the current action has made a commit."""
    if (current := _current.get()) is not None:
        current.report.commits += 1


def kept(amount: str) -> None:
    """Says how much of its work the commits of the current action have, or what else stands."""
    if (current := _current.get()) is not None:
        current.report.kept = amount


def writing_files() -> None:
    """Says that tasks of the current action write files that it commits later."""
    if (current := _current.get()) is not None:
        current.report.has_files = True
