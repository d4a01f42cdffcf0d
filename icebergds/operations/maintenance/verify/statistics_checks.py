"""Checks the statistics files of a table: that they are there, whole, and of a kept snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from icebergds.commit.repair_files import file_counts
from icebergds.errors import IcebergError, MissingFileError, StorageError
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.puffin import read_puffin_footer
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.verify.findings import (
    REPAIR,
    Depth,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.operations.maintenance.verify.walk import Walk
from icebergds.spec.manifest import FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.table_updates import (
    RemovePartitionStatistics,
    RemoveStatistics,
    TableUpdate,
)

# Partition Statistics File: data_record_count and data_file_count.
_COUNTS = Schema((NestedField(3, "rows", LONG), NestedField(4, "files", LONG)))
_PLANNED = "no row depends on it; engines that plan by statistics fail or plan badly"


def check_statistics(
    io: FileIO, metadata: TableMetadata, walk: Walk, depth: Depth
) -> Iterator[tuple[Finding, TableUpdate]]:
    """What is wrong with statistics files, and the update that drops each.

    Raises:
        StorageError: the storage fails.
    """
    for file in metadata.statistics:
        for found in _told(lambda file=file: _statistics(io, metadata, file, depth), file):
            yield found, RemoveStatistics(file.snapshot_id)
    for each in metadata.partition_statistics:
        for found in _told(lambda each=each: _partitions(io, metadata, walk, each, depth), each):
            yield found, RemovePartitionStatistics(each.snapshot_id)


def _told(check: object, file: StatisticsFile | PartitionStatisticsFile) -> Iterator[Finding]:
    try:
        yield from check()  # type: ignore[operator]
    except StorageError:
        raise
    except MissingFileError:
        yield _finding(file, None, "a file", "no file")
    except IcebergError as error:
        yield _finding(file, None, None, str(error))


def _common(
    io: FileIO, metadata: TableMetadata, file: StatisticsFile | PartitionStatisticsFile
) -> Iterator[Finding]:
    size = io.size(file.statistics_path)
    if size != file.file_size_in_bytes:
        yield _finding(
            file, "file-size-in-bytes", f"{file.file_size_in_bytes:,} bytes", f"{size:,} bytes"
        )
    if file.snapshot_id not in metadata.snapshots_by_id:
        yield _finding(file, "snapshot-id", str(file.snapshot_id), "no such snapshot")


def _statistics(
    io: FileIO, metadata: TableMetadata, file: StatisticsFile, depth: Depth
) -> Iterator[Finding]:
    yield from _common(io, metadata, file)
    if not depth.reads_footers:
        return
    footer = read_puffin_footer(io, file.statistics_path)
    stored = [(blob.type, blob.fields) for blob in footer.blobs]
    for blob in file.blob_metadata:
        if (blob.blob_type, blob.fields) not in stored:
            fields = ", ".join(map(str, blob.fields))
            yield _finding(
                file, "blob-metadata", f"{blob.blob_type} of columns {fields}", "no such blob"
            )


def _partitions(
    io: FileIO,
    metadata: TableMetadata,
    walk: Walk,
    file: PartitionStatisticsFile,
    depth: Depth,
) -> Iterator[Finding]:
    yield from _common(io, metadata, file)
    if not depth.reads_footers or not walk.is_whole(file.snapshot_id):
        return
    rows = files = 0
    location = file.statistics_path
    file_format = FileFormat(location.rpartition(".")[2].lower())
    with open_data_file(io, location, file_format, table_schema=_COUNTS) as reader:
        for read in reader.batches(ReadRequest(_COUNTS)):
            rows += pc.sum(read.batch.column(0)).as_py() or 0
            files += pc.sum(read.batch.column(1)).as_py() or 0
    live = file_counts(m.live() for m in walk.of_snapshot(file.snapshot_id))
    for name, recorded, found in (
        ("data_record_count", rows, live["records"]),
        ("data_file_count", files, live["data-files"]),
    ):
        if recorded != found:
            yield _finding(file, name, f"{recorded:,} in all", f"{found:,} in manifests")


def _finding(
    file: StatisticsFile | PartitionStatisticsFile,
    field: str | None,
    recorded: str | None,
    found: str | None,
) -> Finding:
    return Finding(
        FindingKind.STATISTICS_FILE,
        file.statistics_path,
        field,
        recorded,
        found,
        _PLANNED,
        f"{REPAIR}, which drops the file, then compute statistics again",
        is_repairable=True,
        severity=Severity.NOTE,
    )
