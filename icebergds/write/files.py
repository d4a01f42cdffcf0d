"""Tracks the files of one task attempt: data files, delete files and deletion vectors."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from icebergds.errors import StorageError
from icebergds.formats.data_file.write_properties import (
    PLAIN_PARQUET_CODECS,
    OrcProperties,
    ParquetProperties,
    WriteProperties,
)
from icebergds.formats.data_writer import DataFileWriter, open_data_writer
from icebergds.formats.file_tokens import marked_path
from icebergds.io.fileio import FileIO
from icebergds.io.locations import undeleted_level
from icebergds.metrics import report_task
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.write.locations import FileNames, LocationProvider

# Approximate memory of a block of an Avro file.
_AVRO_BLOCK = 64_000
_UNPARTITIONED = PartitionSpec()
_LOG = logging.getLogger(__name__)


class TaskAttempt:
    """Assigns locations to new files and tracks them, so that a failed attempt can delete them all.

    As a context manager it does so if the block fails, and reports what was written if not.

    Args:
        io: the storage to write to.
        locations: chooses the directories.
        names: the names of the attempt's files.
        table_schema: the schema that partition specs refer to.
    """

    def __init__(
        self, io: FileIO, locations: LocationProvider, names: FileNames, table_schema: Schema
    ) -> None:
        self.io = io
        self._locations = locations
        self._names = names
        self._table_schema = table_schema
        self._open: dict[str, DataFileWriter] = {}
        self._started: list[str] = []
        self._began = time.perf_counter()
        self._rows = self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.discard(error)
            return
        wrote = {"files": len(self._started), "rows": self._rows, "bytes": self._bytes}
        report_task(self.io.properties, "write", self.io.table_root, self._began, wrote)

    def new_location(
        self,
        file_format: FileFormat,
        content: FileContent,
        spec: PartitionSpec = _UNPARTITIONED,
        partition: tuple[Any, ...] = (),
        *,
        is_plain: bool = False,
    ) -> str:
        """Assigns the location of the file to write next.

        Args:
            is_plain: whether every reader of the format can read the file.
        """
        name = self._names.name(len(self._started), file_format, content)
        location = self._locations.location(name, spec, self._table_schema, partition)
        if is_plain:
            location = marked_path(location)
        self._started.append(location)
        return location

    def opened(self, writer: DataFileWriter) -> None:
        """Records that a file is open."""
        self._open[writer.location] = writer

    def closed(self, writer: DataFileWriter) -> DataFile:
        """Completes an open file."""
        written: DataFile = writer.close()
        del self._open[writer.location]
        self.wrote(written.record_count, written.file_size_in_bytes)
        return written

    def wrote(self, rows: int, nbytes: int) -> None:
        """Counts the rows and the size of a complete file."""
        self._rows += rows
        self._bytes += nbytes

    def discard(self, error: BaseException) -> None:
        """Deletes all files of the attempt, as far as possible; never raises.

        Args:
            error: why the attempt failed; if it is a StorageError, it also reports these files.
        """
        for writer in self._open.values():
            with suppress(Exception):
                writer.abort()
        self._open.clear()
        outcome = "the files of this task were deleted"
        try:
            self.io.delete_all(self._started)
        except Exception as failure:
            outcome = f"of the files of this task some were left behind: {failure}"
            level = undeleted_level(next(iter(self._started), ""))
            _LOG.log(level, "files of a failed task were left behind: %s", failure)
        if isinstance(error, StorageError) and self._started:
            error.add_outcome(outcome)


@dataclass(frozen=True, slots=True)
class FileKind:
    """The common properties of files of one kind.

    Attributes:
        schema: the schema of their rows.
        spec: their partition spec.
        file_format: their format.
        properties: the table's write properties.
        content: their content type.
        equality_ids: the key fields, for equality delete files.
    """

    schema: Schema
    spec: PartitionSpec
    file_format: FileFormat
    properties: WriteProperties
    content: FileContent = FileContent.DATA
    equality_ids: tuple[int, ...] = ()


class TaskFiles:
    """Opens and closes an attempt's files of one kind."""

    def __init__(self, attempt: TaskAttempt, kind: FileKind) -> None:
        self._attempt = attempt
        self._kind = kind

    @property
    def row_group_size(self) -> int:
        """How many bytes of rows a file buffers in memory before it writes them."""
        properties, content = self._kind.properties, self._kind.content
        match self._kind.file_format:
            case FileFormat.PARQUET:
                return properties.parquet_for(content).row_group_size
            case FileFormat.ORC:
                return properties.orc_for(content).stripe_size
            case _:
                return _AVRO_BLOCK

    def open(self, partition: tuple[Any, ...], memory: int) -> DataFileWriter:
        """Opens a file in a partition, which buffers at most `memory` bytes of rows."""
        kind = self._kind
        is_plain = (
            kind.properties.key_length is None
            and kind.file_format is FileFormat.PARQUET
            and kind.properties.parquet_for(kind.content).codec in PLAIN_PARQUET_CODECS
        )
        writer = open_data_writer(
            self._attempt.io,
            self._attempt.new_location(
                kind.file_format, kind.content, kind.spec, partition, is_plain=is_plain
            ),
            kind.file_format,
            kind.schema,
            _limited(kind.properties, memory),
            content=kind.content,
        )
        self._attempt.opened(writer)
        return writer

    def close(
        self, writer: DataFileWriter, partition: tuple[Any, ...], sort_order_id: int
    ) -> DataFile:
        """Closes a file; returns its metadata for a manifest."""
        written = self._attempt.closed(writer)
        is_data = self._kind.content is FileContent.DATA
        return replace(
            written,
            spec_id=self._kind.spec.spec_id,
            partition=partition,
            equality_ids=self._kind.equality_ids,
            # Sort orders of the table do not apply to delete files.
            sort_order_id=sort_order_id if is_data else None,
        )


def _limited(properties: WriteProperties, memory: int) -> WriteProperties:
    """Limits the sizes of row groups and stripes to `memory` bytes."""

    def parquet(settings: ParquetProperties) -> ParquetProperties:
        return replace(settings, row_group_size=min(settings.row_group_size, memory))

    def orc(settings: OrcProperties) -> OrcProperties:
        return replace(settings, stripe_size=min(settings.stripe_size, memory))

    return replace(
        properties,
        parquet=parquet(properties.parquet),
        orc=orc(properties.orc),
        delete_parquet=parquet(properties.delete_parquet),
        delete_orc=orc(properties.delete_orc),
    )
