"""Rewrites delete files whose content has paths, for the copy of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_writer import open_data_writer
from icebergds.formats.deletes.position_deletes import position_batches
from icebergds.formats.puffin import (
    NewBlob,
    encode_puffin,
    read_puffin_blob,
    read_puffin_footer,
)
from icebergds.io.fileio import FileIO
from icebergds.operations.imports.moved_paths import MovedPaths
from icebergds.spec.manifest import DataFile, FileContent
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder

_SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))
_ARROW_SCHEMA = schema_to_arrow(_SCHEMA)
# Puffin: a property of blobs of the type deletion-vector-v1.
_REFERENCED = "referenced-data-file"


@dataclass(frozen=True, slots=True)
class MovedDeletes:
    """A delete file as it was written for the copy.

    Attributes:
        written: the file, at its staged location; of a Puffin file, only its size counts.
        offsets: the new offsets and lengths of the blobs of a Puffin file, by their old ones.
    """

    written: DataFile
    offsets: Mapping[int, tuple[int, int]]

    def entry(self, file: DataFile, paths: MovedPaths) -> DataFile:
        """The manifest entry of the file in the copy, made from its entry in the table."""
        referenced = file.referenced_data_file
        moved = replace(
            file,
            file_path=paths.moved(file.file_path),
            file_size_in_bytes=self.written.file_size_in_bytes,
            referenced_data_file=None if referenced is None else paths.moved(referenced),
        )
        if file.is_deletion_vector:
            assert file.content_offset is not None
            offset, length = self.offsets[file.content_offset]
            return replace(moved, content_offset=offset, content_size_in_bytes=length)
        return replace(
            moved,
            record_count=self.written.record_count,
            column_sizes=self.written.column_sizes,
            value_counts=self.written.value_counts,
            null_value_counts=self.written.null_value_counts,
            nan_value_counts=self.written.nan_value_counts,
            lower_bounds=self.written.lower_bounds,
            upper_bounds=self.written.upper_bounds,
            split_offsets=self.written.split_offsets,
        )


def write_moved_deletes(
    io: FileIO, file: DataFile, staged: str, paths: MovedPaths, properties: Mapping[str, str]
) -> MovedDeletes:
    """Writes a position delete file, or all deletion vectors of a Puffin file, with other paths.

    Args:
        staged: where it is written.
        properties: the properties of the table.

    Raises:
        InvalidOptionError: it refers to a data file that does not have the source prefix.
        CorruptFileError, MissingFileError, StorageError: it cannot be read.
    """
    if file.is_deletion_vector:
        return _puffin(io, file, staged, paths)
    writer = open_data_writer(
        io,
        staged,
        file.file_format,
        _SCHEMA,
        WriteProperties.of(properties, _SCHEMA, SortOrder()),
        content=FileContent.POSITION_DELETES,
    )
    try:
        for batch in position_batches(io, file.file_path, file.file_format):
            # The common prefix does not matter for the order of paths.
            moved = pa.array(list(map(paths.moved, batch.paths)), pa.string())
            columns = [moved.take(pa.array(batch.codes)), pa.array(batch.positions, pa.int64())]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA))
        return MovedDeletes(writer.close(), {})
    except BaseException:
        writer.abort()
        raise


def _puffin(io: FileIO, file: DataFile, staged: str, paths: MovedPaths) -> MovedDeletes:
    footer = read_puffin_footer(io, file.file_path)
    blobs = []
    for blob in footer.blobs:
        properties = dict(blob.properties)
        if _REFERENCED in properties:
            properties[_REFERENCED] = paths.moved(properties[_REFERENCED])
        data = read_puffin_blob(io, file.file_path, blob)
        blobs.append(
            NewBlob(
                blob.type, blob.fields, data, blob.snapshot_id, blob.sequence_number, properties
            )
        )
    encoded, placed = encode_puffin(blobs, footer.properties)
    io.write(staged, encoded)
    return MovedDeletes(
        replace(file, file_path=staged, file_size_in_bytes=len(encoded)),
        {
            old.offset: (new.offset, new.length)
            for old, new in zip(footer.blobs, placed, strict=True)
        },
    )
