"""Runs a simulation from its seed (`simulate`)."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
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
from icebergds.testing.simulation.injected import CRASHES, FaultDraws, FaultKind
from icebergds.testing.simulation.maintainers import MAINTAINERS
from icebergds.testing.simulation.places import LOCAL, Place, open_place
from icebergds.testing.simulation.steps import (
    Act,
    Outcome,
    Shared,
    Step,
)
from icebergds.testing.simulation.table import SimulatedTable, create_table, snapshot_of
from icebergds.testing.simulation.turns import Process, Turns
from icebergds.testing.simulation.writers import WRITERS

ACTORS: Mapping[str, tuple[Act, int]] = {**WRITERS, **MAINTAINERS}
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
        actors: those that take part; most of them, as drawn, by default.
        faults: in which part of the steps storage and catalog fail; drawn by default.
        at_once: how many processes run at once; drawn by default.
        catalog, storage, properties: as for `open_place`.
    """

    seed: int
    steps: int = 300
    only: frozenset[int] | None = None
    without_faults: frozenset[int] = frozenset()
    actors: frozenset[str] | None = None
    faults: float | None = None
    at_once: int | None = None
    catalog: str = "sql"
    storage: str = LOCAL
    properties: Mapping[str, str] = field(default_factory=dict)
    audit: AuditOptions = field(default_factory=AuditOptions)
    stops_at_finding: bool = True


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a simulation did and found.

    Attributes:
        outcomes: how many steps of each actor had which outcome.
        trace: what each step did, with its outcome.
    """

    options: SimulationOptions
    findings: tuple[Finding, ...]
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


def simulate(options: SimulationOptions) -> SimulationResult:
    """Runs a simulation in this process; it changes its randomness and time meanwhile.

    Raises:
        IcebergError: the catalog or the storage cannot be used, or the options do not fit it.
    """
    started, clock = time.perf_counter(), Clock()
    with deterministic(options.seed, clock):
        where = (options.catalog, options.storage, options.properties)
        with open_place(options.seed, clock, *where) as place:
            world = _World(options, clock, place)
            world.run()
            return world.result(time.perf_counter() - started)


class _World:
    def __init__(self, options: SimulationOptions, clock: Clock, place: Place) -> None:
        self.options, self.clock, self.place = options, clock, place
        chance = drawn(options.seed, 7)
        self._at_once = chance.choice([1, 2, 3, 4, 6])
        share = chance.choice([0.0, 0.1, 0.25, 0.5])
        self._table = SimulatedTable.of(chance)
        if options.at_once is not None:
            self._at_once = options.at_once
        self.turns = Turns(options.seed, clock, self._at_once)
        share = share if options.faults is None else options.faults
        self.draws = FaultDraws(options.seed, clock, self.turns, share, options.without_faults)
        self.shared = Shared(options.seed)
        self.steps: dict[int, Step] = {}
        self.auditor = Auditor(place, self.shared, self.steps, options.audit)
        self.draws.on_effect = self.auditor.observe
        self.turns.between = self.draws.run_late
        self.processes: list[Process] = []
        self.nights = 0
        self.errors: Counter[str] = Counter()
        weights = {name: weight for name, (_, weight) in ACTORS.items()}
        for name in weights:
            # Each world is without some of the actors.
            if chance.random() < 0.15:
                weights[name] = 0
        weights["append"] = max(weights["append"], 5)
        if options.actors is not None:
            weights = {name: ACTORS[name][1] for name in sorted(options.actors)}
        self.weights = weights
        self.shared.layout_changes = weights.get("partitions", 0) > 0

    def run(self) -> None:
        create_table(self.place, self._table, self.auditor)
        try:
            self.turns.run(self._processes())
            self._night(None)
        except _FoundError:
            return

    def result(self, seconds: float) -> SimulationResult:
        steps = [step for step in self.steps.values() if step.number > 0]
        return SimulationResult(
            self.options,
            tuple(self.auditor.findings),
            len(steps),
            sum(process.calls for process in self.processes),
            self.turns.switches,
            self.auditor.commits,
            len(self.shared.model.snapshots),
            self.auditor.reads,
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
            step = Step(number, actor, chance)
            self.steps[number] = step
            run = self._night if actor == _NIGHT else self._run
            process = Process(number, run, alone=actor == _NIGHT)
            process.skew_ms = chance.randint(-2_000, 2_000)
            self.processes.append(process)
            yield process

    def _run(self, process: Process) -> None:
        """Runs a step in its process, and tells the auditor what it says."""
        step = self.steps[process.number]
        faults = self.draws.of(process)
        snapshot_id: int | None = None
        act = ACTORS[step.actor][0]
        try:
            table = self.place.table(self.place.of_process(faults))
            branches = sorted(name for name in table.refs() if name.startswith("branch"))
            if branches and step.chance.random() < 0.25:
                step.branch = step.chance.choice(branches)
            head = table.metadata.head_of(step.branch)
            step.knew_ids = head is not None and head.first_row_id is not None
            snapshot_id = snapshot_of(act(step, table, self.shared))
            is_done = snapshot_id is not None or step.effect is None or step.snapshots != 1
            step.outcome = Outcome.DONE if is_done else Outcome.NOTHING
        except Crash:
            step.outcome = Outcome.CRASHED
        except (IcebergError, OSError, pa.ArrowException) as error:
            unknown = isinstance(error, IcebergError) and error.outcome_unknown
            step.outcome = Outcome.UNKNOWN if unknown else Outcome.FAILED
            step.error = error
            self._check_error(step, faults.count, error)
        except Exception as error:
            step.outcome, step.error = Outcome.UNKNOWN, error
            text = f"{step}\n{''.join(traceback.format_exception(error))}"
            self._tell(FindingKind.UNEXPECTED_ERROR, step.number, text)
        step.faults = faults.count
        self.auditor.ended(step, snapshot_id)
        if self.auditor.findings and self.options.stops_at_finding:
            raise _FoundError

    def _check_error(self, step: Step, faults: int, error: Exception) -> None:
        """Without a fault, steps fail only because of what others did."""
        what = f"{step.actor}: {type(error).__name__}{' after a fault' if faults else ''}"
        self.errors[what] += 1
        cause = error.__cause__ if isinstance(error, MaintenanceError) else error
        if faults or isinstance(cause, _OF_OTHERS):
            return
        text = f"{step}\n{''.join(traceback.format_exception(error))}"
        self._tell(FindingKind.UNEXPECTED_ERROR, step.number, text)

    def _night(self, process: Process | None) -> None:
        """Nobody writes for days; then orphan files go, and everything is checked."""
        number = self.options.steps + 1 if process is None else process.number
        self.nights += 1
        self.draws.run_late(all_of_them=True)
        self.clock.advance(_NIGHT_MS)
        try:
            self.place.table().remove_orphan_files(progress=False)
        except Exception as error:
            text = (
                f"orphan files could not be removed: {''.join(traceback.format_exception(error))}"
            )
            self._tell(FindingKind.UNEXPECTED_ERROR, number, text)
        self.auditor.check_all(number, alone=True)
        if process is not None:
            self.steps[number].outcome = Outcome.DONE
        if self.auditor.findings and self.options.stops_at_finding:
            raise _FoundError

    def _tell(self, kind: FindingKind, step: int, text: str) -> None:
        self.auditor.findings.append(Finding(kind, step, text))
