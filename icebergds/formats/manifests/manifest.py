"""Reads and writes manifests as `ManifestEntry` objects, and converts these to columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import to_array, to_arrow
from icebergds.formats.manifests.columns import STATISTICS, EntryColumns, Int64s
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.writer import INHERITED, write_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import StructType

__all__ = ["INHERITED", "read_manifest", "write_manifest"]

_ENTRIES_AT_A_TIME = 4096


def read_manifest(
    io: FileIO,
    manifest: ManifestFile,
    specs: Mapping[int, PartitionSpec] | None = None,
    schema: Schema | None = None,
    *,
    history: Iterable[Schema] = (),
    live_only: bool = False,
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> list[ManifestEntry]:
    """Reads every entry of a manifest, with all statistics; for many entries, read columns instead.

    Arguments and errors are those of `read_manifest_columns`.
    """
    return read_manifest_columns(
        io,
        manifest,
        specs,
        schema,
        history=history,
        live_only=live_only,
        wrong_counts=wrong_counts,
    ).entries()


def write_manifest(
    entries: Iterable[ManifestEntry],
    spec: PartitionSpec,
    schema: Schema,
    *,
    format_version: int,
    content: ManifestContent = ManifestContent.DATA,
    inherit: Collection[str] = INHERITED,
    history: Iterable[Schema] = (),
    codec: str = "deflate",
    level: int | None = None,
) -> bytes:
    """Encodes a manifest of format version 1, 2 or 3.

    Args:
        entries: all with the partition spec `spec`.
        schema: the table's current schema; columns it lacks are looked up in `history`.
        inherit: fields that are null for added files, which inherit them: those of `INHERITED`, or
            `snapshot_id`. Other entries have all of them.
        codec, level: as in `write.manifest.compression-codec` and `-level`, or Avro's names.

    Raises:
        InvalidDataError: a file cannot be listed in such a manifest.
        InvalidOptionError: the codec or its level is not supported.
        UnsupportedFeatureError: manifests cannot store the type of a partition value.
    """
    partition = partition_type(spec, schema, history)
    return write_manifest_columns(
        (entry_columns(part, spec.spec_id, partition) for part in _parts(entries)),
        spec,
        schema,
        partition=partition,
        format_version=format_version,
        content=content,
        inherit=inherit,
        codec=codec,
        level=level,
    )


def _parts(entries: Iterable[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    """Splits the entries into parts that take little memory, however wide the table is."""
    remaining = iter(entries)
    while part := list(islice(remaining, _ENTRIES_AT_A_TIME)):
        yield part


def entry_columns(
    entries: Sequence[ManifestEntry], spec_id: int, partition: StructType
) -> EntryColumns:
    """Converts entries to columns, with all statistics. Empty maps and lists become null.

    Args:
        partition: the type of the partition values of all entries.

    Raises:
        InvalidDataError: a value does not have its field's type.
    """
    files = [entry.data_file for entry in entries]
    for file in files:
        if len(file.partition) != len(partition.fields):
            raise InvalidDataError(
                f"{file.file_path} has {len(file.partition)} partition values, but its spec has "
                f"{len(partition.fields)} fields"
            )
    return EntryColumns(
        spec_id=spec_id,
        partition_type=partition,
        status=_numbers(entries, "status"),
        snapshot_id=_numbers(entries, "snapshot_id"),
        data_sequence_number=_numbers(entries, "data_sequence_number"),
        file_sequence_number=_numbers(entries, "file_sequence_number"),
        content=_numbers(files, "content"),
        file_path=_values(files, "file_path", pa.string()),
        file_format=_values(files, "file_format", pa.string()),
        partition=_partition(files, partition),
        record_count=_numbers(files, "record_count"),
        file_size_in_bytes=_numbers(files, "file_size_in_bytes"),
        key_metadata=_values(files, "key_metadata", pa.binary()),
        split_offsets=_lists(files, "split_offsets"),
        equality_ids=_lists(files, "equality_ids"),
        sort_order_id=_values(files, "sort_order_id", pa.int64()),
        first_row_id=_values(files, "first_row_id", pa.int64()),
        referenced_data_file=_values(files, "referenced_data_file", pa.string()),
        content_offset=_values(files, "content_offset", pa.int64()),
        content_size_in_bytes=_values(files, "content_size_in_bytes", pa.int64()),
        stats={},
        all_stats={name: _maps(files, name) for name in STATISTICS},
    )


def _partition(files: Sequence[DataFile], partition: StructType) -> tuple[pa.Array, ...]:
    columns = []
    for at, field in enumerate(partition.fields):
        values = [file.partition[at] for file in files]
        with _refusing(f"partition field {field.name!r}", field.field_type):
            kind = to_arrow(field.field_type)
            if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
                _check_whole(values)
            columns.append(to_array(field.field_type, values))
    return tuple(columns)


def _numbers(owners: Iterable[Any], name: str) -> Int64s:
    column = _values(owners, name, pa.int64())
    if column.null_count:
        raise InvalidDataError(f"an entry has no {name}")
    numbers: Int64s = column.to_numpy()
    return numbers


def _values(owners: Iterable[Any], name: str, kind: pa.DataType) -> pa.Array:
    return _array(name, list(map(attrgetter(name), owners)), kind)


def _lists(files: Iterable[DataFile], name: str) -> pa.ListArray:
    lists: list[Sequence[int]] = list(map(attrgetter(name), files))
    numbers = _array(name, list(chain.from_iterable(lists)), pa.int64())
    return pa.ListArray.from_arrays(_offsets(lists), numbers)


def _maps(files: Iterable[DataFile], name: str) -> pa.MapArray:
    maps: list[Mapping[int, Any]] = list(map(attrgetter(name), files))
    keys = _array(name, list(chain.from_iterable(maps)), pa.int64())
    values = list(chain.from_iterable([values.values() for values in maps]))
    items = _array(name, values, pa.binary() if name.endswith("bounds") else pa.int64())
    return pa.MapArray.from_arrays(_offsets(maps), keys, items)


def _offsets(collections: Sequence[Collection[Any]]) -> pa.Int32Array:
    """The offsets of collections; empty collections become null."""
    lengths = np.fromiter(map(len, collections), np.int64, len(collections))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return pa.array(offsets, pa.int32(), mask=np.append(lengths == 0, False))


def _array(name: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    with _refusing(name, kind):
        return _check_whole(values).cast(kind) if kind == pa.int64() else pa.array(values, kind)


def _check_whole(values: Sequence[Any]) -> pa.Array:
    """The values as an array of the type that Arrow infers, which must be an integer type.

    If Arrow is told to create integers, it silently drops fractions.
    """
    found = pa.array(values)
    if not (pa.types.is_integer(found.type) or pa.types.is_null(found.type)):
        raise ValueError(f"values of type {found.type} are not whole numbers")
    return found


@contextmanager
def _refusing(name: str, kind: object) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InvalidDataError(f"{name}: a value is not of type {kind}: {error}") from error
