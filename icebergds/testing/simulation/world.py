"""Runs a simulation from its seed (`simulate`)."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa

from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    InvalidDataError,
    InvalidOptionError,
    MaintenanceError,
    NotFoundError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.testing.faults import Crash
from icebergds.testing.simulation.auditor import AuditOptions, Auditor
from icebergds.testing.simulation.determinism import Clock, deterministic, drawn
from icebergds.testing.simulation.findings import Finding, FindingKind
from icebergds.testing.simulation.guests import Guest, GuestAct, GuestError
from icebergds.testing.simulation.injected import CRASHES, DrawnFaults, FaultDraws, FaultKind
from icebergds.testing.simulation.maintainers import MAINTAINERS
from icebergds.testing.simulation.places import LOCAL, Place, open_place
from icebergds.testing.simulation.pyiceberg_writer import PYICEBERG, PyIcebergGuest
from icebergds.testing.simulation.steps import (
    Act,
    Outcome,
    Shared,
    Step,
)
from icebergds.testing.simulation.table import SimulatedTable, create_table, snapshot_of
from icebergds.testing.simulation.tables import (
    TOGETHER,
    AuditedTable,
    SimulatedTables,
    can_commit_together,
    change_together,
)
from icebergds.testing.simulation.turns import Process, Turns
from icebergds.testing.simulation.writers import WRITERS

GUESTS: Mapping[str, Guest] = {PYICEBERG: PyIcebergGuest()}
"""Other libraries that take part if they are asked for."""
ACTORS = (*WRITERS, *MAINTAINERS, TOGETHER, *GUESTS)
"""Who takes part in simulations."""
_ACTS: Mapping[str, tuple[Act, int]] = {**WRITERS, **MAINTAINERS}
_WEIGHTS = {**{name: weight for name, (_, weight) in _ACTS.items()}, TOGETHER: 8}
_TABLES = (1, 1, 1, 2, 5)
_NIGHT = "night"
_STEPS_OF_A_DAY = 150
_NIGHT_MS = 4 * 86_400_000
# Errors that steps may have because of what others did, or because the table does not support them.
_OF_OTHERS = (
    *(CommitConflictError, ValidationError, NotFoundError, AlreadyExistsError),
    *(InvalidDataError, InvalidOptionError, UnsupportedFeatureError),
)


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is simulated; the same options give the same run.

    Attributes:
        steps: how many steps there are.
        only: run only the steps with these numbers; None for all.
        without_faults: steps that have none.
        actors: those that take part; most of them but the guests, as drawn, by default.
        guests: the guests that take part beside these.
        faults: in which part of the steps storage and catalog fail; drawn by default.
        at_once: how many processes run at once; drawn by default.
        tables: how many tables there are; drawn by default.
        catalog, storage, properties: as for `open_place`.
    """

    seed: int
    steps: int = 300
    only: frozenset[int] | None = None
    without_faults: frozenset[int] = frozenset()
    actors: frozenset[str] | None = None
    guests: frozenset[str] = frozenset()
    faults: float | None = None
    at_once: int | None = None
    tables: int | None = None
    catalog: str = "sql"
    storage: str = LOCAL
    properties: Mapping[str, str] = field(default_factory=dict)
    audit: AuditOptions = field(default_factory=AuditOptions)
    stops_at_finding: bool = True


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a simulation did and found.

    Attributes:
        tables: how many there were.
        outcomes: how many steps of each actor had which outcome.
        trace: what each step did, with its outcome.
    """

    options: SimulationOptions
    findings: tuple[Finding, ...]
    tables: int
    steps: int
    calls: int
    switches: int
    commits: int
    snapshots: int
    reads: int
    nights: int
    faults: Counter[FaultKind]
    outcomes: Counter[tuple[str, Outcome]]
    errors: Counter[str]
    trace: tuple[str, ...]
    seconds: float

    @property
    def kills(self) -> int:
        return sum(self.faults[kind] for kind in CRASHES)


class _FoundError(Exception):
    """Ends a simulation that has found something."""


def simulate(
    options: SimulationOptions,
    guests: Mapping[str, Guest] | None = None,
    at_end: Callable[[AuditedTable], object] = lambda _: None,
) -> SimulationResult:
    """Runs a simulation in this process; it changes its randomness and time meanwhile.

    Args:
        guests: further guests that take part, by their names.
        at_end: called with each table in the end, if nothing was found.

    Raises:
        IcebergError: the catalog or the storage cannot be used, or the options do not fit it.
    """
    asked = {name: GUESTS[name] for name in sorted(_guests_in(options))} | dict(guests or {})
    modules = [name for guest in asked.values() for name in guest.modules]
    started, clock = time.perf_counter(), Clock()
    with deterministic(options.seed, clock, modules), ExitStack() as stack:
        where = (options.catalog, options.storage, options.properties)
        place = stack.enter_context(open_place(options.seed, clock, *where))
        opened = {
            name: (stack.enter_context(guest.opened(place)), guest.weight)
            for name, guest in asked.items()
        }
        world = _World(options, clock, place, opened)
        world.run(at_end)
        return world.result(time.perf_counter() - started)


def _guests_in(options: SimulationOptions) -> frozenset[str]:
    return options.guests | (frozenset(GUESTS) & (options.actors or frozenset()))


class _World:
    def __init__(
        self,
        options: SimulationOptions,
        clock: Clock,
        place: Place,
        guests: Mapping[str, tuple[GuestAct, int]],
    ) -> None:
        self.options, self.clock, self.place = options, clock, place
        self.guests = {name: act for name, (act, _) in guests.items()}
        chance = drawn(options.seed, 7)
        self._at_once = chance.choice([1, 2, 3, 4, 6])
        share = chance.choice([0.0, 0.1, 0.25, 0.5])
        first = SimulatedTable.of(chance)
        if options.at_once is not None:
            self._at_once = options.at_once
        self.turns = Turns(options.seed, clock, self._at_once)
        share = share if options.faults is None else options.faults
        self.draws = FaultDraws(options.seed, clock, self.turns, share, options.without_faults)
        number = drawn(options.seed, 11).choice(_TABLES)
        if TOGETHER in (options.actors or ()):
            number = max(2, number)
        number = number if options.tables is None else options.tables
        others = (SimulatedTable.of(drawn(options.seed, 12, at)) for at in range(1, number))
        self._created = (first, *others)
        self.findings: list[Finding] = []
        self.tables = SimulatedTables([self._audited(at) for at in range(number)])
        self.steps: dict[int, Step] = {}
        self.draws.on_effect = self.tables.observe
        self.turns.between = self.draws.run_late
        self.processes: list[Process] = []
        self.nights = 0
        self.errors: Counter[str] = Counter()
        weights = dict(_WEIGHTS)
        for name in weights:
            # Each world is without some of the actors.
            if chance.random() < 0.15:
                weights[name] = 0
        weights["append"] = max(weights["append"], 5)
        if options.actors is not None:
            weights = {name: _WEIGHTS[name] for name in sorted(options.actors - GUESTS.keys())}
        if number == 1 or not can_commit_together(place):
            weights[TOGETHER] = 0
        weights |= {name: weight for name, (_, weight) in guests.items()}
        if not any(weights.values()):
            raise InvalidOptionError(
                f"actor {TOGETHER!r} needs two tables, and a catalog that commits to both at once"
            )
        self.weights = weights
        for table in self.tables.tables:
            table.shared.layout_changes = weights.get("partitions", 0) > 0

    def _audited(self, number: int) -> AuditedTable:
        place, shared = self.place.of_table(number), Shared(self.options.seed)
        auditor = Auditor(place, shared, {}, self.options.audit, self.findings)
        return AuditedTable(place, shared, auditor)

    def run(self, at_end: Callable[[AuditedTable], object]) -> None:
        for table, made in zip(self.tables.tables, self._created, strict=True):
            create_table(table.place, made, table.auditor)
        try:
            self.turns.run(self._processes())
            self._night(None)
        except _FoundError:
            return
        if not self.findings:
            for table in self.tables.tables:
                at_end(table)

    def result(self, seconds: float) -> SimulationResult:
        steps, tables = list(self.steps.values()), self.tables.tables
        return SimulationResult(
            self.options,
            tuple(self.findings),
            len(tables),
            len(steps),
            sum(process.calls for process in self.processes),
            self.turns.switches,
            sum(table.auditor.commits for table in tables),
            sum(len(table.shared.model.snapshots) for table in tables),
            sum(table.auditor.reads for table in tables),
            self.nights,
            self.draws.injected,
            Counter((step.actor, step.outcome) for step in steps),
            self.errors,
            tuple(map(str, steps)),
            seconds,
        )

    def _processes(self) -> Iterator[Process]:
        names = list(self.weights)
        for number in range(1, self.options.steps + 1):
            chance = drawn(self.options.seed, 8, number)
            if number % _STEPS_OF_A_DAY == 0:
                actor = _NIGHT
            else:
                actor = chance.choices(names, [self.weights[name] for name in names])[0]
            if self.options.only is not None and number not in self.options.only:
                continue
            for table in reversed(self._tables_of(number, actor)):
                table.steps[number] = self.steps[number] = Step(number, actor, chance)
            run = self._night if actor == _NIGHT else self._run
            process = Process(number, run, alone=actor == _NIGHT)
            process.skew_ms = chance.randint(-2_000, 2_000)
            self.processes.append(process)
            yield process

    def _run(self, process: Process) -> None:
        """Runs a step in its process, and tells the auditor what it says."""
        step = self.steps[process.number]
        tables = self._tables_of(step.number, step.actor)
        faults = self.draws.of(process)
        snapshot_id: int | None = None
        try:
            if step.actor == TOGETHER:
                change_together(tables, step.number, faults)
            elif step.actor in self.guests:
                of = tables[0]
                snapshot_id = self.guests[step.actor](step, of.place, of.shared, faults)
            else:
                snapshot_id = _act(step, tables[0], faults)
            is_open = step.effect is None or step.snapshots != 1
            is_done = snapshot_id is not None or (is_open and step.actor not in self.guests)
            step.outcome = Outcome.DONE if is_done else Outcome.NOTHING
        except Crash:
            step.outcome = Outcome.CRASHED
        except (IcebergError, OSError, pa.ArrowException) as error:
            unknown = isinstance(error, IcebergError) and error.outcome_unknown
            step.outcome = Outcome.UNKNOWN if unknown else Outcome.FAILED
            step.error = _text_of(error)
            self._check_error(step, faults.count, error)
        except GuestError as error:
            step.outcome, step.error = error.outcome, str(error)
            self._check_error(step, faults.count, error)
        except Exception as error:
            step.outcome, step.error = Outcome.UNKNOWN, _text_of(error)
            text = f"{step}\n{''.join(traceback.format_exception(error))}"
            self._tell(FindingKind.UNEXPECTED_ERROR, step.number, text)
        step.faults = faults.count
        for table in tables:
            part = table.steps[step.number]
            part.outcome, part.error, part.faults = step.outcome, step.error, step.faults
            table.auditor.ended(part, snapshot_id)
        self._stop_if_found()

    def _check_error(self, step: Step, faults: int, error: Exception) -> None:
        """Without a fault, steps fail only because of what others did."""
        raised = error.__cause__ if isinstance(error, GuestError) else error
        what = f"{step.actor}: {type(raised).__name__}{' after a fault' if faults else ''}"
        self.errors[what] += 1
        cause = error.__cause__ if isinstance(error, MaintenanceError) else error
        is_expected = isinstance(error, GuestError) and error.is_expected
        if faults or is_expected or isinstance(cause, _OF_OTHERS):
            return
        text = f"{step}\n{''.join(traceback.format_exception(error))}"
        self._tell(FindingKind.UNEXPECTED_ERROR, step.number, text)

    def _night(self, process: Process | None) -> None:
        """Nobody writes for days; then orphan files go, and everything is checked."""
        number = self.options.steps + 1 if process is None else process.number
        self.nights += 1
        self.draws.run_late(all_of_them=True)
        self.clock.advance(_NIGHT_MS)
        for table in self.tables.tables:
            try:
                table.place.table().remove_orphan_files(progress=False)
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                text = f"orphan files could not be removed: {text}"
                table.auditor.tell(FindingKind.UNEXPECTED_ERROR, number, text)
            table.auditor.check_all(number, alone=True)
        if process is not None:
            self.steps[number].outcome = Outcome.DONE
        self._stop_if_found()

    def _tables_of(self, number: int, actor: str) -> Sequence[AuditedTable]:
        """The tables that a step works on."""
        tables = self.tables.tables
        if actor == _NIGHT:
            return tables
        chance = drawn(self.options.seed, 13, number)
        count = chance.randint(2, min(3, len(tables))) if actor == TOGETHER else 1
        return chance.sample(tables, count)

    def _stop_if_found(self) -> None:
        if self.findings and self.options.stops_at_finding:
            raise _FoundError

    def _tell(self, kind: FindingKind, step: int, text: str) -> None:
        self.findings.append(Finding(kind, step, text))


def _text_of(error: Exception) -> str:
    # The error itself would hold all that its frames had.
    return f"{type(error).__name__}: {error}"


def _act(step: Step, of: AuditedTable, faults: DrawnFaults) -> int | None:
    """Runs a step on one table; returns the snapshot that it says it has committed."""
    table = of.place.table(of.place.of_process(faults))
    branches = sorted(name for name in table.refs() if name.startswith("branch"))
    if branches and step.chance.random() < 0.25:
        step.branch = step.chance.choice(branches)
    return snapshot_of(_ACTS[step.actor][0](step, table, of.shared))
