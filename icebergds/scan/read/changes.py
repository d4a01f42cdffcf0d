"""Reads the task groups of a scan or a change feed.

A change feed leaves out carry-overs: pairs of a deleted and an inserted row that are equal in all
columns. The fingerprints of the side that is likely to be smaller are kept in memory; the rows of
both sides are streamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import field_id_of, schema_to_arrow
from icebergds.formats.deletes.key_columns import Mask
from icebergds.metrics import reported
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read.row_fingerprints import Fingerprinter, Fingerprints
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import CarryoverGroup, ChangeType, ScanTaskGroup, TaskGroup
from icebergds.spec.reserved import CHANGE_TYPE, ROW_ID, SPARK_CHANGE_TYPE
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField

_UPDATES = {
    ChangeType.DELETE: ChangeType.UPDATE_BEFORE,
    ChangeType.INSERT: ChangeType.UPDATE_AFTER,
}
_BY_ROW_ID = (ROW_ID.field_id,)


def read_task_group(plan: ReadPlan, task_group: TaskGroup) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a task group, in the Arrow storage types of `plan.columns`.

    Raises:
        InvalidDataError: updates are computed, and several rows that a snapshot deleted, or
            inserted, have the same identifier.

    Other errors are those of `read_scan_tasks`.
    """
    groups = (
        [task_group]
        if isinstance(task_group, ScanTaskGroup)
        else [group.task_group for group in task_group.groups]
    )
    files = sum(len(group.tasks) for group in groups)
    yield from reported(plan.io.properties, plan.io.table_root, files, _read(plan, task_group))


def _read(plan: ReadPlan, task_group: TaskGroup) -> Iterator[pa.RecordBatch]:
    if isinstance(task_group, ScanTaskGroup):
        yield from read_scan_tasks(plan, task_group)
        return
    for group in task_group.groups:
        by_row_id = task_group.identifier_ids == _BY_ROW_ID
        rows = _CarryoverFilter(plan, group, (ROW_ID,) if by_row_id else ())
        if task_group.identifier_ids:
            yield from _with_updates(
                rows, _Identifiers.of(rows.first_columns, task_group.identifier_ids)
            )
        else:
            for side in rows.sides:
                yield from (_filtered(rows.output(batch), kept) for batch, kept in rows.read(side))


class _CarryoverFilter:
    """Reads the rows of a group without carry-overs.

    Args:
        beside: metadata columns to read behind the data columns, which are not compared.

    Attributes:
        sides: in the order in which they must be read.
        first_columns: the columns that all batches begin with.
    """

    def __init__(
        self, plan: ReadPlan, group: CarryoverGroup, beside: tuple[NestedField, ...] = ()
    ) -> None:
        compared = plan.table_schema.fields
        self.first_columns = Schema((*compared, *beside))
        columns = list(self.first_columns.fields)
        self._output_indices = []
        for field in plan.columns.fields:
            if field not in columns:
                columns.append(field)
            self._output_indices.append(columns.index(field))
        self._schema = schema_to_arrow(plan.columns)
        self._group = group
        self._full_plan = replace(plan, columns=Schema(tuple(columns)))
        self._first_plan = replace(plan, columns=self.first_columns)
        self._fingerprinter = Fingerprinter.of(compared)
        larger_side = next(side for side in _UPDATES if side is not group.smaller_side)
        self.sides = (larger_side, group.smaller_side)
        self._smaller = FingerprintCounts(
            [
                self._fingerprints(batch)
                for batch in read_scan_tasks(
                    replace(plan, columns=Schema(compared)), self._tasks(group.smaller_side)
                )
            ]
        )
        # Number of carry-overs for each fingerprint; known once the larger side is read.
        self._carryovers = self._smaller.counts

    def read(
        self, side: ChangeType, *, first_only: bool = False
    ) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """Batches of one side that begin with `first_columns`, and a mask of the changed rows.

        Repeated reads return the same rows. The larger side must be read first: it counts the
        carry-overs.
        """
        is_smaller = side is self._group.smaller_side
        matcher = RowMatcher(
            self._smaller, self._carryovers if is_smaller else self._smaller.counts
        )
        plan = self._first_plan if first_only else self._full_plan
        for batch in read_scan_tasks(plan, self._tasks(side)):
            kept = ~matcher.match(self._fingerprints(batch))
            if kept.any():
                yield batch, kept
        if not is_smaller:
            self._carryovers = self._smaller.counts - matcher.remaining

    def output(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The output columns of a batch."""
        return pa.RecordBatch.from_arrays(
            [batch.column(index) for index in self._output_indices], schema=self._schema
        )

    def _fingerprints(self, batch: pa.RecordBatch) -> Fingerprints:
        columns = batch.columns[: len(self._fingerprinter.fields)]
        return self._fingerprinter.fingerprints(columns, batch.num_rows)

    def _tasks(self, side: ChangeType) -> ScanTaskGroup:
        task_group = self._group.task_group
        return replace(
            task_group,
            tasks=tuple(
                task
                for task in task_group.tasks
                if task.change is not None and task.change.change_type is side
            ),
        )


@dataclass(frozen=True, slots=True)
class _Identifiers:
    """Identifier columns of rows."""

    names: tuple[str, ...]
    paths: tuple[tuple[int, ...], ...]
    fingerprinter: Fingerprinter
    are_row_ids: bool

    @staticmethod
    def of(schema: Schema, ids: Sequence[int]) -> _Identifiers:
        paths = [path for i in ids if (path := locate(schema.fields, i)) is not None]
        names = tuple(".".join(schema.paths_by_id[i]) for i in ids)
        fields = [schema.fields_by_id[i] for i in ids]
        return _Identifiers(names, tuple(paths), Fingerprinter.of(fields), ids == _BY_ROW_ID)

    def fingerprints(self, batch: pa.RecordBatch) -> Fingerprints:
        columns = [column_at(batch, path) for path in self.paths]
        return self.fingerprinter.fingerprints(columns, batch.num_rows)

    def known(self, batch: pa.RecordBatch) -> Mask:
        """Which rows are identified: those of files from before format version 3 have no id."""
        if not self.are_row_ids:
            return np.ones(batch.num_rows, np.bool_)
        mask: Mask = column_at(batch, self.paths[0]).is_valid().to_numpy(zero_copy_only=False)
        return mask

    def text(self, batch: pa.RecordBatch, row: int) -> str:
        values = [column_at(batch, path)[row].as_py() for path in self.paths]
        return ", ".join(
            f"{name}={value!r}" for name, value in zip(self.names, values, strict=True)
        )


def _with_updates(rows: _CarryoverFilter, identifiers: _Identifiers) -> Iterator[pa.RecordBatch]:
    """The changed rows; rows whose identifier is on both sides become updates."""
    known = {
        side: FingerprintCounts(
            [
                identifiers.fingerprints(batch).filter(kept & identifiers.known(batch))
                for batch, kept in rows.read(side, first_only=True)
            ]
        )
        for side in rows.sides
    }
    for side, other in (rows.sides, rows.sides[::-1]):
        for batch, kept in rows.read(side):
            found = identifiers.fingerprints(batch)
            is_update = kept & (known[other].find(found) >= 0)
            updated = found.filter(is_update)
            is_repeated = (known[side].count(updated) > 1) | (known[other].count(updated) > 1)
            repeated = np.flatnonzero(is_update)[is_repeated]
            if len(repeated) and not identifiers.are_row_ids:
                raise InvalidDataError(
                    "updates cannot be computed: the identifier "
                    f"{identifiers.text(batch, int(repeated[0]))} is not unique among the rows "
                    "that a snapshot deleted or inserted; choose unique identifier-columns, or "
                    "leave out compute-updates"
                )
            # A row that several commits changed, and that equals others, may be left several times.
            is_update[repeated] = False
            yield _filtered(_with_type(rows.output(batch), is_update, _UPDATES[side]), kept)


def _with_type(batch: pa.RecordBatch, mask: Mask, change_type: ChangeType) -> pa.RecordBatch:
    names = {
        CHANGE_TYPE.field_id: change_type.value,
        SPARK_CHANGE_TYPE.field_id: change_type.spark_name,
    }
    for index, field in enumerate(batch.schema):
        if (name := names.get(field_id_of(field) or 0)) is not None:
            types = pc.if_else(pa.array(mask), name, batch.column(index))
            return batch.set_column(index, field, types)
    return batch


def _filtered(batch: pa.RecordBatch, kept: Mask) -> pa.RecordBatch:
    return batch if kept.all() else batch.filter(pa.array(kept))


_Indices = npt.NDArray[np.intp]
_Counts = npt.NDArray[np.int32]


class FingerprintCounts:
    """The distinct fingerprints of rows, and how many rows have each; immutable.

    Args:
        parts: fingerprints of rows, in any order.
    """

    __slots__ = ("_high", "_low", "counts")

    def __init__(self, parts: Sequence[Fingerprints]) -> None:
        rows = Fingerprints.concat(parts)
        order = np.lexsort((rows.low, rows.high))
        high, low = rows.high[order], rows.low[order]
        first = np.ones(len(high), np.bool_)
        first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        starts = np.flatnonzero(first)
        self._high, self._low = high[starts], low[starts]
        self.counts: _Counts = np.diff(np.append(starts, len(high))).astype(np.int32)

    def __len__(self) -> int:
        return len(self._high)

    def count(self, rows: Fingerprints) -> _Counts:
        """How many rows have each fingerprint; all of them must be known."""
        return self.counts[self.find(rows)]

    def find(self, rows: Fingerprints) -> _Indices:
        """The index of each fingerprint among the distinct ones; -1 for unknown ones."""
        indices = np.full(len(rows), -1, np.intp)
        # Searching in ascending order accesses memory sequentially.
        searched = rows.high.argsort()
        at = self._high.searchsorted(rows.high[searched])
        while len(searched):
            inside = at < len(self._high)
            searched, at = searched[inside], at[inside]
            same = self._high[at] == rows.high[searched]
            searched, at = searched[same], at[same]
            hit = self._low[at] == rows.low[searched]
            indices[searched[hit]] = at[hit]
            # Different fingerprints very rarely have equal high halves.
            searched, at = searched[~hit], at[~hit] + 1
        return indices


class RowMatcher:
    """Matches the rows of one side with rows of the other side, each at most once.

    Args:
        others: the rows of the other side.
        counts: how many rows of each fingerprint may be matched; by default those of `others`.

    Attributes:
        remaining: how many rows of each fingerprint are not matched yet.
    """

    __slots__ = ("_others", "remaining")

    def __init__(self, others: FingerprintCounts, counts: _Counts | None = None) -> None:
        self._others = others
        self.remaining = (others.counts if counts is None else counts).copy()

    def match(self, rows: Fingerprints) -> Mask:
        """Marks the next rows that match; of equal rows, the first ones match."""
        matched = np.zeros(len(rows), np.bool_)
        indices = self._others.find(rows)
        found = np.flatnonzero(indices >= 0)
        order = found[indices[found].argsort(kind="stable")]
        at = indices[order]
        starts = np.flatnonzero(np.append(True, at[1:] != at[:-1])) if len(at) else at[:0]
        sizes = np.diff(np.append(starts, len(at)))
        rank = np.arange(len(at)) - np.repeat(starts, sizes)
        matched[order[rank < self.remaining[at]]] = True
        distinct = at[starts]
        self.remaining[distinct] -= np.minimum(sizes, self.remaining[distinct]).astype(np.int32)
        return matched
