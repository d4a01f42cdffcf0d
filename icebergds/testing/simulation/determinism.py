"""Makes a run of this package the same each time: seeded randomness, simulated time, no threads.

Only what this package calls is replaced. Sets of texts have another order in each process unless
`PYTHONHASHSEED` is set, which `icebergds.testing.simulate` does.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar
from unittest import mock

from icebergds.io import threads

_T = TypeVar("_T")
_PARTS = ("api", "catalog", "commit", "formats", "io", "operations", "scan", "spec", "write")
START_MS = 1_750_000_000_000


def drawn(*key: int) -> random.Random:
    """Random choices that depend on the key alone: on nothing that was drawn before."""
    return random.Random(hash(key))


class Clock:
    """The time of a simulation, in milliseconds since 1970; it passes only by calls of it.

    Attributes:
        sleep: what a process does that waits so many seconds; by default, the time passes.
        skew_ms: by how much the clock of the process that runs now is ahead.
    """

    def __init__(self, now_ms: int = START_MS) -> None:
        self.true_ms = now_ms
        self.skew_ms: Callable[[], int] = lambda: 0
        self.sleep: Callable[[float], None] = lambda seconds: self.advance(int(seconds * 1000))

    def now_ms(self) -> int:
        """The time as the process that runs now sees it."""
        return self.true_ms + self.skew_ms()

    def advance(self, milliseconds: int) -> None:
        self.true_ms += max(0, milliseconds)


class SimulatedTime:
    """The module `time`, by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def time_ns(self) -> int:
        return self._clock.now_ms() * 1_000_000

    def time(self) -> float:
        return self._clock.now_ms() / 1000

    def monotonic(self) -> float:
        return self._clock.true_ms / 1000

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class InlineExecutor(Executor):
    """Runs each call at once, in the thread that submits it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@contextmanager
def deterministic(seed: int, clock: Clock, modules: Sequence[str] = ()) -> Iterator[None]:
    """Replaces the randomness, the time and the thread pools of this package in the block.

    Args:
        modules: modules of other packages in which they are replaced too, if these are installed.
    """
    import_all()
    _import(modules)
    chance, shown = random.Random(seed), SimulatedTime(clock)
    before = random.getstate()
    random.seed(seed)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(os, "urandom", chance.randbytes))
        stack.enter_context(mock.patch.object(random, "_urandom", chance.randbytes))
        stack.enter_context(mock.patch.object(threads, "_threads", None))
        for name, module in list(sys.modules.items()):
            is_own = name.startswith("icebergds.") and not name.startswith("icebergds.testing.")
            if not is_own and name not in modules:
                continue
            if getattr(module, "time", None) is time:
                stack.enter_context(mock.patch.object(module, "time", shown))
            if getattr(module, "ThreadPoolExecutor", None) is ThreadPoolExecutor:
                stack.enter_context(mock.patch.object(module, "ThreadPoolExecutor", InlineExecutor))
        try:
            yield
        finally:
            random.setstate(before)


def import_all() -> None:
    """Imports what the package imports when it is needed: a later import would not be replaced."""
    for part in _PARTS:
        package = importlib.import_module(f"icebergds.{part}")
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        _import(each.name for each in found)


def _import(names: Iterable[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            # A package that it needs is not installed.
            continue
