"""Holds the entries of a manifest as columns, and converts the remaining ones to objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.nodes import Expr
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from icebergds.spec.types import StructType

Int64s = npt.NDArray[np.int64]
_Value = TypeVar("_Value")

STATISTICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
"""Names of the statistics of `DataFile`, in its field order."""

_STATUSES = {status.value: status for status in ManifestEntryStatus}
_CONTENTS = {content.value: content for content in FileContent}
_FORMATS = {file_format.value: file_format for file_format in FileFormat}


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one table column for each entry: int64 and binary, null if unknown."""

    value_count: pa.Array
    null_value_count: pa.Array
    nan_value_count: pa.Array
    lower_bound: pa.Array
    upper_bound: pa.Array

    def columns(self) -> tuple[pa.Array, ...]:
        """All of them in the order of `STATISTICS`, which also has the sizes."""
        return (
            self.value_count,
            self.null_value_count,
            self.nan_value_count,
            self.lower_bound,
            self.upper_bound,
        )


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """The entries of a manifest, one column per field; inherited values are filled in.

    Numbers that every entry has are numpy arrays of int64, all other columns are Arrow arrays.

    Args:
        spec_id: partition spec of all entries.
        partition_type: type of the partition values. `partition` has one column per field of the
            spec, of the Arrow type of `arrow.types.to_arrow`.
        status, content: values of `ManifestEntryStatus` and `FileContent`.
        file_format: lower-case names.
        split_offsets, equality_ids: lists of int64.
        stats: statistics by column id, for the requested columns.
        all_stats: maps by column id under the names of `DataFile`'s statistics, if those of all
            columns were requested.
        written_with: the table's schema when the manifest was written, as JSON; None if it is not
            known.
    """

    spec_id: int
    partition_type: StructType
    status: Int64s
    snapshot_id: Int64s
    data_sequence_number: Int64s
    file_sequence_number: Int64s
    content: Int64s
    file_path: pa.StringArray
    file_format: pa.StringArray
    partition: tuple[pa.Array, ...]
    record_count: Int64s
    file_size_in_bytes: Int64s
    key_metadata: pa.BinaryArray
    split_offsets: pa.ListArray
    equality_ids: pa.ListArray
    sort_order_id: pa.Int64Array
    first_row_id: pa.Int64Array
    referenced_data_file: pa.StringArray
    content_offset: pa.Int64Array
    content_size_in_bytes: pa.Int64Array
    stats: Mapping[int, ColumnStats]
    all_stats: Mapping[str, pa.MapArray]
    written_with: bytes | None = None

    def __len__(self) -> int:
        return len(self.status)

    @property
    def is_vector(self) -> npt.NDArray[np.bool_]:
        """Which entries are in Puffin files, as deletion vectors are."""
        found = pc.equal(self.file_format, FileFormat.PUFFIN.value)
        return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def in_partitions(self, partition_filter: Expr) -> npt.NDArray[np.bool_]:
        """Which entries have partition values that match a filter.

        Args:
            partition_filter: bound to the fields of `partition_type`.
        """
        by_id = {
            part.field_id: values
            for part, values in zip(self.partition_type.fields, self.partition, strict=True)
        }
        rows = pa.RecordBatch.from_arrays([self.file_path], ["file_path"])
        mask = filter_mask(partition_filter, rows, by_id.__getitem__)
        return mask.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> EntryColumns:
        """Copies some entries, in the order of `indices`; other entries can be freed."""
        positions = pa.array(indices, pa.int64())

        def chosen(column: Any) -> Any:
            match column:
                case np.ndarray():
                    return column[indices]
                case pa.Array():
                    return column.take(positions)
                case tuple():
                    return tuple(map(chosen, column))
                case dict():
                    return {key: chosen(value) for key, value in column.items()}
                case ColumnStats():
                    return ColumnStats(*map(chosen, column.columns()))
                case _:
                    return column

        return EntryColumns(*(chosen(getattr(self, name)) for name in self.__slots__))

    @classmethod
    def concat(cls, parts: Sequence[EntryColumns]) -> EntryColumns:
        """The entries of manifests of one spec, with partition values of one type, in order.

        Args:
            parts: at least one; read with the same statistics.
        """

        def joined(columns: Sequence[Any]) -> Any:
            match columns[0]:
                case np.ndarray():
                    return np.concatenate(columns)
                case pa.Array():
                    return pa.concat_arrays(columns)
                case tuple():
                    return tuple(map(joined, zip(*columns, strict=True)))
                case dict() as first:
                    return {key: joined([column[key] for column in columns]) for key in first}
                case ColumnStats():
                    stats = [column.columns() for column in columns]
                    return ColumnStats(*map(joined, zip(*stats, strict=True)))
                case bytes() | None as schema:
                    return schema if all(column == schema for column in columns) else None
                case same:
                    return same

        if len(parts) == 1:
            return parts[0]
        return cls(*(joined([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def filter(self, mask: npt.NDArray[np.bool_] | pa.BooleanArray) -> EntryColumns:
        """The entries for which a mask is true; null counts as false."""
        if isinstance(mask, pa.Array):
            mask = mask.fill_null(False).to_numpy(zero_copy_only=False)
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def entries(self) -> list[ManifestEntry]:
        """An object for each entry, with the statistics that were read.

        Equal values are one object where many entries have them.
        """
        statistics = _maps_of_all(self) if self.all_stats else _maps_of_some(self)
        data_files = map(
            DataFile,
            map(_CONTENTS.__getitem__, self.content.tolist()),
            self.file_path.to_pylist(),
            map(_FORMATS.__getitem__, self.file_format.to_pylist()),
            [self.spec_id] * len(self),
            _partitions(self),
            self.record_count.tolist(),
            self.file_size_in_bytes.tolist(),
            *(statistics[name] for name in STATISTICS),
            self.key_metadata.to_pylist(),
            _tuples(self.split_offsets),
            _tuples(self.equality_ids),
            self.sort_order_id.to_pylist(),
            self.first_row_id.to_pylist(),
            self.referenced_data_file.to_pylist(),
            self.content_offset.to_pylist(),
            self.content_size_in_bytes.to_pylist(),
        )
        return list(
            map(
                ManifestEntry,
                map(_STATUSES.__getitem__, self.status.tolist()),
                _shared(self.snapshot_id.tolist()),
                _shared(self.data_sequence_number.tolist()),
                _shared(self.file_sequence_number.tolist()),
                data_files,
            )
        )


def _shared(values: Iterable[_Value]) -> list[_Value]:
    """The values, of which equal ones are the same object."""
    known: dict[_Value, _Value] = {}
    return [known.setdefault(value, value) for value in values]


def _tuples(lists: pa.ListArray) -> list[tuple[int, ...]]:
    """A tuple for each list, empty for null."""
    return _shared(tuple(values or ()) for values in lists.to_pylist())


def _partitions(columns: EntryColumns) -> list[tuple[Any, ...]]:
    tuples = partition_tuples(columns.partition_type, columns.partition, len(columns))
    # -0.0 equals 0.0, but is another partition.
    is_floating = any(pa.types.is_floating(column.type) for column in columns.partition)
    return tuples if is_floating else _shared(tuples)


def _maps_of_all(columns: EntryColumns) -> dict[str, list[dict[int, Any]]]:
    return {name: _dictionaries(maps) for name, maps in columns.all_stats.items()}


def _dictionaries(maps: pa.MapArray) -> list[dict[int, Any]]:
    """A dictionary for each map, empty for null."""
    bounds = maps.offsets.to_pylist()
    keys, values = maps.keys.to_pylist(), maps.items.to_pylist()
    return [
        dict(zip(keys[start:end], values[start:end], strict=True))
        for start, end in pairwise(bounds)
    ]


def _maps_of_some(columns: EntryColumns) -> dict[str, list[dict[int, Any]]]:
    count = len(columns)
    # Most entries have none: these share one dictionary.
    maps: dict[str, list[dict[int, Any]]] = {name: [{}] * count for name in STATISTICS}
    for index, name in enumerate(STATISTICS[1:]):
        known = {
            column_id: column
            for column_id, stats in columns.stats.items()
            if (column := stats.columns()[index]).null_count < count
        }
        if known:
            maps[name] = [{} for _ in range(count)]
        for column_id, column in known.items():
            for values, value in zip(maps[name], column.to_pylist(), strict=True):
                if value is not None:
                    values[column_id] = value
    return maps
