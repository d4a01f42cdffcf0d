"""Writes position deletes and new rows: merge-on-read DELETE, UPDATE and MERGE."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.deletes.existing_deletes import read_existing_deletes
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.deletes.positions import PositionSet
from icebergds.spec.manifest import DataFile, DataFileRef, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.table_properties import DELETE_TARGET_FILE_SIZE_BYTES
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.deletes.data_file_names import DataFileNames
from icebergds.write.deletes.deleted_rows import DeletedRows
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.task import WritePlan, data_files, start_attempt, write_rows

Mask = npt.NDArray[np.bool_]

FILE_COLUMN = "_file"
POS_COLUMN = "_pos"
WRITE_COLUMN = "_write"
TARGET_COLUMN = "_icebergds_target"
"""Binary: packed metadata of the data file `_file` in additional rows; null in other rows."""
CONTROL_COLUMNS = (FILE_COLUMN, POS_COLUMN, WRITE_COLUMN, TARGET_COLUMN)


@dataclass(frozen=True, slots=True)
class DeleteTarget:
    """A data file in which rows may be deleted.

    Attributes:
        file: the data file.
        deletes: the existing position delete files and deletion vectors that apply to it.
    """

    file: DataFileRef
    deletes: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class PositionDeltaPlan:
    """What tasks need to delete rows by position and to write new rows.

    Attributes:
        write: the plan for new rows; its schema ends with `_row_id` and
            `_last_updated_sequence_number` if these are written.
        format_version: of the table: 2 for position delete files, 3 for deletion vectors.
        granularity: of position delete files: `file` for one per data file, or `partition`.
        specs: the table's partition specs, by id.
        delete_format: the format of position delete files.
        delete_file_size: in bytes; a delete file is closed soon after it has reached it.
    """

    write: WritePlan
    format_version: int
    granularity: str
    specs: Mapping[int, PartitionSpec]
    delete_format: FileFormat = FileFormat.PARQUET
    delete_file_size: int = DELETE_TARGET_FILE_SIZE_BYTES.default


def without_control_columns(incoming: pa.Schema) -> pa.Schema:
    """The incoming columns of the table, for which `WritePlan.matching` is planned."""
    return pa.schema([field for field in incoming if field.name not in CONTROL_COLUMNS])


def write_position_delta(
    plan: PositionDeltaPlan,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Writes the deletes and new rows of one task.

    On any error, all files of the attempt are deleted and the error is re-raised.

    Args:
        plan: the operation's plan.
        batches: rows in any order, with these columns: `_file` (string) and `_pos` (long), the row
            of the table to delete, or null; `_write` (boolean), whether to write the row; the
            table's columns, which may be missing if nothing is written; `_icebergds_target`
            (binary), the packed `DeleteTarget` of the data file `_file` (`pack_target`) in a row
            that changes nothing, or null. All rows of one `_file` must come to the same task.
        partition_id: the task's number.
        attempt_id: unique among all attempts of the operation.

    Returns:
        The files, and how many rows were `inserted`, `updated` and `deleted`.

    Raises:
        InvalidDataError: a row of the table is given twice, a `_file` is not one of the targets, or
            a value does not fit its column.
    """
    write = plan.write
    changes = _Changes(plan)
    with start_attempt(write, partition_id=partition_id, attempt_id=attempt_id) as attempt:
        targets: dict[str, DeleteTarget] = {}
        rows = changes.rows_to_write(take_targets(batches, targets))
        files = write_rows(write, data_files(write, attempt), rows)
        names = DataFileNames(write.io, targets, write.matching.table)
        deleted = changes.deleted(names)
        earlier = _deletes_to_merge(plan, targets, deleted)
        before = read_existing_deletes(write.io, earlier)
        deletes = [
            FilePositions(
                targets[path].file,
                PositionSet.union([positions, before[path]]) if path in before else positions,
            )
            for path, positions in deleted.items()
        ]
        return DeltaFiles(
            files=tuple(files),
            deletes=tuple(
                write_deletes(
                    attempt,
                    deletes,
                    DeleteSettings(
                        plan.format_version,
                        plan.granularity,
                        plan.delete_format,
                        plan.delete_file_size,
                        write.properties,
                    ),
                    plan.specs,
                )
            ),
            replaced=tuple(
                delete
                for path, deletes_of_file in earlier.items()
                for delete in deletes_of_file
                if only_data_path(delete) == path
            ),
            referenced=tuple(delete.file for delete in deletes),
            counts=changes.counts,
        )


class _Changes:
    """Separates the rows of a task: those to write, and those to delete."""

    def __init__(self, plan: PositionDeltaPlan) -> None:
        self._matching = plan.write.matching
        self._deleted = DeletedRows(plan.write.matching.table)
        self.counts = {"inserted": 0, "updated": 0, "deleted": 0}

    def rows_to_write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to write, with the table's schema; records the rows to delete."""
        for batch in batches:
            if not batch.num_rows:
                continue
            is_written = self._record_deletes(batch)
            written = int(is_written.sum())
            if written:
                rows = batch.select([n for n in batch.schema.names if n not in CONTROL_COLUMNS])
                if written < batch.num_rows:
                    rows = rows.filter(pa.array(is_written))
                self._matching = self._matching.fitting(rows.schema)
                yield self._matching.apply(rows)

    def deleted(self, names: DataFileNames) -> Mapping[str, PositionSet]:
        """The rows to delete, by data file."""
        return self._deleted.result(names)

    def _record_deletes(self, batch: pa.RecordBatch) -> Mask:
        """Records the rows to delete; marks the rows to write."""
        paths = _control(batch, FILE_COLUMN, pa.string())
        positions = _control(batch, POS_COLUMN, pa.int64())
        flags = _control(batch, WRITE_COLUMN, pa.bool_())
        is_written: Mask = flags.fill_null(False).to_numpy(zero_copy_only=False)
        is_deleted = paths.is_valid().to_numpy(zero_copy_only=False)
        self.counts["inserted"] += int((is_written & ~is_deleted).sum())
        self.counts["updated"] += int((is_written & is_deleted).sum())
        self.counts["deleted"] += int((is_deleted & ~is_written).sum())
        if paths.null_count:
            mask = pa.array(is_deleted)
            paths, positions = paths.filter(mask), positions.filter(mask)
        self._deleted.add(paths, positions)
        return is_written


def _control(batch: pa.RecordBatch, name: str, wanted: pa.DataType) -> pa.Array:
    """A control column; all null if it is missing."""
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, wanted)
    return batch.column(name).cast(wanted)


def _deletes_to_merge(
    plan: PositionDeltaPlan, targets: Mapping[str, DeleteTarget], deleted: Iterable[str]
) -> dict[str, tuple[DataFile, ...]]:
    """The existing deletes to merge into the new ones of the same data files.

    A data file has only one deletion vector. Delete files of granularity `file` stay one per data
    file.
    """
    if plan.format_version >= 3:
        return {path: targets[path].deletes for path in deleted}
    if plan.granularity != "file":
        return {}
    return {
        path: tuple(d for d in targets[path].deletes if only_data_path(d) == path)
        for path in deleted
    }


def pack_target(path: str, target: object) -> bytes:
    """The value of `TARGET_COLUMN` for a data file.

    Args:
        path: the path of the data file, as in manifests.
        target: the metadata for tasks.
    """
    return pickle.dumps((path, target), pickle.HIGHEST_PROTOCOL)


def take_targets(
    batches: Iterable[pa.RecordBatch], targets: MutableMapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Removes the additional rows and `TARGET_COLUMN`; collects the metadata.

    Args:
        targets: receives the metadata by path; complete once all batches are consumed.
    """
    for batch in batches:
        if TARGET_COLUMN not in batch.schema.names:
            yield batch
            continue
        packed = batch.column(TARGET_COLUMN)
        rows = batch.drop_columns([TARGET_COLUMN])
        if packed.null_count < len(packed):
            targets.update(pickle.loads(value) for value in packed.drop_null().to_pylist())
            rows = rows.filter(pc.is_null(packed))
        yield rows
