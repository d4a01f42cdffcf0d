"""Commits the steps of a schedule to a real table, each from the snapshot that it read.

Says what rows there must be, by the meaning of the operations in the order of their commits, as the
model does. Nothing waits for anything: a writer that is overtaken has the table's state of before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from built.commit_tables import IMPATIENT, open_table
from built.replace_files import ReplaceFiles
from built.tables import TableBuilder
from mutations import Step

from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.data_files import Append, Overwrite, RewriteRows
from icebergds.commit.operations import TableState
from icebergds.commit.options import IsolationLevel
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import Action, commit_snapshot
from icebergds.commit.validation import Isolation
from icebergds.errors import InvalidMetadataError, ValidationError
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    conversion_options,
    convert_equality_deletes,
)
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.options import WriteOptions
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.spec.manifest import DataFile, DataFileRef
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.table_updates import SetSnapshotRef

_SCHEMA = Schema((NestedField(1, "key", LONG), NestedField(2, "made", LONG)))

_OF_SEEN_ROWS = ("rewrite delete", "rewrite update", "delete", "update")

Row = tuple[int, int]
"""A key, and the number of the snapshot that the row came with."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A live row that a writer has read, and its place."""

    row: Row
    path: str
    position: int


class Replay:
    """A table with a row of each key, and the rows that each of its states must have.

    Attributes:
        committed: the steps that were committed; others were refused, or had nothing to do.
    """

    def __init__(
        self, location: Path, *, keys: int, format_version: int, serializable: bool
    ) -> None:
        self._builder = TableBuilder(
            location, _SCHEMA, format_version=format_version, properties=IMPATIENT
        )
        rows = [(key, 1) for key in range(1, keys + 1)]
        self._builder.commit(self._builder.data_file(rows))
        self._table = open_table(location)
        self._address = TableAddress(str(location))
        # By the numbers of the schedule, from 1 on.
        self._states = [self._table.state, self._table.state]
        self._rows = [frozenset(rows), frozenset(rows)]
        self._now = frozenset(rows)
        self._level = IsolationLevel.SERIALIZABLE if serializable else IsolationLevel.SNAPSHOT
        self.committed: list[Step] = []

    def wrong(self, steps: Sequence[Step], *, rolls_back: bool = True) -> str | None:
        """Commits the steps; says what rows are wrong then, or None.

        Args:
            rolls_back: whether the branch is rolled back to the parents of steps.
        """
        for step in steps:
            if rolls_back:
                self._roll_back(step.parent)
            self._commit(step)
        expected = Counter(self._now)
        try:
            found = Counter(seen.row for seen in self._read(self._table.state))
        except InvalidMetadataError as error:
            return str(error)
        if found == expected:
            return None
        return f"lost {sorted(expected - found)}, too many {sorted(found - expected)}"

    def _roll_back(self, number: int) -> None:
        head, wanted = self._table.state, _head(self._states[number])
        if _head(head) != wanted:
            self._table.change(
                SetSnapshotRef("main", SnapshotRef(wanted.snapshot_id, RefType.BRANCH))
            )
            self._now = self._rows[number]

    def _commit(self, step: Step) -> None:
        seen = [one for one in self._read(self._states[step.read]) if one.row[0] == step.key]
        before = _head(self._table.state)
        with suppress(ValidationError):
            if seen or step.op not in _OF_SEEN_ROWS:
                self._operations()[step.op](step, seen)
        if _head(self._table.state) != before:
            self.committed.append(step)
            self._now = self._after(step, frozenset(one.row for one in seen))
        self._states.append(self._table.state)
        self._rows.append(self._now)

    def _after(self, step: Step, seen: frozenset[Row]) -> frozenset[Row]:
        """The rows that the table must have after a step."""
        rows, new = self._now, (step.key, self._number)
        of_key = frozenset(row for row in rows if row[0] == step.key)
        is_serializable = self._level is IsolationLevel.SERIALIZABLE
        match step.op:
            case "append":
                return rows | {new}
            case "overwrite":
                return rows if is_serializable else rows & self._rows[step.read]
            case "rewrite delete" | "delete" | "rewrite update" | "update":
                left = rows - (of_key if is_serializable else seen)
                is_live = "update" in step.op and seen <= rows
                return left | {new} if is_live else left
            case "upsert" | "upsert twice":
                return rows - of_key | {new}
        return rows

    def _operations(self) -> dict[str, Callable[[Step, list[_Seen]], None]]:
        return {
            "append": self._append,
            "overwrite": self._overwrite,
            "rewrite delete": self._rewrite,
            "rewrite update": self._rewrite,
            "delete": self._delta,
            "update": self._delta,
            "upsert": self._upsert,
            "upsert twice": self._upsert,
            "compact": self._compact,
            "compact renumbered": self._compact,
            "compact by history": self._compact_by_history,
            "convert": self._convert,
        }

    @property
    def _number(self) -> int:
        return len(self._states)

    def _append(self, step: Step, seen: list[_Seen]) -> None:
        self._do(step, Append((self._file((step.key, self._number)),)))

    def _overwrite(self, step: Step, seen: list[_Seen]) -> None:
        rows = [one.row for one in self._read(self._states[step.read])]
        if rows:
            self._do(step, Overwrite((self._file(*rows),), TRUE, isolation=self._isolation(step)))

    def _rewrite(self, step: Step, seen: list[_Seen]) -> None:
        planned = self._planned(step, seen)
        rows = [one.row for one in self._read(self._states[step.read]) if one.path in planned]
        rows = [row for row in rows if row[0] != step.key]
        if step.op == "rewrite update":
            rows.append((step.key, self._number))
        action = RewriteRows(
            tuple(file.entry.data_file for file in planned.values()),
            (self._file(*rows),) if rows else (),
            self._isolation(step),
            parse_filter(f"key = {step.key}"),
        )
        self._do(step, action)

    def _delta(self, step: Step, seen: list[_Seen]) -> None:
        planned = self._planned(step, seen)
        older = [
            delete.data_file
            for file in planned.values()
            for delete in file.deletes.position_deletes
            if delete.data_file.is_deletion_vector
        ]
        files = [file.entry.data_file for file in planned.values()]
        action = RowDelta(
            (self._file((step.key, self._number)),) if step.op == "update" else (),
            tuple(self._deletes(step, planned, seen)),
            tuple(older),
            tuple(DataFileRef(file.file_path, file.spec_id, file.partition) for file in files),
            self._isolation(step),
            parse_filter(f"key = {step.key}"),
        )
        self._do(step, action)

    def _upsert(self, step: Step, seen: list[_Seen]) -> None:
        new = (step.key, self._number)
        deletes = [self._builder.equality_deletes(["key"], [(step.key,)])]
        if step.op == "upsert":
            file = self._file(new)
        else:
            file = self._file((step.key, 100 + self._number), new)
            deletes += self._positions(file, [0])
        self._do(step, RowDelta((file,), tuple(deletes)))

    def _compact(self, step: Step, seen: list[_Seen]) -> None:
        table = self._loaded(step)
        options = RewriteOptions.of(
            {
                "rewrite-all": "true",
                "use-starting-sequence-number": str(step.op == "compact").lower(),
            },
            table.metadata.properties,
        )
        rewrite_data_files(table, LocalRunner(), WriteOptions.of(table.address), options)

    def _compact_by_history(self, step: Step, seen: list[_Seen]) -> None:
        state = self._states[step.read]
        rows = [one.row for one in self._read(state)]
        files = tuple(file.entry.data_file for file in _files(state))
        head = _head(state)
        new = (self._file(*rows),) if rows else ()
        if files:
            self._do(step, ReplaceFiles(files, new, head.snapshot_id, head.sequence_number))

    def _convert(self, step: Step, seen: list[_Seen]) -> None:
        table = self._loaded(step)
        options = conversion_options(
            table.address,
            {},
            where=None,
            branch=None,
            snapshot_properties=None,
            time_zone=None,
        )
        convert_equality_deletes(table, options, LocalRunner())

    def _do(self, step: Step, action: Action) -> None:
        commit_snapshot(self._table.operations, action, base=self._states[step.read])

    def _isolation(self, step: Step) -> Isolation:
        return Isolation(self._level, _head(self._states[step.read]).snapshot_id)

    def _loaded(self, step: Step) -> LoadedTable:
        return LoadedTable(self._address, self._table.operations, self._states[step.read])

    def _read(self, state: TableState) -> list[_Seen]:
        columns = ["key", "made", "_file", "_pos"]
        found = Table(self._address, state).scan(columns=columns).to_arrow()
        return [
            _Seen((row["key"], row["made"]), row["_file"], row["_pos"]) for row in found.to_pylist()
        ]

    def _planned(self, step: Step, seen: Iterable[_Seen]) -> dict[str, PlannedFile]:
        """The data files that have these rows, by path."""
        paths = {one.path for one in seen}
        planned = {f.entry.data_file.file_path: f for f in _files(self._states[step.read])}
        return {path: planned[path] for path in sorted(paths)}

    def _deletes(
        self, step: Step, planned: dict[str, PlannedFile], seen: list[_Seen]
    ) -> Iterator[DataFile]:
        """Deletes of the rows, and with vectors of those that were deleted before."""
        live = self._read(self._states[step.read])
        for path, file in planned.items():
            positions = {one.position for one in seen if one.path == path}
            if self._has_vectors:
                kept = {one.position for one in live if one.path == path} - positions
                positions = set(range(file.entry.data_file.record_count)) - kept
            yield from self._positions(file.entry.data_file, sorted(positions))

    def _positions(self, file: DataFile, positions: Sequence[int]) -> list[DataFile]:
        if self._has_vectors:
            return self._builder.deletion_vectors([(file, positions)])
        return [self._builder.position_deletes({file.file_path: positions})]

    @property
    def _has_vectors(self) -> bool:
        return self._table.metadata.format_version >= 3

    def _file(self, *rows: Row) -> DataFile:
        return self._builder.data_file(rows)


def _head(state: TableState) -> Snapshot:
    snapshot = state.metadata.current_snapshot()
    assert snapshot is not None
    return snapshot


def _files(state: TableState) -> list[PlannedFile]:
    metadata = state.metadata
    return plan_files(state.io, metadata, _head(state), metadata.schema()).files
