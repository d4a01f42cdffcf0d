"""Models the rows of a table: what each snapshot must have, by what was committed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from icebergds.spec.schema import Schema

ID, GROUP, VALUE = "id", "grp", "val"
KEYS = (ID,)

Row: TypeAlias = Mapping[int, Any]
"""Values by field id; a field that is missing has the default of its column."""
Rows: TypeAlias = Mapping[int, Row]
"""Rows by their keys, which are unique."""


@dataclass(frozen=True, slots=True)
class FieldIds:
    """The field ids of the columns that all tables have."""

    key: int = 1
    group: int = 2
    value: int = 3


CORE = FieldIds()


@dataclass(frozen=True, slots=True)
class Changed:
    """What a commit makes of the rows of its parent.

    Attributes:
        written: keys of rows that it wrote with new values; others are as they were.
    """

    rows: Rows
    written: frozenset[int] = frozenset()


Effect: TypeAlias = Callable[[Rows], Changed]


def unchanged(rows: Rows) -> Changed:
    """The effect of what changes only how rows are stored."""
    return Changed(rows)


@dataclass(frozen=True, slots=True)
class Put:
    """Adds rows, instead of those with the same keys."""

    new: tuple[Row, ...]

    def __call__(self, rows: Rows) -> Changed:
        by_key = {row[CORE.key]: row for row in self.new}
        return Changed({**rows, **by_key}, frozenset(by_key))


@dataclass(frozen=True, slots=True)
class Without:
    """Removes rows by their keys."""

    keys: frozenset[int]

    def __call__(self, rows: Rows) -> Changed:
        return Changed({key: row for key, row in rows.items() if key not in self.keys})


@dataclass(frozen=True, slots=True)
class Then:
    """One effect after another, in the same commit."""

    first: Effect
    second: Effect

    def __call__(self, rows: Rows) -> Changed:
        one = self.first(rows)
        two = self.second(one.rows)
        return Changed(two.rows, one.written | two.written)


def put(new: Iterable[Row]) -> Effect:
    return Put(tuple(new))


def without(keys: Iterable[int]) -> Effect:
    return Without(frozenset(keys))


def without_matching(matches: Callable[[Row], bool]) -> Effect:
    """Removes the rows that match."""
    return lambda rows: Changed({key: row for key, row in rows.items() if not matches(row)})


def updated(matches: Callable[[Row], bool], change: Callable[[Row], Row]) -> Effect:
    """Changes the rows that match."""

    def effect(rows: Rows) -> Changed:
        new = {key: change(row) for key, row in rows.items() if matches(row)}
        return Changed({**rows, **new}, frozenset(new))

    return effect


@dataclass(slots=True)
class ModelSnapshot:
    """What is known of a snapshot.

    Attributes:
        step: that committed it.
        lineage: `_row_id` and `_last_updated_sequence_number` by key, as read; None if they were
            not read, or the table had none.
    """

    snapshot_id: int
    parent_id: int | None
    step: int
    rows: Rows
    written: frozenset[int] = frozenset()
    lineage: Mapping[int, tuple[int, int]] | None = None


@dataclass(slots=True)
class Model:
    """All snapshots that a table has ever had."""

    snapshots: dict[int, ModelSnapshot] = field(default_factory=dict)

    def rows_of(self, snapshot_id: int | None) -> Rows:
        return {} if snapshot_id is None else self.snapshots[snapshot_id].rows

    def forget_rows(self, kept: Collection[int]) -> None:
        """Forgets the rows of all other snapshots, which nobody has read and may commit to yet."""
        for snapshot_id, snapshot in self.snapshots.items():
            if snapshot_id not in kept:
                snapshot.rows, snapshot.lineage = {}, None

    def lineage(self, snapshot_id: int | None) -> Iterable[ModelSnapshot]:
        """A snapshot and its ancestors, expired or not, newest first."""
        while snapshot_id is not None:
            found = self.snapshots[snapshot_id]
            yield found
            snapshot_id = found.parent_id

    def is_ancestor(self, snapshot_id: int, of: int | None) -> bool:
        return any(found.snapshot_id == snapshot_id for found in self.lineage(of))


def as_read(rows: Rows, schema: Schema) -> list[tuple[Any, ...]]:
    """The rows as a read with a schema returns them, in the order of their keys."""
    fields = schema.fields
    return [
        tuple(row.get(field.field_id, field.initial_default) for field in fields)
        for _, row in sorted(rows.items())
    ]
