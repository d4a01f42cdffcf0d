"""Writes and reads partition statistics files (spec: Partition Statistics File)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.data_writer import open_data_writer
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.io.fileio import FileIO
from icebergds.operations.metadata_tables.metadata_rows import Row, row_batches
from icebergds.operations.metadata_tables.schemas import refuse_unknown_values
from icebergds.operations.statistics.partition_totals import PartitionStats
from icebergds.operations.write.table_settings import data_file_format
from icebergds.scan.projection import unified_partition_type
from icebergds.spec.manifest import FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.statistics import PartitionStatisticsFile
from icebergds.spec.types import INT, LONG, NestedField, StructType

_DELETE_COUNTS = (
    NestedField(6, "position_delete_record_count", LONG),
    NestedField(7, "position_delete_file_count", INT),
    NestedField(8, "equality_delete_record_count", LONG),
    NestedField(9, "equality_delete_file_count", INT),
)
_TOTAL_AND_UPDATE = (
    NestedField(10, "total_record_count", LONG),
    NestedField(11, "last_updated_at", LONG),
    NestedField(12, "last_updated_snapshot_id", LONG),
)
_DV_COUNT = NestedField(13, "dv_count", INT, required=True, initial_default=0, write_default=0)
# Java, too, leaves it out, and would add up nothing but this if it went on from this file.
_NO_TOTAL = None


def partition_stats_type(metadata: TableMetadata) -> StructType:
    """The type of the field `partition`: no fields if the table has never been partitioned.

    Raises:
        InvalidMetadataError: partition fields of different types share an id.
        UnsupportedFeatureError: the values of a partition field have no type that is known.
    """
    partition = unified_partition_type(metadata, active_only=True)
    refuse_unknown_values(metadata, partition)
    fields = partition.fields
    return StructType(tuple(sorted(fields, key=lambda field: field.field_id)))


def write_partition_stats(
    io: FileIO, metadata: TableMetadata, snapshot_id: int, partitions: Iterable[PartitionStats]
) -> PartitionStatisticsFile:
    """Writes a file into the table's metadata directory, in its default format unless that is ORC.

    Raises:
        InvalidOptionError: the table property of the format is wrong.
        StorageError: the file cannot be written.
    """
    schema = _schema(metadata)
    file_format = data_file_format(metadata.properties)
    if file_format is FileFormat.ORC:
        # Java does not read statistics from ORC files, but from Parquet files in any table.
        file_format = FileFormat.PARQUET
    name = f"partition-stats-{snapshot_id}-{uuid.uuid4()}.{file_format}"
    location = f"{metadata.metadata_directory}/{name}"
    has_vectors = metadata.format_version >= 3
    properties = WriteProperties.of({}, schema, SortOrder())
    writer = open_data_writer(io, location, file_format, schema, properties)
    try:
        rows = (_row(part, has_vectors) for part in partitions)
        for batch in row_batches(rows, schema, schema):
            writer.write(batch)
        written = writer.close()
    except BaseException:
        writer.abort()
        raise
    return PartitionStatisticsFile(snapshot_id, location, written.file_size_in_bytes)


def read_partition_stats(
    io: FileIO, metadata: TableMetadata, file: PartitionStatisticsFile
) -> Iterator[PartitionStats]:
    """The statistics of each partition, with the fields of all current partition specs.

    Raises:
        MissingFileError: the file does not exist.
        CorruptFileError: it is damaged, or not in a format of data files.
    """
    # Files of version 2 lack the deletion vectors, and columns that readers may find null.
    fields = (*_fields(metadata), _DV_COUNT)
    schema = Schema(tuple(replace(field, required=False) for field in fields))
    location = file.statistics_path
    partition_type = partition_stats_type(metadata)
    with open_data_file(io, location, _format_of(location), table_schema=schema) as reader:
        for read in reader.batches(ReadRequest(schema)):
            yield from _partitions(read.batch, partition_type)


def _fields(metadata: TableMetadata) -> tuple[NestedField, ...]:
    """The fields in Java's order, without that of deletion vectors."""
    counts = (
        NestedField(1, "partition", partition_stats_type(metadata), required=True),
        NestedField(2, "spec_id", INT, required=True),
        NestedField(3, "data_record_count", LONG, required=True),
        NestedField(4, "data_file_count", INT, required=True),
        NestedField(5, "total_data_file_size_in_bytes", LONG, required=True),
    )
    has_vectors = metadata.format_version >= 3
    deletes = (replace(field, required=has_vectors) for field in _DELETE_COUNTS)
    return (*counts, *deletes, *_TOTAL_AND_UPDATE)


def _schema(metadata: TableMetadata) -> Schema:
    vectors = (_DV_COUNT,) if metadata.format_version >= 3 else ()
    return Schema((*_fields(metadata), *vectors))


def _row(part: PartitionStats, has_vectors: bool) -> Row:
    *sums, vectors = part.sums.tolist()
    is_known = part.updated_ms >= 0
    update = (part.updated_ms, part.snapshot_id) if is_known else (None, None)
    row = (part.partition, part.spec_id, *sums, _NO_TOTAL, *update)
    return (*row, vectors) if has_vectors else row


def _partitions(batch: pa.RecordBatch, partition_type: StructType) -> Iterator[PartitionStats]:
    partition, spec_ids, *counts, _, updated, snapshot_ids, vectors = batch.columns
    tuples = partition_tuples(partition_type, partition.flatten(), batch.num_rows)
    sums = np.stack(
        [np.asarray(column.fill_null(0).cast(pa.int64())) for column in (*counts, vectors)], axis=1
    )
    for at, (spec_id, updated_ms, snapshot_id) in enumerate(
        zip(*(column.to_pylist() for column in (spec_ids, updated, snapshot_ids)), strict=True)
    ):
        known_ms = -1 if updated_ms is None else updated_ms
        yield PartitionStats(tuples[at], spec_id, sums[at], known_ms, snapshot_id)


def _format_of(location: str) -> FileFormat:
    name = location.rpartition(".")[2]
    if name not in list(FileFormat):
        raise CorruptFileError(
            f"partition statistics file {location}: its name ends in none of the formats "
            f"{', '.join(FileFormat)}"
        )
    return FileFormat(name)
