"""Assembles the output columns of a file: stored columns and generated metadata columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.types import repeat, schema_to_arrow
from icebergds.formats.data_reader import PositionedBatch
from icebergds.formats.file_tokens import file_token
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, TaskChange
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETED,
    FILE_PATH,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION,
    POS,
    ROW_ID,
    SPARK_CHANGE_TYPE,
    SPEC_ID,
)
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import LONG, UNKNOWN, NestedField, StructType

_Mask = npt.NDArray[np.bool_]
_Make = Callable[[PositionedBatch, _Mask | None], pa.Array]


@dataclass(frozen=True, slots=True)
class OutputColumns:
    """Assembles the output columns of one file.

    `stored_fields` must be read from the file, as the first columns of each batch.
    """

    stored_fields: tuple[NestedField, ...]
    _schema: pa.Schema
    _makers: tuple[_Make, ...]

    @staticmethod
    def of(plan: ReadPlan, task: FileScanTask) -> OutputColumns:
        """The output columns of a scan for one of its files."""
        stored: list[NestedField] = []
        makers: list[_Make] = []
        for column in plan.columns.fields:
            generated = _generated(column, plan, task)
            if generated is not None:
                makers.append(generated)
                continue
            makers.append(_stored(len(stored), column, task))
            stored.append(column)
        return OutputColumns(tuple(stored), schema_to_arrow(plan.columns), tuple(makers))

    def assemble(self, read: PositionedBatch, deleted: _Mask | None) -> pa.RecordBatch:
        """The output columns of a batch; all rows, including deleted ones."""
        arrays = [make(read, deleted) for make in self._makers]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def identity_constants(spec: PartitionSpec, partition: tuple[Any, ...]) -> dict[int, Any]:
    """Values of a file's identity partition columns, by source field id.

    Used for columns that the file lacks (spec: Column Projection).
    """
    return {
        field.source_id: value
        for field, value in zip(spec.fields, partition, strict=False)
        if isinstance(field.transform, IdentityTransform)
    }


def _generated(column: NestedField, plan: ReadPlan, task: FileScanTask) -> _Make | None:
    """The maker of a generated column; None for a stored column."""
    match column.field_id:
        case FILE_PATH.field_id:
            name = file_token(task.file_path) if plan.for_changes else task.file_path
            return _constant(column, name)
        case POS.field_id:
            return lambda read, _: pa.array(_positions(read))
        case SPEC_ID.field_id:
            return _constant(column, task.spec_id)
        case DELETED.field_id:
            return lambda read, deleted: pa.array(
                np.zeros(read.num_rows, np.bool_) if deleted is None else deleted
            )
        case PARTITION.field_id:
            return _constant(column, _partition_value(column, plan, task))
    return None if task.change is None else _of_change(column, task.change)


def _of_change(column: NestedField, change: TaskChange) -> _Make | None:
    match column.field_id:
        case CHANGE_TYPE.field_id:
            return _constant(column, change.change_type.value)
        case CHANGE_ORDINAL.field_id:
            return _constant(column, change.commit.ordinal)
        case COMMIT_SNAPSHOT_ID.field_id:
            return _constant(column, change.commit.snapshot_id)
        case SPARK_CHANGE_TYPE.field_id:
            return _constant(column, change.change_type.spark_name)
        case COMMIT_VERSION.field_id:
            return _constant(column, change.commit.version)
        case COMMIT_TIMESTAMP.field_id:
            return _constant(column, 1000 * change.commit.timestamp_ms)
        case _:
            return None


def _stored(index: int, column: NestedField, task: FileScanTask) -> _Make:
    match column.field_id:
        case ROW_ID.field_id:
            return _row_id(index, task.first_row_id)
        case LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            return _last_updated(index, task)
        case _:
            return lambda read, _: read.batch.column(index)


def _constant(column: NestedField, value: Any) -> _Make:
    return lambda read, _: repeat(column.field_type, value, read.num_rows)


def _partition_value(column: NestedField, plan: ReadPlan, task: FileScanTask) -> tuple[Any, ...]:
    """A file's partition as a value of the unified partition type.

    Fields of other specs are null, and so are fields of unknown transforms.
    """
    assert isinstance(column.field_type, StructType), "_partition is a struct"
    spec = plan.specs[task.spec_id]
    values = {
        field.field_id: value for field, value in zip(spec.fields, task.partition, strict=False)
    }
    return tuple(
        None if field.field_type == UNKNOWN else values.get(field.field_id)
        for field in column.field_type.fields
    )


def _positions(read: PositionedBatch) -> npt.NDArray[np.int64]:
    return np.arange(read.first_position, read.first_position + read.num_rows, dtype=np.int64)


def _row_id(index: int, first_row_id: int | None) -> _Make:
    """Row Lineage: null becomes first row id plus position; all null without a first row id."""
    return lambda read, _: row_ids_of(read, index, first_row_id)


def row_ids_of(read: PositionedBatch, index: int, first_row_id: int | None) -> pa.Int64Array:
    """The ids of rows (spec: Row Lineage): null becomes first row id plus position.

    Args:
        index: of the stored column.
        first_row_id: of the data file; None if its rows have no ids.
    """
    if first_row_id is None:
        return pa.nulls(read.num_rows, pa.int64())
    return pc.coalesce(read.batch.column(index), pa.array(_positions(read) + first_row_id))


def _last_updated(index: int, task: FileScanTask) -> _Make:
    """Row Lineage: null becomes the data sequence number; all null without a first row id."""
    if task.first_row_id is None:
        return lambda read, _: pa.nulls(read.num_rows, pa.int64())
    return lambda read, _: pc.coalesce(
        read.batch.column(index), repeat(LONG, task.data_sequence_number, read.num_rows)
    )
