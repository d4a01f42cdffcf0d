"""Runs simulated processes in turns: each in a thread of its own, of which one runs at a time.

A process gives up its turn only where it calls its storage or catalog. Which one is next is drawn
from the seed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from icebergds.testing.simulation.determinism import Clock, drawn

_SWITCHES = 0.3
_LONGEST_CALL_MS = 40


def _taken() -> threading.Lock:
    """A lock that whoever waits for gets when it is released."""
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class Process:
    """A simulated process, which does one step.

    Attributes:
        number: of its step.
        calls: how many calls of storage and catalog it has made.
        dead: whether it crashed: none of its later calls has an effect.
        wakes_ms: it waits until then.
        skew_ms: by how much its clock is ahead.
    """

    number: int
    run: Callable[[Process], None] = field(repr=False)
    alone: bool = False
    calls: int = 0
    dead: bool = False
    wakes_ms: int = 0
    skew_ms: int = 0
    ended: bool = False
    _turn: threading.Lock = field(default_factory=_taken, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)
    failure: BaseException | None = None


class Turns:
    """Runs processes, at most some at once.

    Attributes:
        between: called when a turn has ended, before the next.
        switches: how often another process had the next turn.
    """

    def __init__(self, seed: int, clock: Clock, at_once: int) -> None:
        self._seed, self._clock, self._at_once = seed, clock, at_once
        self._main = _taken()
        self._running: list[Process] = []
        self._current: Process | None = None
        self._last: Process | None = None
        self.between: Callable[[], object] = lambda: None
        self.switches = 0
        clock.sleep = self._sleep
        clock.skew_ms = lambda: 0 if self._current is None else self._current.skew_ms

    @property
    def current(self) -> Process | None:
        return self._current

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def run(self, processes: Iterable[Process]) -> None:
        """Runs processes to their ends. Raises what one of them raised."""
        try:
            self._run(processes)
        finally:
            # Threads that wait for a turn would wait for ever.
            for process in list(self._running):
                process.dead = True
                while not process.ended:
                    self._give(process)
            self._running.clear()

    def _run(self, processes: Iterable[Process]) -> None:
        waiting = iter(processes)
        upcoming = next(waiting, None)
        while upcoming is not None or self._running:
            while upcoming is not None and self._has_room(upcoming):
                self._running.append(upcoming)
                upcoming = next(waiting, None)
            process = self._next()
            self._give(process)
            if process.ended:
                self._running.remove(process)
                if process.failure is not None:
                    raise process.failure
            self.between()

    def pause(self, process: Process) -> None:
        """Lets others run, perhaps; called by a process at each call of storage or catalog."""
        if threading.current_thread() is not process._thread:
            return
        chance = drawn(self._seed, 1, process.number, process.calls)
        self._clock.advance(chance.randrange(_LONGEST_CALL_MS))
        if chance.random() < _SWITCHES and len(self._running) > 1:
            self._hand_back(process)

    def _sleep(self, seconds: float) -> None:
        process = self._current
        if process is None or threading.current_thread() is not process._thread:
            self._clock.advance(int(seconds * 1000))
            return
        process.wakes_ms = self._clock.true_ms + int(seconds * 1000)
        self._hand_back(process)

    def _has_room(self, upcoming: Process) -> bool:
        if any(process.alone for process in self._running):
            return False
        return not self._running if upcoming.alone else len(self._running) < self._at_once

    def _next(self) -> Process:
        ready = [p for p in self._running if p.wakes_ms <= self._clock.true_ms]
        if not ready:
            self._clock.true_ms = min(p.wakes_ms for p in self._running)
            ready = [p for p in self._running if p.wakes_ms <= self._clock.true_ms]
        # By steps rather than turns, so that a run with fewer steps is much the same.
        key = sum(p.number * 31 + p.calls for p in ready)
        return drawn(self._seed, 2, key).choice(ready)

    def _give(self, process: Process) -> None:
        self.switches += self._last is not process
        self._current = self._last = process
        if process._thread is None:
            process._thread = threading.Thread(target=self._main_of, args=(process,), daemon=True)
            process._thread.start()
        else:
            process._turn.release()
        self._main.acquire()
        self._current = None

    def _hand_back(self, process: Process) -> None:
        self._main.release()
        process._turn.acquire()

    def _main_of(self, process: Process) -> None:
        try:
            process.run(process)
        except BaseException as error:
            process.failure = error
        process.ended = True
        self._main.release()
