"""Writes the rows of one task to data files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.write.files import FileKind, TaskAttempt, TaskFiles
from icebergds.write.locations import FileNames, LocationProvider
from icebergds.write.rows.fanout import FanoutSettings, FanoutWriter, combined
from icebergds.write.rows.matching import Matching
from icebergds.write.rows.partitioning import Partitioner, plan_partitioning
from icebergds.write.rows.rolling import NewFiles
from icebergds.write.rows.sorting import RowOrder, plan_order

# Batches are combined before they are split: many partitions would get only a few rows each.
_SPLIT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What tasks need to write the rows of one operation; created by `plan_write`.

    Attributes:
        io: the storage to write to.
        locations: chooses the locations of files.
        schema: the table's columns, as written.
        spec: the partition spec of the files.
        sort_order: the table's sort order; a file gets its id if all of its rows are sorted.
        file_format: of the files.
        target_file_size: in bytes; a file is closed soon after it has reached it.
        properties: the table's write properties.
        operation_id: unique id of the operation, part of all file names.
        fanout: how many partitions are written at the same time.
        sort: whether to sort rows before they are written, as far as memory allows.
        matching: converts incoming rows to rows of the schema.
        partitioner: splits rows by `spec`.
        order: sorts rows by `sort_order`; None if unsorted.
    """

    io: FileIO
    locations: LocationProvider
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    file_format: FileFormat
    target_file_size: int
    properties: WriteProperties
    operation_id: str
    fanout: FanoutSettings
    sort: bool
    matching: Matching
    partitioner: Partitioner
    order: RowOrder | None


def plan_write(
    matching: Matching,
    *,
    io: FileIO,
    locations: LocationProvider,
    spec: PartitionSpec,
    sort_order: SortOrder = SortOrder(),  # noqa: B008
    file_format: FileFormat = FileFormat.PARQUET,
    target_file_size: int,
    properties: WriteProperties,
    operation_id: str,
    fanout: FanoutSettings = FanoutSettings(),  # noqa: B008
    sort: bool = False,
) -> WritePlan:
    """Plans the tasks of one operation, on the driver; arguments as for `WritePlan`.

    Raises:
        UnsupportedFeatureError: the spec or the order has an unknown transform.
        InvalidMetadataError: the spec or the order does not fit the schema.
    """
    schema, table = matching.schema, matching.table
    return WritePlan(
        io=io,
        locations=locations,
        schema=schema,
        spec=spec,
        sort_order=sort_order,
        file_format=file_format,
        target_file_size=target_file_size,
        properties=properties,
        operation_id=operation_id,
        fanout=fanout,
        sort=sort,
        matching=matching,
        partitioner=plan_partitioning(spec, schema, table=table),
        order=plan_order(sort_order, schema, table=table),
    )


def write_batches(
    plan: WritePlan, batches: Iterable[pa.RecordBatch], *, partition_id: int, attempt_id: int
) -> list[DataFile]:
    """Writes the rows of one task.

    On any error, all files of the attempt are deleted and the error is re-raised.

    Args:
        plan: the operation's plan.
        batches: incoming rows, of any Arrow schema that matches the table's.
        partition_id: the task's number.
        attempt_id: unique among all attempts of the operation.

    Returns:
        The written files; none if there are no rows.

    Raises:
        InvalidDataError: a required field is null, or a value does not fit.
    """
    with start_attempt(plan, partition_id=partition_id, attempt_id=attempt_id) as attempt:
        return write_rows(plan, data_files(plan, attempt), matched(plan.matching, batches))


def start_attempt(plan: WritePlan, *, partition_id: int, attempt_id: int) -> TaskAttempt:
    """Starts a new attempt of a task, without files."""
    names = FileNames(partition_id, attempt_id, plan.operation_id)
    return TaskAttempt(plan.io, plan.locations, names, plan.schema)


def data_files(plan: WritePlan, attempt: TaskAttempt) -> TaskFiles:
    """The data files of an attempt."""
    kind = FileKind(plan.schema, plan.spec, plan.file_format, plan.properties)
    return TaskFiles(attempt, kind)


def write_rows(
    plan: WritePlan, files: NewFiles, batches: Iterable[pa.RecordBatch]
) -> list[DataFile]:
    """Writes rows of the plan's schema, each to a file of its partition.

    Args:
        plan: the operation's plan.
        files: opens the files.
        batches: rows of the Arrow schema `schema_to_arrow(plan.schema)`; additional columns after
            these are passed on to the file writers.
    """
    writer = FanoutWriter(
        files, plan.fanout, plan.target_file_size, order=plan.order, sort=plan.sort
    )
    for batch in batches if plan.partitioner.is_trivial else combined(batches, _SPLIT_BYTES):
        _write_split(plan.partitioner, writer, batch)
    return writer.close()


def _write_split(partitioner: Partitioner, writer: FanoutWriter, batch: pa.RecordBatch) -> None:
    # A separate function, so that these rows are freed before the next ones are fetched.
    for rows in partitioner.split(batch):
        writer.write(rows)


def matched(matching: Matching, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Converts incoming rows to rows of the table's schema."""
    for batch in batches:
        if batch.num_rows:
            matching = matching.fitting(batch.schema)
            yield matching.apply(batch)
