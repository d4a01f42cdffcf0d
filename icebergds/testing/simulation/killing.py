"""Lets real processes write to a table, kills them, and audits what they leave (`run_killed`).

Nothing is simulated here: time, storage and catalog are real, and a process dies by SIGKILL. Each
process writes down what it is about to do before it does it, and then what came of it, so that the
same auditor knows what was acknowledged.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import pickle
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

from icebergds.catalog.loading import load_catalog
from icebergds.errors import IcebergError
from icebergds.spec.values.dates import now_ms
from icebergds.testing.simulation.auditor import AuditOptions, Auditor
from icebergds.testing.simulation.determinism import Clock, drawn
from icebergds.testing.simulation.findings import Finding
from icebergds.testing.simulation.maintainers import (
    compact,
    convert,
    remove_dangling,
    rewrite_deletes,
    rewrite_manifests,
)
from icebergds.testing.simulation.places import NAME, Place, open_place
from icebergds.testing.simulation.rows import ID, Rows
from icebergds.testing.simulation.steps import Act, Outcome, Shared, Step
from icebergds.testing.simulation.table import SimulatedTable, create_table, snapshot_of
from icebergds.testing.simulation.writers import append, change_data, delete_keys, stream, upsert

_ACTS: Mapping[str, tuple[Act, int]] = {
    "append": (append, 4),
    "stream": (stream, 4),
    "upsert": (upsert, 4),
    "delete keys": (delete_keys, 2),
    "changelog": (change_data, 3),
    "compaction": (compact, 2),
    "conversion": (convert, 1),
    "rewritten deletes": (rewrite_deletes, 1),
    "dangling deletes": (remove_dangling, 1),
    "manifests": (rewrite_manifests, 1),
}
"""Steps whose effects can be written down before they are made."""
_STEPS_OF_A_LIFE = 10_000


@dataclass(frozen=True, slots=True)
class KillOptions:
    """What is run.

    Attributes:
        seed: of what the processes do; when they die depends on the machine.
        seconds: how long processes are killed and started again.
        processes: how many write at once.
        catalog, storage, properties: as for `open_place`.
    """

    seed: int
    seconds: float
    processes: int = 3
    catalog: str = "sql"
    storage: str = "local"
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KillResult:
    """What was done and found."""

    options: KillOptions
    findings: tuple[Finding, ...]
    steps: int
    kills: int
    snapshots: int
    outcomes: Counter[Outcome]
    seconds: float


def run_killed(options: KillOptions) -> KillResult:
    """Runs processes that write to a new table, and kills them again and again.

    Raises:
        IcebergError: the catalog or the storage cannot be used.
    """
    where = (options.catalog, options.storage, options.properties)
    # Files count as old, so that those that nobody needs are removed in the end.
    started, clock = time.monotonic(), Clock(now_ms())
    with open_place(options.seed, clock, *where) as place:
        shared, steps = Shared(options.seed), dict[int, Step]()
        auditor = Auditor(place, shared, steps, AuditOptions(feeds=0, every_state=False))
        create_table(place, SimulatedTable.drawn(options.seed, upgraded=True), auditor)
        directory = place.directory / "journals"
        directory.mkdir()
        kills = _kill_writers(options, place, directory)
        ended = [step for path in sorted(directory.iterdir()) for step in _steps_in(path)]
        steps |= {step.number: step for step, _ in ended}
        for step, snapshot_id in ended:
            auditor.ended(step, snapshot_id)
        last = max(steps)
        place.table().remove_orphan_files(progress=False)
        auditor.check_all(last, alone=True)
        return KillResult(
            options,
            tuple(auditor.findings),
            len(ended),
            kills,
            len(shared.model.snapshots),
            Counter(step.outcome for step, _ in ended),
            time.monotonic() - started,
        )


def _kill_writers(options: KillOptions, place: Place, directory: Path) -> int:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    chance, kills = random.Random(options.seed), 0
    running: dict[int, BaseProcess] = {}

    def start(writer: int, life: int) -> None:
        arguments = (options.seed, writer, life, dict(place.properties), directory)
        running[writer] = context.Process(target=_write, args=arguments, daemon=True)
        running[writer].start()

    for writer in range(options.processes):
        start(writer, 0)
    until = time.monotonic() + options.seconds
    lives = dict.fromkeys(running, 0)
    while time.monotonic() < until:
        writer = chance.randrange(options.processes)
        journal = _journal(directory, writer, lives[writer])
        # It has begun to write.
        while time.monotonic() < until and not (journal.exists() and journal.stat().st_size):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1.0))
        kills += 1
        running[writer].kill()
        running[writer].join()
        lives[writer] = kills
        start(writer, kills)
    for process in running.values():
        process.kill()
        process.join()
    return kills + len(running)


def _write(
    seed: int, writer: int, life: int, properties: Mapping[str, str], directory: Path
) -> None:
    """The life of a process: one step after another, until it is killed."""
    catalog = load_catalog(NAME, properties)
    place = Place(catalog, properties, Clock())
    shared = _SharedOfProcess(seed, place=place, stream_names=(f"stream-{writer}",))
    journals = sorted(directory.glob(f"{writer:03d}-*.jsonl"))
    for path in journals:
        for step, _ in _steps_in(path):
            shared.take_batch(step)
    first = (life * 100 + writer) * _STEPS_OF_A_LIFE
    names = list(_ACTS)
    with _journal(directory, writer, life).open("w") as journal:
        for number in range(first + 1, first + _STEPS_OF_A_LIFE):
            chance = drawn(seed, 9, number)
            actor = chance.choices(names, [weight for _, weight in _ACTS.values()])[0]
            _run(_JournaledStep(number, actor, chance, journal=journal), place, shared)


def _journal(directory: Path, writer: int, life: int) -> Path:
    return directory / f"{writer:03d}-{life:06d}.jsonl"


def _run(step: _JournaledStep, place: Place, shared: Shared) -> None:
    snapshot_id: int | None = None
    try:
        snapshot_id = snapshot_of(_ACTS[step.actor][0](step, place.plain_table(), shared))
        is_done = snapshot_id is not None or step.snapshots != 1
        step.outcome = Outcome.DONE if is_done else Outcome.NOTHING
    except (IcebergError, OSError) as error:
        unknown = isinstance(error, IcebergError) and error.outcome_unknown
        step.outcome = Outcome.UNKNOWN if unknown else Outcome.FAILED
        step.detail += f": {type(error).__name__}: {error}"
    step.tell(snapshot_id)


@dataclass(slots=True)
class _SharedOfProcess(Shared):
    """What a process knows of the table: it reads it."""

    place: Place | None = None

    def rows(self, branch: str) -> Rows:
        assert self.place is not None, "it is always given"
        read = self.place.plain_table().scan(columns=ID).to_arrow()
        return {key: {} for key in read[ID].to_pylist()}

    def take_batch(self, step: Step) -> None:
        """Remembers a batch that was begun before, to write it again if it was not answered."""
        if step.batch is None:
            return
        name, version = step.batch
        if step.outcome in (Outcome.DONE, Outcome.NOTHING):
            self.streams[name] = (version + 1, [])
        elif self.streams.get(name, (0, []))[0] <= version:
            self.streams[name] = (version, list(getattr(step.effect, "new", ())))


@dataclass(slots=True)
class _JournaledStep(Step):
    """A step that is written down before it may commit: when its summary is asked for."""

    journal: TextIO | None = None

    @property
    def summary(self) -> dict[str, str]:
        self.tell(None)
        return Step.summary.fget(self)  # type: ignore[attr-defined, no-any-return]

    def tell(self, snapshot_id: int | None) -> None:
        assert self.journal is not None, "it is always given"
        told = (self.effect, self.snapshots, self.keeps_ids, self.batch)
        line = {
            "number": self.number,
            "actor": self.actor,
            "detail": self.detail,
            "outcome": self.outcome,
            "snapshot": snapshot_id,
            "pickled": base64.b64encode(pickle.dumps(told)).decode(),
        }
        self.journal.write(json.dumps(line) + "\n")
        self.journal.flush()
        os.fsync(self.journal.fileno())


def _steps_in(path: Path) -> Iterator[tuple[Step, int | None]]:
    """The steps of a journal as they were told last, with the snapshots that they committed."""
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            # The process died while it wrote this line: it had not begun to commit.
            continue
        found[told["number"]] = told
    for number, told in found.items():
        effect, snapshots, keeps_ids, batch = pickle.loads(base64.b64decode(told["pickled"]))
        outcome = Outcome(told["outcome"])
        step = Step(
            number,
            told["actor"],
            random.Random(0),
            effect=effect,
            snapshots=snapshots,
            keeps_ids=keeps_ids,
            batch=batch,
            detail=told["detail"],
            outcome=Outcome.CRASHED if outcome is Outcome.RUNNING else outcome,
        )
        yield step, told["snapshot"]
