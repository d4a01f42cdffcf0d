"""Draws the faults of storage and catalog from the seed (`DrawnFaults`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    StorageError,
)
from icebergds.testing.faults import Crash
from icebergds.testing.simulation.determinism import Clock, drawn
from icebergds.testing.simulation.turns import Process, Turns

_T = TypeVar("_T")


class FaultKind(StrEnum):
    """What happens to a call.

    The call has its effect in all kinds that begin with "lost" and in those of duplicates; it has
    it later in `LATE`; in others but `DELAY` and `LAG` it has none.
    """

    ERROR = "error before"
    THROTTLED = "throttled"
    OUTAGE = "outage"
    SHORT_READ = "short read"
    TORN_WRITE = "torn write"
    LOST_ANSWER = "lost answer"
    DUPLICATE = "duplicate request"
    LATE = "late effect"
    DELAY = "delay"
    LAG = "listing lags"
    CLOCK_JUMP = "clock jumps"
    CRASH = "crash before"
    CRASH_HALFWAY = "crash halfway"
    CRASH_AFTER = "crash after"
    CONFLICT = "conflict without effect"
    OWN_CONFLICT = "conflict with itself"
    UNKNOWN = "unknown without effect"


CRASHES = (FaultKind.CRASH, FaultKind.CRASH_HALFWAY, FaultKind.CRASH_AFTER)
_ANYWHERE = (
    *(FaultKind.ERROR, FaultKind.THROTTLED, FaultKind.OUTAGE, FaultKind.DELAY),
    *(FaultKind.CLOCK_JUMP, FaultKind.CRASH),
)
_OF_WRITES = (FaultKind.LOST_ANSWER, FaultKind.CRASH_AFTER)
_KINDS = {
    "read_bytes": (*_ANYWHERE, FaultKind.SHORT_READ),
    "list": (*_ANYWHERE, FaultKind.LAG),
    "write": (
        *(*_ANYWHERE, *_OF_WRITES, FaultKind.TORN_WRITE, FaultKind.LATE),
        *(FaultKind.DUPLICATE, FaultKind.CRASH_HALFWAY),
    ),
    "create": (*_ANYWHERE, *_OF_WRITES, FaultKind.LATE, FaultKind.DUPLICATE),
    "write_stream": (*_ANYWHERE, FaultKind.TORN_WRITE, FaultKind.CRASH_HALFWAY),
    "close_stream": (*_ANYWHERE, *_OF_WRITES),
    "delete": (*_ANYWHERE, *_OF_WRITES, FaultKind.DUPLICATE),
    "delete_all": (*_ANYWHERE, *_OF_WRITES, FaultKind.DUPLICATE),
    "delete_each": (*_ANYWHERE, *_OF_WRITES),
    "commit": (
        *(*_ANYWHERE, *_OF_WRITES, FaultKind.LATE, FaultKind.CONFLICT),
        *(FaultKind.OWN_CONFLICT, FaultKind.UNKNOWN),
    ),
}
# Others cannot tell when these happen, and there are many.
_UNSEEN = ("write_stream",)
_RATE = 0.05
_RATE_OF_COMMITS = 0.5
_COMMITS = ("commit", "create")
_LONGEST_OUTAGE = 4


@dataclass(slots=True)
class FaultDraws:
    """What all processes share of the faults.

    Attributes:
        share: which part of the steps has faults.
        without: steps without any.
        injected: how many there were of each kind.
        late: effects that are to come, with their times.
        on_effect: called after calls that may have changed what the catalog has.
    """

    seed: int
    clock: Clock
    turns: Turns
    share: float
    without: frozenset[int] = frozenset()
    injected: Counter[FaultKind] = field(default_factory=Counter)
    late: list[tuple[int, int, Callable[[], object]]] = field(default_factory=list)
    on_effect: Callable[[int], object] = lambda step: None

    def of(self, process: Process) -> DrawnFaults:
        """The faults of one process."""
        chance = drawn(self.seed, 3, process.number)
        is_troubled = chance.random() < self.share and process.number not in self.without
        return DrawnFaults(self, process, is_troubled, only_commits=chance.random() < 0.5)

    def run_late(self, *, all_of_them: bool = False) -> None:
        """Lets the effects happen that are due."""
        while self.late and (all_of_them or min(self.late)[0] <= self.clock.true_ms):
            due = min(self.late, key=lambda effect: effect[:2])
            self.late.remove(due)
            try:
                due[2]()
            except Exception:
                # Refused by the catalog or storage, whom nobody asked for the answer.
                continue
            finally:
                self.on_effect(due[1])


@dataclass(slots=True)
class DrawnFaults:
    """The faults of one process; `CallFaults` for `FaultyFileIO` and `SimulatedOperations`.

    Attributes:
        only_commits: whether nothing fails before the commit.
        count: how many there were.
        lags: how many of them were listings without the newest files.
        never: kinds that do not happen to it.
    """

    draws: FaultDraws
    process: Process
    is_troubled: bool
    only_commits: bool = False
    count: int = 0
    lags: int = 0
    never: frozenset[FaultKind] = frozenset()
    counted: None = None
    _failing: int = 0
    _commits: bool = False

    def around(
        self,
        name: str,
        call: Callable[[], _T],
        halfway: Callable[[], object] | None = None,
        late: Callable[[], object] | None = None,
    ) -> _T:
        """Runs a call, with a fault if one is drawn; others may have their turns before it.

        Args:
            late: has the effect of the call after the process has gone on; `call` by default.
        """
        process = self.process
        if process.dead:
            raise Crash("the process is dead")
        process.calls += 1
        if self._commits and name.startswith("delete"):
            # The commit is done, and others may have a turn before it says so.
            self.draws.on_effect(process.number)
        if name not in _UNSEEN:
            self.draws.turns.pause(process)
        if process.dead:
            raise Crash("the process is dead")
        kind = self._kind(name)
        if kind is None:
            return self._done(name, call)
        self.draws.injected[kind] += 1
        self.count += 1
        return self._with_fault(kind, name, call, halfway, late or call)

    def _kind(self, name: str) -> FaultKind | None:
        if self._failing > 0:
            self._failing -= 1
            return FaultKind.OUTAGE
        if not self.is_troubled:
            return None
        chance = drawn(self.draws.seed, 4, self.process.number, self.process.calls)
        rate = _RATE_OF_COMMITS if name in _COMMITS else 0 if self.only_commits else _RATE
        if chance.random() >= rate:
            return None
        kind = chance.choice(_KINDS.get(name, _ANYWHERE))
        return None if kind in self.never else kind

    def _with_fault(
        self,
        kind: FaultKind,
        name: str,
        call: Callable[[], _T],
        halfway: Callable[[], object] | None,
        late: Callable[[], object],
    ) -> _T:
        draws, process = self.draws, self.process
        chance = drawn(draws.seed, 5, process.number, process.calls)
        match kind:
            case FaultKind.DELAY:
                draws.clock.sleep(chance.uniform(1, 90))
                if process.dead:
                    raise Crash("the process is dead")
                return self._done(name, call)
            case FaultKind.LAG:
                self.lags += 1
                return call()
            case FaultKind.CLOCK_JUMP:
                process.skew_ms += chance.randint(-30_000, 30_000)
                return self._done(name, call)
            case FaultKind.OUTAGE:
                if self._failing == 0:
                    self._failing = chance.randint(1, _LONGEST_OUTAGE)
                raise self._failed(name, kind)
            case FaultKind.DUPLICATE:
                self._done(name, call)
                return self._done(name, call)
            case FaultKind.SHORT_READ:
                data: Any = call()
                shorter: _T = data[: chance.randrange(len(data) + 1)]
                return shorter
            case FaultKind.TORN_WRITE | FaultKind.CRASH_HALFWAY:
                (halfway or call)()
            case FaultKind.LOST_ANSWER | FaultKind.CRASH_AFTER | FaultKind.OWN_CONFLICT:
                self._done(name, call)
            case FaultKind.LATE:
                due_ms = draws.clock.true_ms + chance.randrange(60_000)
                draws.late.append((due_ms, process.number, late))
            case _:
                pass
        if kind in CRASHES:
            process.dead = True
            raise Crash(f"{kind} {name}")
        raise self._failed(name, kind)

    def _done(self, name: str, call: Callable[[], _T]) -> _T:
        if name == "commit":
            self._commits = True
        try:
            return call()
        finally:
            if name == "commit":
                self._commits = False
            if name in _COMMITS:
                self.draws.on_effect(self.process.number)

    def _failed(self, name: str, kind: FaultKind) -> Exception:
        """What a client of a storage or catalog raises."""
        if kind in (FaultKind.CONFLICT, FaultKind.OWN_CONFLICT):
            return CommitConflictError(f"{kind} (injected)")
        if name == "commit" and kind in _UNCERTAIN:
            return CommitStateUnknownError(f"{kind} (injected)")
        reason = "503 Slow Down" if kind is FaultKind.THROTTLED else str(kind)
        return StorageError(f"{reason} (injected into {name})")


_UNCERTAIN = (FaultKind.LOST_ANSWER, FaultKind.LATE, FaultKind.UNKNOWN)

__all__ = ["DrawnFaults", "FaultDraws", "FaultKind"]
