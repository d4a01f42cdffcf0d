"""Starts to read the next files while rows of one are used, if the storage has latency."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")

_MOST_AHEAD = 4
_BYTES_AHEAD = 64 << 20


@dataclass(frozen=True, slots=True)
class Part(Generic[_T]):
    """Items of which the first may be read before its turn.

    Attributes:
        read: yields items, or None for a step without one; called by one thread, in the order of
            the parts.
        may_begin: whether another thread may run the first step while items of the part before
            are used.
        size: how many bytes are read for it at most.
    """

    read: Callable[[], Iterator[_T | None]]
    may_begin: bool
    size: int


def begun_ahead(parts: Iterable[Part[_T]]) -> Iterator[_T]:
    """The items of all parts, in order; starts up to four parts ahead, or 64 MB of them.

    An error of a part is raised when its turn comes. A caller that stops early does not wait for
    started parts: they end after their first step.
    """
    threads = ThreadPoolExecutor(_MOST_AHEAD, "icebergds-ahead")
    try:
        coming = _Coming(iter(parts), threads)
        while (items := coming.take()) is not None:
            for item in items:
                # Not before: what the part reads comes in the order of the parts.
                coming.begin()
                if item is not None:
                    yield item
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


_Begun = Future[tuple[_T | None, Iterator[_T | None]] | None]


class _Coming(Generic[_T]):
    def __init__(self, parts: Iterator[Part[_T]], threads: ThreadPoolExecutor) -> None:
        self._parts = parts
        self._threads = threads
        self._process = os.getpid()
        self._next = next(parts, None)
        self._begun: deque[tuple[Part[_T], _Begun[_T]]] = deque()

    def take(self) -> Iterator[_T | None] | None:
        """The items of the next part; None if there is none."""
        if self._begun:
            part, begun = self._begun.popleft()
            # A forked process does not have the threads that start parts.
            return part.read() if self._is_fork() else _all(begun)
        following = self._next
        if following is None:
            return None
        self._next = next(self._parts, None)
        return following.read()

    def begin(self) -> None:
        """Starts the parts after the current one."""
        while (part := self._next) is not None and part.may_begin and not self._is_fork():
            ahead = sum(each.size for each, _ in self._begun)
            is_full = len(self._begun) == _MOST_AHEAD
            if is_full or (self._begun and ahead + part.size > _BYTES_AHEAD):
                return
            self._begun.append((part, self._threads.submit(_first, part.read())))
            self._next = next(self._parts, None)

    def _is_fork(self) -> bool:
        return os.getpid() != self._process


def _first(items: Iterator[_T | None]) -> tuple[_T | None, Iterator[_T | None]] | None:
    for item in items:
        return item, items
    return None


def _all(begun: _Begun[_T]) -> Iterator[_T | None]:
    found = begun.result()
    if found is not None:
        first, others = found
        # Otherwise it would stay in memory while the others are read.
        del found, begun
        yield first
        del first
        yield from others
