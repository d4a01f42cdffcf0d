"""Tells from a footer how a Parquet file stores its columns; remembers it for each file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.parquet as pq

from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.file_schema import FileColumn, columns_of
from icebergds.formats.parquet.footer import read_footer
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO

# Of these, every reader of Parquet knows all.
_COMMON = frozenset(
    {
        *("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "ZSTD"),
        *("PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"),
        *("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"),
    }
)
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_TIMES = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_MOST_KEPT = 1 << 14
_MOST_DISTINCT = 256


@dataclass(frozen=True, slots=True)
class StoredLeaf:
    """How a leaf column is stored.

    Attributes:
        stored_as: its physical and its logical type.
        length: bytes of a value of fixed length; 0 for other types.
        definition: its highest definition level.
        path: its names in the schema, with those of repeated groups, joined by dots.
        rare: codecs and encodings of its values that not every reader knows.
    """

    stored_as: str
    length: int
    definition: int
    path: str
    rare: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredForm:
    """How a file stores its columns; many files of a table have an equal one.

    Attributes:
        leaves: of all columns, in the file's order.
        has_old_times: whether Spark takes dates and times for those of the Julian calendar.
    """

    columns: tuple[FileColumn, ...]
    leaves: tuple[StoredLeaf, ...]
    has_old_times: bool


def stored_form(io: FileIO, location: str, size: int) -> StoredForm:
    """How a file stores its columns; its footer is read if that is not remembered.

    Args:
        size: of the file in bytes, as manifests say.

    Raises:
        CorruptFileError, MissingFileError, StorageError: the footer cannot be read.
        UnsupportedFeatureError: the file is encrypted.
    """
    key = io.locate(location), size, hash(frozenset(io.all_properties.items()))
    with _lock:
        if key in _forms:
            _forms.move_to_end(key)
            return _forms[key]
    with (
        storage_failures("reading", location),
        io.open(location, size) as handle,
        decoding(location, "Parquet"),
    ):
        form = form_of(read_footer(handle, location))
    with _lock:
        form = _distinct.setdefault(form, form)
        _forms[key] = form
        if len(_forms) > _MOST_KEPT:
            _forms.popitem(last=False)
        if len(_distinct) > _MOST_DISTINCT:
            _distinct.clear()
    return form


# Files that writers make of one schema share one form.
_forms: OrderedDict[tuple[str, int, int], StoredForm] = OrderedDict()
_distinct: dict[StoredForm, StoredForm] = {}
_lock = threading.Lock()


def form_of(footer: pq.FileMetaData) -> StoredForm:
    """What a footer says of how columns are stored."""
    metadata = footer.metadata or {}
    version = metadata.get(_SPARK_VERSION)
    is_old = version is not None and version < b"3"
    return StoredForm(
        columns_of(footer.schema.to_arrow_schema()),
        tuple(_leaves(footer)),
        is_old or any(key in metadata for key in _LEGACY_TIMES),
    )


def _leaves(footer: pq.FileMetaData) -> Iterator[StoredLeaf]:
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        chunks = [group.column(index) for group in groups]
        used = {name for chunk in chunks for name in (chunk.compression, *chunk.encodings)}
        yield StoredLeaf(
            f"{column.physical_type} {column.logical_type}",
            column.length,
            column.max_definition_level,
            column.path,
            tuple(sorted(used - _COMMON)),
        )
