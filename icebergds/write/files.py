"""The data files of one attempt of one task."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from icebergds.formats.data_writer import DataFileWriter, open_data_writer
from icebergds.formats.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.write.locations import FileNames, LocationProvider

# About what a block of an Avro file takes in memory.
_AVRO_BLOCK = 64_000


class TaskFiles:
    """Opens new files and remembers them all, so that a failed attempt leaves none behind.

    Args:
        io: where files are written.
        locations: decides the directories.
        names: of the attempt's files.
        schema: of the rows.
        spec: of the files.
        properties: how they are written.
    """

    def __init__(
        self,
        io: FileIO,
        locations: LocationProvider,
        names: FileNames,
        schema: Schema,
        spec: PartitionSpec,
        properties: WriteProperties,
    ) -> None:
        self._io = io
        self._locations = locations
        self._names = names
        self._schema = schema
        self._spec = spec
        self._properties = properties
        self._open: dict[str, DataFileWriter] = {}
        self._started: list[str] = []

    @property
    def row_group_size(self) -> int:
        """How many bytes of rows a file gathers in memory before it writes them."""
        match self._names.file_format:
            case FileFormat.PARQUET:
                return self._properties.parquet.row_group_size
            case FileFormat.ORC:
                return self._properties.orc.stripe_size
            case _:
                return _AVRO_BLOCK

    def open(self, partition: tuple[Any, ...], memory: int) -> DataFileWriter:
        """A new file in a partition, which holds rows of at most so many bytes in memory."""
        name = self._names.name(len(self._started))
        location = self._locations.location(name, self._spec, self._schema, partition)
        self._started.append(location)
        writer = open_data_writer(
            self._io,
            location,
            self._names.file_format,
            self._schema,
            _within(self._properties, memory),
        )
        self._open[location] = writer
        return writer

    def close(
        self, writer: DataFileWriter, partition: tuple[Any, ...], sort_order_id: int
    ) -> DataFile:
        """Ends a file; what a manifest says of it."""
        written: DataFile = writer.close()
        del self._open[writer.location]
        return replace(
            written,
            spec_id=self._spec.spec_id,
            partition=partition,
            sort_order_id=sort_order_id,
        )

    def discard(self) -> None:
        """Deletes every file of the attempt as far as that is possible; never raises."""
        for writer in self._open.values():
            with suppress(Exception):
                writer.abort()
        self._open.clear()
        with suppress(Exception):
            self._io.delete_all(self._started)


def _within(properties: WriteProperties, memory: int) -> WriteProperties:
    """Row groups and stripes that are gathered in no more memory than that."""
    parquet, orc = properties.parquet, properties.orc
    return replace(
        properties,
        parquet=replace(parquet, row_group_size=min(parquet.row_group_size, memory)),
        orc=replace(orc, stripe_size=min(orc.stripe_size, memory)),
    )
