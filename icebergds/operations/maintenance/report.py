"""Describes what `Table.maintain` did, or would do, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from textwrap import wrap
from typing import Any

from icebergds.display import WIDTH, counted, html_table, printable, size_text
from icebergds.errors import MaintenanceError
from icebergds.operations.maintenance.health.advice import Advice, Gain
from icebergds.operations.maintenance.health.health import TableHealth
from icebergds.operations.maintenance.purge.kept_files import KeptFiles
from icebergds.operations.maintenance.unused_files.orphan_files import OrphanFiles

_INDENT = 11


class StepState(StrEnum):
    """The outcome of a step."""

    DONE = "done"
    PLANNED = "would be done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """An action that was worth it, and its outcome.

    Attributes:
        advice: the action, its arguments, why it is worth it, and what it gains.
        state: `done`, `would be done`, `skipped` or `failed`.
        note: why it was skipped, how it failed, or what it has left.
        size_in_bytes: about how many bytes of data and delete files it read, or would read.
        seconds: how long it took.
        result: what the method of `Table` returns; None if it was not done, or failed as a whole.
        error: the error it failed with; None if only some files failed, whose error is in `note`.
    """

    advice: Advice
    state: StepState
    note: str = ""
    size_in_bytes: int = 0
    seconds: float = 0.0
    result: Any = None
    error: Exception | None = None

    @property
    def action(self) -> str:
        """The name of the method of `Table`."""
        return self.advice.action

    @property
    def reason(self) -> str:
        """Why it is worth it, with figures."""
        return self.advice.reason

    @property
    def gain(self) -> Gain:
        """What is gained, judging by metadata."""
        return self.advice.gain

    def _repr_html_(self) -> str:
        return html_table(f"Step {self.action}", (), [("step", "\n".join(_step(self)))])


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What `Table.maintain` did, or would do; `str` shows it as text.

    Attributes:
        table, branch: their names.
        dry_run: whether nothing was changed.
        steps: in the order in which they were done.
        before: the health of the table at the beginning.
        after: the last known health, with what is still advised; `before` in a dry run.
        seconds: how long it took.
        purge_deleted: whether deleted rows were to go for good.
        kept: if deleted rows were to go for good, the branches, tags and snapshots that keep files
            which may hold some, and what to do about them.
        unreferenced: likewise, the files in the table's directory that no snapshot refers to, which
            may hold some too; None if they are not known.
    """

    table: str
    branch: str
    dry_run: bool
    steps: tuple[MaintenanceStep, ...]
    before: TableHealth
    after: TableHealth
    seconds: float
    purge_deleted: bool = False
    kept: tuple[KeptFiles, ...] = ()
    unreferenced: OrphanFiles | None = None

    @property
    def is_purged(self) -> bool:
        """Whether no file may hold a row that the branch does not have, as far as is known."""
        others = self.unreferenced
        return (
            self.purge_deleted
            and not (self.dry_run or self.failed or self.skipped or self.kept)
            and not self.after.deletes.count
            and self.after.is_healthy
            and others is not None
            and not others.orphan_files_count + others.undated_files_count
        )

    @property
    def failed(self) -> tuple[MaintenanceStep, ...]:
        """The steps that failed, as a whole or for some files."""
        return self._of(StepState.FAILED)

    @property
    def done(self) -> tuple[MaintenanceStep, ...]:
        """The steps that were done."""
        return self._of(StepState.DONE)

    @property
    def skipped(self) -> tuple[MaintenanceStep, ...]:
        """The steps that the budget or the table did not allow, or that were not safe to begin."""
        return self._of(StepState.SKIPPED)

    def left(self) -> list[tuple[str, str]]:
        """What may still hold deleted rows, and what to do about it; or that nothing does."""
        if self.is_purged:
            return [("no file holds deleted rows, as far as the table and its directory tell", "")]
        found = []
        if count := self.after.deletes.count:
            has = f"branch {self.branch!r} has {counted(count, 'delete file')}"
            found.append((f"{has}: deleted rows are in its files", "purge it again"))
        found += [(str(each), each.advice) for each in self.kept]
        others = self.unreferenced
        if others is None:
            found.append(("it is not known which files no snapshot refers to", ""))
        elif count := others.orphan_files_count + others.undated_files_count:
            files = f"{counted(count, 'file')} that no snapshot refers to"
            found.append((f"{files} may hold deleted rows", "see the report's unreferenced"))
        if self.failed or self.skipped or not self.after.is_healthy:
            found.append(("not all steps were done", "see the steps, and purge again"))
        return found

    def raise_failures(self) -> None:
        """Raises MaintenanceError if a step failed."""
        if not self.failed:
            return
        errors = "; ".join(f"{step.action}: {step.note}" for step in self.failed).rstrip(".")
        raise MaintenanceError(
            f"table {self.table}: {len(self.failed)} of {counted(len(self.steps), 'step')} of "
            f"maintenance failed: {errors}. The error's report has what was done",
            self,
        ) from self.failed[0].error

    def __str__(self) -> str:
        lines = ["== Iceberg Maintenance =="]
        for name, texts in _lines(self):
            wrapped = [line for text in texts for line in wrap(printable(text), WIDTH - _INDENT)]
            lines += [f"{'' if at else name:<{_INDENT}}{text}" for at, text in enumerate(wrapped)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(name, "\n".join(texts)) for name, texts in _lines(self)]
        return html_table(f"Maintenance of {self.table}, branch {self.branch}", (), rows)

    def _of(self, state: StepState) -> tuple[MaintenanceStep, ...]:
        return tuple(step for step in self.steps if step.state is state)


def _lines(report: MaintenanceReport) -> Iterator[tuple[str, list[str]]]:
    """The parts of a report, each with its lines."""
    changes = "; dry run, nothing was changed" if report.dry_run else ""
    name, branch = printable(report.table, 60), printable(report.branch, 20)
    yield "table", [f"{name}, branch {branch}{changes}"]
    for number, step in enumerate(report.steps, start=1):
        yield f"step {number}", list(_step(step))
    if not report.steps:
        yield "steps", ["none: nothing was worth it"]
    yield "before", [_figures(report.before)]
    if not report.dry_run:
        yield "after", [_figures(report.after)]
    if report.purge_deleted:
        yield "purge", [f"{what}; {todo}" if todo else what for what, todo in report.left()]


def _step(step: MaintenanceStep) -> Iterator[str]:
    took = f" in {step.seconds:,.1f} s" if step.state is StepState.DONE else ""
    size = f", {size_text(step.size_in_bytes)}" if step.size_in_bytes else ""
    yield f"{step.advice.call}: {step.state}{took}{size}"
    yield step.reason
    if counts := _counts(step.result):
        yield counts
    if gain := str(step.gain):
        yield f"gain: {gain}"
    if step.note:
        yield step.note


def _counts(result: Any) -> str:
    """The counts of an action that are not 0."""
    if result is None:
        return ""
    found = [(field.name, getattr(result, field.name)) for field in fields(result)]
    numbers = [(name, n) for name, n in found if isinstance(n, int) and not isinstance(n, bool)]
    shown = [f"{name.replace('_', ' ')} {number:,}" for name, number in numbers if number]
    return ", ".join(shown) or "nothing was left to do"


def _figures(health: TableHealth) -> str:
    parts = (
        f"{counted(health.files.count, 'data file')}: {size_text(health.files.size_in_bytes)}",
        f"{counted(health.deletes.count, 'delete file')}",
        f"{counted(health.manifests.count, 'manifest')}",
        f"{counted(health.metadata.snapshots, 'snapshot')}",
    )
    return ", ".join(parts)
