"""Lets Ctrl-C stop an action at once, except while a commit's outcome is not known.

Threads of an action ask now and then whether to stop. Spark's jobs are cancelled by what an action
has registered for that.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TypeVar

_Item = TypeVar("_Item")
_Handler = Callable[[int, FrameType | None], object]


class _Stop:
    """Whether an action was asked to stop, and what to call then."""

    __slots__ = ("asked", "callbacks")

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.callbacks: list[Callable[[], object]] = []


_stop: ContextVar[_Stop | None] = ContextVar("stop", default=None)


@contextmanager
def stoppable() -> Iterator[None]:
    """Runs an action that `stop` stops, in all threads that have its context.

    An action within another one is a part of it.
    """
    if _stop.get() is not None:
        yield
        return
    token = _stop.set(_Stop())
    try:
        yield
    finally:
        _stop.reset(token)


def stop() -> None:
    """Asks the current action to stop."""
    if (current := _stop.get()) is None or current.asked.is_set():
        return
    current.asked.set()
    for callback in tuple(current.callbacks):
        # A handler of a signal may have interrupted a call that the callback would make, too.
        threading.Thread(target=callback, daemon=True).start()


def check_stopped() -> None:
    """Raises KeyboardInterrupt if the current action was asked to stop."""
    if is_stopped():
        raise KeyboardInterrupt


def is_stopped() -> bool:
    """Whether the current action was asked to stop."""
    current = _stop.get()
    return current is not None and current.asked.is_set()


def until_stopped(items: Iterable[_Item]) -> Iterator[_Item]:
    """The items; raises KeyboardInterrupt once the current action was asked to stop."""
    for item in items:
        check_stopped()
        yield item


@contextmanager
def stopping_threads() -> Iterator[None]:
    """Asks the current action to stop if the block is interrupted, so that its threads end soon.

    Without an action, the block is one.
    """
    token = _stop.set(_Stop()) if _stop.get() is None else None
    try:
        yield
    except KeyboardInterrupt:
        stop()
        raise
    finally:
        if token is not None:
            _stop.reset(token)


@contextmanager
def on_stop(callback: Callable[[], object]) -> Iterator[None]:
    """Has a thread call something, which must not raise, if the action is stopped in the block."""
    if (current := _stop.get()) is None:
        yield
        return
    current.callbacks.append(callback)
    try:
        yield
    finally:
        current.callbacks.remove(callback)


def pause(seconds: float) -> None:
    """Waits; less long if the current action is asked to stop."""
    if (current := _stop.get()) is None:
        time.sleep(seconds)
    else:
        current.asked.wait(seconds)


class _Hold:
    """Holds back what the handler of Ctrl-C raises."""

    def __init__(self, before: _Handler) -> None:
        self._before = before
        self._due: BaseException | None = None

    def begin(self) -> None:
        signal.signal(signal.SIGINT, self._handle)

    def end(self) -> None:
        signal.signal(signal.SIGINT, self._before)
        due, self._due = self._due, None
        if due is not None:
            raise due

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except BaseException as error:
            self._due = error
            stop()


# Python handles signals in the main thread alone.
_hold: _Hold | None = None


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Holds Ctrl-C back until the outermost such block has ended, and asks the action to stop.

    What the block does must ask by `check_stopped`, where stopping is safe.
    """
    global _hold
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or _hold is not None or not callable(before):
        yield
        return
    token = _stop.set(_Stop()) if _stop.get() is None else None
    _hold = _Hold(before)
    _hold.begin()
    try:
        yield
    finally:
        if token is not None:
            _stop.reset(token)
        ended, _hold = _hold, None
        ended.end()


@contextmanager
def interrupts_released() -> Iterator[None]:
    """Lets Ctrl-C raise at once in the block, which is safe to stop, in a block that holds it."""
    global _hold
    held = _hold
    if held is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _hold = None
    try:
        held.end()
        yield
    finally:
        held.begin()
        _hold = held
