"""Writes changes by key with equality deletes: upserts, deletes and change streams.

Works like the delta writer of Iceberg's Flink integration, on whole batches: rows of earlier
commits are deleted by equality deletes, rows of the same task by position deletes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.formats.arrow.arrays import filtered
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.spec.manifest import DataFile, DataFileRef, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.table_properties import DELETE_TARGET_FILE_SIZE_BYTES
from icebergds.spec.transforms import VoidTransform
from icebergds.write.changes.deltas import DeltaFiles, KeyHashes
from icebergds.write.changes.key_log import KeyLog
from icebergds.write.changes.row_kinds import Mask, RowKind, parse_row_kinds
from icebergds.write.changes.row_tracking import TrackedFiles, with_numbers
from icebergds.write.deletes.keys import KeyPlan, plan_keys
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.files import FileKind, TaskAttempt, TaskFiles
from icebergds.write.rows.fanout import FanoutSettings, FanoutWriter
from icebergds.write.rows.partitioning import plan_partitioning
from icebergds.write.task import WritePlan, data_files, start_attempt, write_rows

DEFAULT_KEY_LIMIT = 1 << 20
_ROW_ID = pa.field(ROW_ID.name, pa.int64())


@dataclass(frozen=True, slots=True, eq=False)
class ReplacedRows:
    """Rows of the table that rows of a change replace, by the hashes of their keys.

    Attributes:
        hashes: ascending, each once.
        row_ids: the ids of these rows (spec: Row Lineage).
    """

    hashes: Hashes
    row_ids: npt.NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes, row_ids: npt.NDArray[np.int64]) -> ReplacedRows:
        """Keeps the first id of each key; -1 is none."""
        has_id = row_ids >= 0
        if not has_id.all():
            hashes, row_ids = hashes[has_id], row_ids[has_id]
        order = np.argsort(hashes)
        hashes, row_ids = hashes[order], row_ids[order]
        is_first = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
        if is_first.all():
            return cls(hashes, row_ids)
        firsts = np.flatnonzero(is_first)
        return cls(hashes[firsts], np.minimum.reduceat(row_ids, firsts))

    def without(self, deleted: Hashes) -> ReplacedRows:
        """The rows whose keys are not among some."""
        kept = ~np.isin(self.hashes, deleted, assume_unique=True)
        return self if kept.all() else ReplacedRows(self.hashes[kept], self.row_ids[kept])

    def ids_of(self, hashes: Hashes) -> pa.Int64Array:
        """The ids of the rows that rows with these keys replace; null if there is none."""
        if not len(self.hashes):
            return pa.nulls(len(hashes), pa.int64())
        # Sorted ones are found several times as fast.
        order = np.argsort(hashes)
        at = np.empty(len(hashes), np.intp)
        at[order] = np.searchsorted(self.hashes, hashes[order])
        at[at == len(self.hashes)] = 0
        return pa.array(self.row_ids[at], mask=self.hashes[at] != hashes)


NO_ROWS = ReplacedRows(np.empty(0, np.uint64), np.empty(0, np.int64))


class DeltaMode(StrEnum):
    """What incoming rows do."""

    UPSERT = "upsert"
    DELETE = "delete"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class KeyedDeltaPlan:
    """What tasks need to change rows by key; created by `plan_keyed_delta`.

    Attributes:
        write: the plan for new rows.
        key_ids: the `equality_ids`.
        mode: whether each row replaces the rows with its key, deletes them, or does what its row
            kind says.
        row_kind_column: the incoming column with the row kinds, in mode `delta`.
        delete_spec: the partition spec of equality delete files.
        format_version: of the table: 2 for position delete files, 3 for deletion vectors.
        key_limit: how many keys to buffer in memory before they are spilled to temporary files.
        keys: extracts keys from incoming rows.
        delete_format: the format of delete files.
        delete_file_size: in bytes; a delete file is closed soon after it has reached it.
        keys_meet: whether all rows of a key reach one task; then tasks do not return key hashes.
        replaced: the rows that new rows replace, whose ids they get; equality deletes of the keys
            are written already then (`write_keys`). None if that is not known.
    """

    write: WritePlan
    key_ids: tuple[int, ...]
    mode: DeltaMode
    row_kind_column: str | None
    delete_spec: PartitionSpec
    format_version: int
    key_limit: int
    keys: KeyPlan
    delete_format: FileFormat
    delete_file_size: int
    keys_meet: bool
    replaced: ReplacedRows | None = None


def plan_keyed_delta(
    write: WritePlan,
    incoming: pa.Schema,
    *,
    key_ids: tuple[int, ...],
    mode: str,
    row_kind_column: str | None = None,
    delete_spec: PartitionSpec,
    format_version: int,
    key_limit: int = DEFAULT_KEY_LIMIT,
    delete_format: FileFormat = FileFormat.PARQUET,
    delete_file_size: int = DELETE_TARGET_FILE_SIZE_BYTES.default,
    keys_meet: bool = False,
) -> KeyedDeltaPlan:
    """Plans the tasks of one change by key, on the driver; arguments as for `KeyedDeltaPlan`.

    Args:
        write: the plan for new rows. Its matching is for the incoming columns, without the row kind
            column unless the table has a column of that name; in mode `delete`, where only keys
            are read, any matching of the table will do.
        incoming: the columns of the incoming rows.

    Raises:
        InvalidDataError: a key column is missing in the incoming rows, or its type does not fit.
        InvalidOptionError: no key is given, a key is not a column of the table or cannot be a key,
            the mode is unknown, or the row kind column is missing.
        UnsupportedFeatureError: the table has format version 1.
    """
    table = write.matching.table
    if format_version < 2:
        raise UnsupportedFeatureError(
            f"table {table} has format version 1, which does not support delete files; upgrade it "
            "to version 2 or 3 to change rows by key"
        )
    if mode not in set(DeltaMode):
        raise InvalidOptionError(
            f"mode {mode!r} of a change by key is unknown, expected one of {', '.join(DeltaMode)}"
        )
    chosen = DeltaMode(mode)
    if (chosen is DeltaMode.DELTA) != (row_kind_column is not None):
        raise InvalidOptionError(
            "a row kind column is required in mode 'delta' and not allowed in other modes; this "
            f"change is in mode {mode!r}, with row kind column {row_kind_column!r}"
        )
    if row_kind_column is not None:
        _kind_index(incoming, row_kind_column)
    zone = write.matching.time_zone
    keys = plan_keys(write.schema, key_ids, incoming, table=table, time_zone=zone)
    _check_delete_spec(delete_spec, key_ids, table)
    return KeyedDeltaPlan(
        write=write,
        key_ids=key_ids,
        mode=chosen,
        row_kind_column=row_kind_column,
        delete_spec=delete_spec,
        format_version=format_version,
        key_limit=key_limit,
        keys=keys,
        delete_format=delete_format,
        delete_file_size=delete_file_size,
        keys_meet=keys_meet,
    )


def write_keyed_delta(
    plan: KeyedDeltaPlan,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Writes the changes of one task; the last row of a key wins.

    On any error, all files of the attempt are deleted and the error is re-raised.

    Args:
        plan: the operation's plan.
        batches: rows, in the order of the changes.
        partition_id: the task's number.
        attempt_id: unique among all attempts of the operation.

    Returns:
        The files and the distinct keys. Counts are of the last changes of keys: `upserted` rows,
        `deleted` keys, and in mode delta also `inserted` rows, whose keys earlier commits do not
        have.

    Raises:
        InvalidDataError: a required column or an identifier field is null, a row kind is unknown,
            or a value does not fit its column.
    """
    write = plan.write
    with start_attempt(write, partition_id=partition_id, attempt_id=attempt_id) as attempt:
        tracked = TrackedFiles(data_files(write, attempt), plan.key_limit)
        try:
            with KeyLog(plan.keys, plan.key_limit) as log:
                changes = _Changes(plan, log)
                files = write_rows(write, tracked, changes.rows_to_write(batches))
                keys = _write_equality_deletes(plan, attempt, log)
                positions = _superseded(files, tracked, log.superseded())
            settings = DeleteSettings(
                plan.format_version,
                "file",
                plan.delete_format,
                plan.delete_file_size,
                write.properties,
            )
            specs = {write.spec.spec_id: write.spec}
            deletes = (*keys.files, *write_deletes(attempt, positions, settings, specs))
            counts = {name: keys.counts[name] for name in _COUNTED[plan.mode]}
            return DeltaFiles(
                tuple(files), deletes, counts=counts, keys=keys.all, deleted_keys=keys.deleted
            )
        finally:
            tracked.cleanup()


def write_keys(
    plan: KeyedDeltaPlan,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Writes equality deletes of the keys of one task, and no rows.

    Arguments and errors are those of `write_keyed_delta`.

    Returns:
        The equality deletes, and the hashes of the keys.
    """
    with (
        start_attempt(plan.write, partition_id=partition_id, attempt_id=attempt_id) as attempt,
        KeyLog(plan.keys, plan.key_limit) as log,
    ):
        changes = _Changes(plan, log)
        for batch in batches:
            if batch.num_rows:
                changes.log_keys(batch)
        keys = _write_equality_deletes(replace(plan, keys_meet=False), attempt, log)
        return DeltaFiles(deletes=keys.files, keys=keys.all)


_COUNTED = {
    DeltaMode.UPSERT: ("upserted",),
    DeltaMode.DELETE: ("deleted",),
    DeltaMode.DELTA: ("inserted", "upserted", "deleted"),
}


class _Changes:
    """Processes incoming rows: adds their keys to the log, returns the rows to write."""

    def __init__(self, plan: KeyedDeltaPlan, log: KeyLog) -> None:
        self._plan = plan
        self._log = log
        self._matching = plan.write.matching
        kinds, schema = plan.row_kind_column, plan.write.schema
        self._stores_kinds = kinds is not None and schema.find_id(kinds, False) is not None
        self._seen = 0

    def rows_to_write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to write, with the table's schema and their row numbers."""
        for batch in batches:
            if batch.num_rows:
                yield from self._take(batch)

    def _take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        first, count = self._seen, batch.num_rows
        batch, is_written, row_ids = self.log_keys(batch)
        if not is_written.any():
            return
        if row_ids is not None:
            batch = batch.append_column(_ROW_ID, row_ids)
        numbers = np.arange(first, first + count, dtype=np.int64)
        if not is_written.all():
            batch, numbers = filtered(batch, pa.array(is_written)), numbers[is_written]
        self._matching = self._matching.fitting(batch.schema)
        yield with_numbers(self._matching.apply(batch), numbers)

    def log_keys(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Mask, pa.Int64Array | None]:
        """Adds the keys of incoming rows to the log.

        Returns:
            The rows without their kinds, which of them are written, and the ids of the rows that
            they replace, if these are known.
        """
        first, count = self._seen, batch.num_rows
        self._seen += count
        is_written = np.full(count, self._plan.mode is not DeltaMode.DELETE)
        may_exist = np.ones(count, np.bool_)
        if self._plan.row_kind_column is not None:
            at = _kind_index(batch.schema, self._plan.row_kind_column)
            kinds = parse_row_kinds(batch.column(at), self._plan.row_kind_column)
            if not self._stores_kinds:
                batch = batch.remove_column(at)
            is_written = (kinds == RowKind.INSERT) | (kinds == RowKind.UPDATE_AFTER)
            may_exist = kinds != RowKind.INSERT
        keys, replaced = self._plan.keys.take(batch), self._plan.replaced
        self._log.add(keys, first, may_exist, ~is_written)
        if replaced is None:
            return batch, is_written, None
        ids = replaced.ids_of(self._plan.keys.hashes(keys))
        # An insert of a changelog replaces nothing.
        return batch, is_written, pc.if_else(pa.array(may_exist), ids, None)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of a task.

    Attributes:
        files: equality deletes.
        counts: of distinct keys, by what their last changes do.
        all: None if the rows of each key meet in one task.
        deleted: of a changelog; None if there are none.
    """

    files: tuple[DataFile, ...]
    counts: Mapping[str, int]
    all: KeyHashes | None
    deleted: KeyHashes | None


def _write_equality_deletes(plan: KeyedDeltaPlan, attempt: TaskAttempt, log: KeyLog) -> _Keys:
    """Writes equality deletes of the task's keys."""
    writer = _EqualityDeleteWriter(
        attempt,
        plan.keys,
        plan.delete_spec,
        plan.delete_format,
        plan.delete_file_size,
        plan.write.properties,
        table=plan.write.matching.table,
    )
    hashes, deleted, counts = list[Hashes](), list[Hashes](), Counter[str]()
    for keys in log.distinct():
        is_deleted = keys.is_deleted & keys.may_exist
        counts["deleted"] += int(is_deleted.sum())
        counts["upserted"] += int((keys.may_exist & ~keys.is_deleted).sum())
        counts["inserted"] += int((~keys.may_exist).sum())
        if plan.mode is DeltaMode.DELTA and is_deleted.any():
            chosen = pa.array(is_deleted)
            deleted.append(plan.keys.hashes([column.filter(chosen) for column in keys.columns]))
        if not plan.keys_meet:
            known = keys.hashes
            hashes.append(plan.keys.hashes(keys.columns) if known is None else known)
        if plan.replaced is not None:
            continue
        rows = plan.keys.delete_rows(keys.columns)
        writer.write(rows if keys.may_exist.all() else rows.filter(pa.array(keys.may_exist)))
    return _Keys(
        tuple(writer.close()),
        counts,
        None if plan.keys_meet else KeyHashes.of(hashes),
        KeyHashes.of(deleted, plan.keys.seed) if deleted else None,
    )


def _superseded(
    files: Iterable[DataFile], tracked: TrackedFiles, numbers: PositionSet
) -> list[FilePositions]:
    """The rows of the task's own files that later rows with the same key replace or delete."""
    found = []
    for file in files:
        positions = tracked.positions(file.file_path, numbers)
        if positions:
            ref = DataFileRef(file.file_path, file.spec_id, file.partition)
            found.append(FilePositions(ref, positions))
    return found


def _kind_index(schema: pa.Schema, name: str) -> int:
    """The index of the row kind column: an exact match, or else one ignoring case."""
    found = [at for at, other in enumerate(schema.names) if other == name]
    found = found or [at for at, other in enumerate(schema.names) if other.lower() == name.lower()]
    if len(found) != 1:
        raise InvalidOptionError(
            f"the row kind column {name!r} is "
            + ("not among the incoming columns" if not found else "given more than once")
            + f" {', '.join(schema.names)}"
        )
    return found[0]


def _check_delete_spec(spec: PartitionSpec, key_ids: tuple[int, ...], table: str) -> None:
    for field in spec.fields:
        if not isinstance(field.transform, VoidTransform) and not set(field.source_ids) <= set(
            key_ids
        ):
            raise InvalidOptionError(
                f"table {table} is partitioned by {field.name!r}, which does not depend on the "
                "keys alone, so the partition of a deleted key is not known; use an "
                "unpartitioned spec for the deletes"
            )


class _EqualityDeleteWriter:
    """Writes equality delete files: the keys whose earlier rows are deleted.

    Args:
        attempt: the task attempt that writes the files.
        keys: the key columns.
        spec: the partition spec of the files; its source columns are keys.
        file_format: of the files.
        target_size: in bytes; a file is closed soon after it has reached it.
        properties: the table's write properties.
        table: the table, for messages.
    """

    def __init__(
        self,
        attempt: TaskAttempt,
        keys: KeyPlan,
        spec: PartitionSpec,
        file_format: FileFormat,
        target_size: int,
        properties: WriteProperties,
        *,
        table: str,
    ) -> None:
        self._partitioner = plan_partitioning(spec, keys.schema, table=table)
        kind = FileKind(
            keys.schema,
            spec,
            file_format,
            properties,
            FileContent.EQUALITY_DELETES,
            tuple(field.field_id for field in keys.fields),
        )
        self._writer = FanoutWriter(
            TaskFiles(attempt, kind), FanoutSettings(), target_size, order=None, sort=False
        )

    def write(self, keys: pa.RecordBatch) -> None:
        """Writes keys, as rows of the files."""
        for rows in self._partitioner.split(keys):
            self._writer.write(rows)

    def close(self) -> list[DataFile]:
        """Closes all files; returns them."""
        return self._writer.close()
