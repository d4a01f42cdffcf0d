"""Defines what a process does to the table (`Step`), and what became of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import pyarrow as pa

from icebergds.api.table import Table
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH
from icebergds.spec.types import NestedField
from icebergds.testing.simulation.rows import CORE, Effect, Model, Row, Rows

STEP_PROPERTY = "simulation.step"
"""The summary entry with the number of the step that committed a snapshot."""

GROUPS = 5
ACCOUNTS = tuple(range(-6, 0))
"""Keys of the accounts of the bank; no other step than its transfers changes their sum."""
MONEY = 600


class Outcome(StrEnum):
    """What a step, or the process that ran it, says of its commit.

    Another library refuses what it does not support, and commits nothing.
    """

    RUNNING = "running"
    DONE = "done"
    NOTHING = "nothing to commit"
    FAILED = "failed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    CRASHED = "crashed"


@dataclass(slots=True)
class Step:
    """What one process does.

    Attributes:
        chance: what it draws from.
        branch: the branch that it commits to.
        effect: what a snapshot of it makes of its parent's rows; set before it commits.
        snapshots: how many it commits, at most; None if any number.
        least: how many it commits at once.
        in_parts: whether the effect may be that of several snapshots, which are committed at once
            and have more of it each; for changes that remove rows, and may then add others.
        keeps_ids: whether rows that it writes keep their `_row_id`.
        moves_references: whether it may change branches and tags otherwise than by a commit.
        staged: the id under which its first snapshot waits, on no branch, to be published.
        batch: application and version of an idempotent write.
        detail, error: what it did, and why it failed, for reports.
    """

    number: int
    actor: str
    chance: random.Random
    branch: str = MAIN_BRANCH
    effect: Effect | None = None
    snapshots: int | None = 1
    least: int = 1
    in_parts: bool = False
    staged: str = ""
    keeps_ids: bool = False
    moves_references: bool = False
    batch: tuple[str, int] | None = None
    detail: str = ""
    outcome: Outcome = Outcome.RUNNING
    error: str = ""
    faults: int = 0
    committed: list[int] = field(default_factory=list)
    """The snapshots that were seen."""

    @property
    def summary(self) -> dict[str, str]:
        """The entries of the summaries of its snapshots."""
        return {STEP_PROPERTY: str(self.number)}

    def __str__(self) -> str:
        error = self.error and f": {self.error}"
        return f"step {self.number} ({self.actor}, {self.detail}): {self.outcome}{error}"


@dataclass(slots=True)
class Shared:
    """What steps know of each other.

    Attributes:
        heads: the newest snapshots of branches, as they were last seen.
        streams: batches of streams that were not acknowledged yet, with their versions.
        stream_names: of the streams that there are.
        staged: ids of snapshots that were staged.
        layout_changes: whether somebody may change the partitions.
    """

    seed: int
    model: Model = field(default_factory=Model)
    heads: dict[str, int] = field(default_factory=dict)
    streams: dict[str, tuple[int, list[Row]]] = field(default_factory=dict)
    stream_names: tuple[str, ...] = ("stream-0", "stream-1")
    staged: list[str] = field(default_factory=list)
    layout_changes: bool = True

    def rows(self, branch: str) -> Rows:
        """The rows of a branch, as they were last seen."""
        head = self.heads.get(branch, self.heads.get(MAIN_BRANCH))
        return self.model.rows_of(head)

    def some_keys(self, step: Step, most: int) -> list[int]:
        """Keys that the branch had, except those of accounts."""
        keys = sorted(key for key in self.rows(step.branch) if key >= 0)
        return step.chance.sample(keys, min(len(keys), step.chance.randint(1, most)))


Act: TypeAlias = Callable[[Step, Table, Shared], Any]
"""Runs a step, and returns what the method of `Table` returned."""


def new_keys(step: Step, count: int) -> list[int]:
    """Keys that no other step has."""
    return [step.number * 1000 + at for at in range(count)]


def new_rows(step: Step, schema: Schema, keys: list[int]) -> list[Row]:
    """Rows with drawn values; columns that were added may be left out, or have nulls."""
    known = (CORE.key, CORE.group, CORE.value)
    others = [c for c in schema.fields if c.field_id not in known and step.chance.random() < 0.7]
    return [_new_row(step, others, key) for key in keys]


def _new_row(step: Step, others: list[NestedField], key: int) -> Row:
    values: dict[int, Any] = {
        CORE.key: key,
        CORE.group: step.chance.randrange(1, GROUPS),
        CORE.value: step.chance.randrange(1000),
    }
    for column in others:
        number = step.chance.randrange(100)
        text = f"text {number}" if str(column.field_type) == "string" else number
        values[column.field_id] = text if number > 20 else None
    return values


def arrow_rows(
    rows: Sequence[Row], schema: Schema, more: Mapping[str, list[Any]] | None = None
) -> pa.Table:
    """Rows as an Arrow table; columns that no row has a value for are left out.

    Args:
        more: further columns of text.
    """
    given = {field_id for row in rows for field_id in row}
    chosen = [column for column in schema.fields if column.field_id in given]
    names = [column.name for column in chosen]
    types = {column.name: column.type for column in schema_to_arrow(schema)}
    columns = {
        name: pa.array([row.get(column.field_id) for row in rows], types[name])
        for name, column in zip(names, chosen, strict=True)
    }
    for name, texts in (more or {}).items():
        columns[name] = pa.array(texts, pa.string())
    return pa.table(columns)
