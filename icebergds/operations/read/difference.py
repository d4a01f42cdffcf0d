"""Compares the rows of two snapshots or tables (`Difference`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from icebergds.display import counted, html_table, joined, size_text, time_text
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.types import field_to_arrow, schema_to_arrow
from icebergds.formats.deletes.key_columns import Mask
from icebergds.operations.read.compared_columns import (
    ColumnDifference,
    Side,
    compared_columns,
    is_one_table,
    key_columns,
    read_alike,
)
from icebergds.operations.read.planned_scan import PlannedScan, plan_scan, task_groups_of
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.read.changes import FingerprintCounts, RowMatcher, read_task_group
from icebergds.scan.read.row_fingerprints import Fingerprinter, Fingerprints
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField

_Identity: TypeAlias = tuple[str, int | None, frozenset[tuple[str, int | None]]]
_OF_ROW_IDS = (ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id)
_ROOM = 60
_OTHER_TYPES = ", of other types on both sides"


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Data files: their number, their rows before deletes, and their size in bytes."""

    count: int = 0
    rows: int = 0
    size_in_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ComparedSnapshot:
    """The snapshot of one side; `str` shows it as text.

    Attributes:
        ref: the branch or tag that chose it; None for an id, a time, or the current snapshot.
        snapshot_id: None if the table has no snapshot.
        timestamp_ms: when it was committed, milliseconds since 1970-01-01 UTC.
    """

    ref: str | None = None
    snapshot_id: int | None = None
    timestamp_ms: int | None = None

    def __str__(self) -> str:
        ref = "" if self.ref is None else f"{self.ref}, "
        if self.snapshot_id is None or self.timestamp_ms is None:
            return f"{ref}no snapshot"
        return f"{ref}snapshot {self.snapshot_id} of {time_text(self.timestamp_ms)}"


@dataclass(frozen=True, slots=True)
class Difference:
    """How two scans differ; `str` shows it as text.

    Attributes:
        before, after: the tables' names.
        before_at, after_at: the snapshots that were compared.
        columns: the columns that differ.
        not_compared: the columns of both tables whose types differ, which rows leave out.
        files_removed, files_added: the data files that only one side has, or has with other
            deletes.
        files_kept: those that both have; their rows were not read.
        by: the columns by which changed rows are known; empty if there are none.
        removed, added: the rows that only one side has; None if rows were not compared. They have
            the columns of both sides, named as after.
        changed_before, changed_after: rows with the same key and other values, in the same order.
        changed_columns: which columns of these rows differ, as masks by name.
    """

    before: str
    after: str
    columns: tuple[ColumnDifference, ...]
    files_removed: FileCounts
    files_added: FileCounts
    files_kept: FileCounts
    by: tuple[str, ...] = ()
    removed: pa.Table | None = None
    added: pa.Table | None = None
    changed_before: pa.Table | None = None
    changed_after: pa.Table | None = None
    changed_columns: dict[str, Mask] = field(default_factory=dict, repr=False)
    before_at: ComparedSnapshot = ComparedSnapshot()
    after_at: ComparedSnapshot = ComparedSnapshot()
    not_compared: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether columns and rows are the same; without rows, columns and files."""
        if self.columns:
            return False
        if self.removed is None or self.added is None or self.changed_after is None:
            return not (self.files_removed.count or self.files_added.count)
        return not (self.removed.num_rows + self.added.num_rows + self.changed_after.num_rows)

    def __str__(self) -> str:
        return "\n".join(f"{name:<11}{text}" for name, text in self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("Difference", (), list(self._lines()), "line")

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "before", f"{self.before}, {self.before_at}"
        yield "after", f"{self.after}, {self.after_at}"
        shown = [
            f"- {each.before}"
            if each.after is None
            else f"+ {each.after}"
            if each.before is None
            else f"{each.before} -> {each.after}"
            for each in self.columns
        ]
        yield "columns", joined(shown, "column", _ROOM) if shown else "the same"
        for name in ("removed", "added", "kept"):
            files = getattr(self, f"files_{name}")
            size = f": {size_text(files.size_in_bytes)}, {counted(files.rows, 'row')}"
            yield f"{name}", f"{counted(files.count, 'data file')}{size if files.count else ''}"
        if self.removed is None or self.added is None or self.changed_after is None:
            yield "rows", "not compared"
            return
        changed = f", {self.changed_after.num_rows:,} changed" if self.by else ""
        removed, added = self.removed.num_rows, self.added.num_rows
        yield "rows", f"{removed:,} removed, {added:,} added{changed}"
        if self.not_compared:
            names = joined(self.not_compared, "column", _ROOM - len(_OTHER_TYPES))
            yield "without", f"{names}{_OTHER_TYPES}"
        if self.by:
            yield "by", ", ".join(self.by)


def compare_scans(
    before: Side,
    after: Side,
    by: Sequence[str] | None,
    *,
    with_rows: bool = True,
) -> Difference:
    """Compares two scans. Data files that both have are not read; equal rows may be in any file.

    Of the others, 24 bytes are kept for each row, and the rows that differ; the files of `before`
    are read twice.

    Args:
        by: the columns by which changed rows are known; by default the identifier fields of
            `after`. Rows whose key is not unique among the differing ones are not paired.
        with_rows: whether to compare rows, not only metadata.

    Raises:
        InvalidOptionError: a key is not a column of both sides.
    """
    read = read_alike(before, after)
    columns = compared_columns(before, after, read[1])
    shared = columns.shared
    keys = key_columns(after, shared, by)
    sides = [
        plan_scan(state, options, for_native=False, columns=Schema(tuple(own)))
        for (state, options), own in zip(
            read, zip(*shared, strict=True) if shared else ((), ()), strict=True
        )
    ]
    old, new = sides
    is_alike = is_one_table(before, after) and old.plan.row_filter == new.plan.row_filter
    by_row_id = any(column.field_id in _OF_ROW_IDS for _, column in shared)
    identity = partial(_identity, by_row_id=by_row_id)
    both = frozenset(map(identity, old.files)) & frozenset(map(identity, new.files))
    if not is_alike:
        both = frozenset()
    old_files, new_files = (
        tuple(file for file in side.files if identity(file) not in both) for side in sides
    )
    kept = [file for file in new.files if identity(file) in both]
    found = Difference(
        old.state.name,
        new.state.name,
        columns.differing,
        _counts(old_files),
        _counts(new_files),
        _counts(kept),
        keys,
        before_at=_compared(before, old),
        after_at=_compared(after, new),
        not_compared=columns.not_compared,
    )
    if not with_rows:
        return found
    if not shared:
        raise InvalidOptionError(
            f"{old.state.name} and {new.state.name} have no column in common, by name and type, so "
            "their rows cannot be compared; compare columns and files alone (with_rows=False)"
        )
    fields = [after for _, after in shared]
    return _with_rows(found, replace(old, files=old_files), replace(new, files=new_files), fields)


def _compared(side: Side, planned: PlannedScan) -> ComparedSnapshot:
    travel, snapshot = side[1].time_travel, planned.snapshot
    refs = (("branch", travel.branch), ("tag", travel.tag))
    ref = next((f"{kind} {name}" for kind, name in refs if name is not None), None)
    if snapshot is None:
        return ComparedSnapshot(ref)
    return ComparedSnapshot(ref, snapshot.snapshot_id, snapshot.timestamp_ms)


def _identity(file: PlannedFile, *, by_row_id: bool) -> _Identity:
    """What a file's rows depend on: the file, its deletes, and the row ids if they are read."""
    data_file = file.entry.data_file
    deletes = (*file.deletes.position_deletes, *file.deletes.equality_deletes)
    return (
        data_file.file_path,
        # Files get row ids when their table is upgraded.
        data_file.first_row_id if by_row_id else None,
        frozenset((each.data_file.file_path, each.data_file.content_offset) for each in deletes),
    )


def _counts(files: Sequence[PlannedFile]) -> FileCounts:
    found = [file.entry.data_file for file in files]
    rows = sum(file.record_count for file in found)
    return FileCounts(len(found), rows, sum(file.file_size_in_bytes for file in found))


def _with_rows(
    found: Difference, old: PlannedScan, new: PlannedScan, fields: Sequence[NestedField]
) -> Difference:
    """Adds the rows that differ."""
    names = [field.name for field in fields]
    rows = Fingerprinter.of(fields)
    old_prints = [_prints(rows, batch) for batch in _batches(old, names)]
    matcher = RowMatcher(FingerprintCounts(old_prints))
    new_prints, kept = [], []
    for batch in _batches(new, names):
        prints = _prints(rows, batch)
        new_prints.append(prints)
        kept.append(batch.filter(pa.array(~matcher.match(prints))))
    added = pa.Table.from_batches(kept, _named(new, names))
    matcher = RowMatcher(FingerprintCounts(new_prints))
    kept = [
        batch.filter(pa.array(~matcher.match(_prints(rows, batch))))
        for batch in _batches(old, names)
    ]
    removed = pa.Table.from_batches(kept, _named(old, names))
    pairs = _pairs(removed, added, [f for f in fields if f.name in found.by])
    is_paired = [np.zeros(side.num_rows, np.bool_) for side in (removed, added)]
    for mask, at in zip(is_paired, pairs, strict=True):
        mask[at] = True
    before, after = removed.take(pa.array(pairs[0])), added.take(pa.array(pairs[1]))
    return replace(
        found,
        removed=removed.filter(pa.array(~is_paired[0])),
        added=added.filter(pa.array(~is_paired[1])),
        changed_before=before,
        changed_after=after,
        changed_columns=_changed_columns(before, after, fields),
    )


def _named(scan: PlannedScan, names: Sequence[str]) -> pa.Schema:
    """The schema of a scan's rows, with other names."""
    fields = schema_to_arrow(scan.plan.columns)
    return pa.schema([field.with_name(name) for field, name in zip(fields, names, strict=True)])


def _batches(scan: PlannedScan, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a scan, with other names."""
    schema = _named(scan, names)
    for group in task_groups_of(scan, scan.files):
        for batch in read_task_group(scan.plan, group):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _prints(rows: Fingerprinter, batch: pa.RecordBatch) -> Fingerprints:
    return rows.fingerprints(batch.columns, batch.num_rows)


def _pairs(
    removed: pa.Table, added: pa.Table, keys: Sequence[NestedField]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The places of rows with the same key, which is unique on each side."""
    none = np.empty(0, np.int64)
    if not keys:
        return none, none
    prints = Fingerprinter.of(keys)
    sides = []
    for name, rows in (("before", removed), ("after", added)):
        of_keys = prints.fingerprints(_whole(rows, keys), rows.num_rows)
        counts = FingerprintCounts([of_keys])
        is_unique = counts.count(of_keys) == 1
        at = np.flatnonzero(is_unique)
        unique = of_keys.filter(is_unique)
        sides.append(pa.table({"high": unique.high, "low": unique.low, name: at}))
    both = sides[0].join(sides[1], ["high", "low"], join_type="inner").sort_by("after")
    return both["before"].to_numpy(), both["after"].to_numpy()


def _changed_columns(
    before: pa.Table, after: pa.Table, fields: Sequence[NestedField]
) -> dict[str, Mask]:
    found = {}
    for column in fields:
        prints = Fingerprinter.of([column])
        old, new = (
            prints.fingerprints(_whole(rows, [column]), rows.num_rows) for rows in (before, after)
        )
        mask = (old.high != new.high) | (old.low != new.low)
        if mask.any():
            found[column.name] = mask
    return found


def _whole(rows: pa.Table, fields: Sequence[NestedField]) -> list[pa.Array]:
    """Columns as one array each."""
    return [
        pa.concat_arrays(chunks)
        if (chunks := rows.column(each.name).chunks)
        else pa.nulls(0, field_to_arrow(each).type)
        for each in fields
    ]
