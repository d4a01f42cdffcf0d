"""Reads the task groups of a scan or a change feed.

In a change feed a row may be deleted from one file and inserted into another: it did not change.
Rows of both sides that are equal in all columns cancel each other out, one by one. The fingerprints
of the side that is likely to be smaller are held; the rows of both are streamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import field_id_of, schema_to_arrow
from icebergds.formats.deletes.key_columns import Mask
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read.row_fingerprints import Fingerprinter, Fingerprints
from icebergds.scan.read.row_pairs import PartnerFinder, RowCounts
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import CarryoverGroup, ChangeType, ScanTaskGroup, TaskGroup
from icebergds.spec.reserved import CHANGE_TYPE
from icebergds.spec.schema import Schema

_UPDATES = {
    ChangeType.DELETE: ChangeType.UPDATE_BEFORE,
    ChangeType.INSERT: ChangeType.UPDATE_AFTER,
}


def read_task_group(plan: ReadPlan, task_group: TaskGroup) -> Iterator[pa.RecordBatch]:
    """The rows of a task group, in Arrow's storage types of `plan.columns`.

    Raises:
        InvalidDataError: updates are asked for, and an identifier of a row that was deleted and
            of one that was inserted has more rows in the same snapshot.

    Other errors are those of `read_scan_tasks`.
    """
    if isinstance(task_group, ScanTaskGroup):
        yield from read_scan_tasks(plan, task_group)
        return
    for group in task_group.groups:
        rows = _MatchedRows(plan, group)
        if task_group.identifier_ids:
            yield from _with_updates(
                rows, _Identifiers.of(plan.table_schema, task_group.identifier_ids)
            )
        else:
            for side in rows.sides:
                yield from (_filtered(rows.output(batch), kept) for batch, kept in rows.read(side))


class _MatchedRows:
    """The rows of a group without those that cancel each other out.

    Attributes:
        sides: in the order in which they are to be read.
    """

    def __init__(self, plan: ReadPlan, group: CarryoverGroup) -> None:
        compared = plan.table_schema.fields
        columns = list(compared)
        self._places = []
        for field in plan.columns.fields:
            if field not in columns:
                columns.append(field)
            self._places.append(columns.index(field))
        self._schema = schema_to_arrow(plan.columns)
        self._group = group
        self._wide = replace(plan, columns=Schema(tuple(columns)))
        self._narrow = replace(plan, columns=Schema(compared))
        self._fingerprinter = Fingerprinter.of(compared)
        streamed = next(side for side in _UPDATES if side is not group.held)
        self.sides = (streamed, group.held)
        self._held = RowCounts(
            [
                self._fingerprints(batch)
                for batch in read_scan_tasks(self._narrow, self._tasks(group.held))
            ]
        )
        # How many of the held rows of each fingerprint have a partner.
        self._paired = self._held.counts

    def read(
        self, side: ChangeType, *, compared_only: bool = False
    ) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """Batches of one side that begin with all data columns, and which rows did change.

        The same ones each time. The held side comes after the other one, which says how many of
        its rows have a partner.
        """
        is_held = side is self._group.held
        partners = PartnerFinder(self._held, self._paired if is_held else self._held.counts)
        plan = self._narrow if compared_only else self._wide
        for batch in read_scan_tasks(plan, self._tasks(side)):
            kept = ~partners.match(self._fingerprints(batch))
            if kept.any():
                yield batch, kept
        if not is_held:
            self._paired = self._held.counts - partners.left

    def output(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are asked for."""
        return pa.RecordBatch.from_arrays(
            [batch.column(place) for place in self._places], schema=self._schema
        )

    def _fingerprints(self, batch: pa.RecordBatch) -> Fingerprints:
        columns = batch.columns[: len(self._fingerprinter.fields)]
        return self._fingerprinter.fingerprints(columns, batch.num_rows)

    def _tasks(self, side: ChangeType) -> ScanTaskGroup:
        partition = self._group.partition
        return replace(
            partition,
            tasks=tuple(
                task
                for task in partition.tasks
                if task.change is not None and task.change.change_type is side
            ),
        )


@dataclass(frozen=True, slots=True)
class _Identifiers:
    """The identifiers of rows."""

    names: tuple[str, ...]
    paths: tuple[tuple[int, ...], ...]
    fingerprinter: Fingerprinter

    @staticmethod
    def of(schema: Schema, ids: Sequence[int]) -> _Identifiers:
        paths = [path for i in ids if (path := locate(schema.fields, i)) is not None]
        names = tuple(".".join(schema.paths_by_id[i]) for i in ids)
        fields = [schema.fields_by_id[i] for i in ids]
        return _Identifiers(names, tuple(paths), Fingerprinter.of(fields))

    def fingerprints(self, batch: pa.RecordBatch) -> Fingerprints:
        columns = [column_at(batch, path) for path in self.paths]
        return self.fingerprinter.fingerprints(columns, batch.num_rows)

    def text(self, batch: pa.RecordBatch, row: int) -> str:
        values = [column_at(batch, path)[row].as_py() for path in self.paths]
        return ", ".join(
            f"{name}={value!r}" for name, value in zip(self.names, values, strict=True)
        )


def _with_updates(rows: _MatchedRows, identifiers: _Identifiers) -> Iterator[pa.RecordBatch]:
    """The changed rows; those of an identifier that both sides have are updates."""
    known = {
        side: RowCounts(
            [
                identifiers.fingerprints(batch).filter(kept)
                for batch, kept in rows.read(side, compared_only=True)
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
            if len(repeated):
                raise InvalidDataError(
                    "updates cannot be computed: the identifier "
                    f"{identifiers.text(batch, int(repeated[0]))} is that of several rows that a "
                    "snapshot deleted or inserted; choose identifier-columns that tell all rows "
                    "apart, or leave compute-updates out"
                )
            yield _filtered(_with_type(rows.output(batch), is_update, _UPDATES[side]), kept)


def _with_type(batch: pa.RecordBatch, mask: Mask, change_type: ChangeType) -> pa.RecordBatch:
    for index, field in enumerate(batch.schema):
        if field_id_of(field) == CHANGE_TYPE.field_id:
            types = pc.if_else(pa.array(mask), change_type.value, batch.column(index))
            return batch.set_column(index, field, types)
    return batch


def _filtered(batch: pa.RecordBatch, kept: Mask) -> pa.RecordBatch:
    return batch if kept.all() else batch.filter(pa.array(kept))
