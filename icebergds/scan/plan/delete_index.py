"""Indexes delete files by the data files that they may apply to (spec: Scan Planning).

A lookup costs a few dictionary and binary searches, and one vectorised comparison with the bounds
of all deletes in the data file's scope that are new enough.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np

from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.scan.plan.delete_ranges import KeyRanges, Mask, PathRanges, is_ordered
from icebergds.spec.manifest import DataFile, FileContent, ManifestEntry, PartitionKey, partition_of
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType

_Entries = tuple[ManifestEntry, ...]


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The deletes of one data file; a deletion vector replaces all position deletes."""

    position_deletes: tuple[ManifestEntry, ...] = ()
    equality_deletes: tuple[ManifestEntry, ...] = ()


class DeleteIndex:
    """Index of a snapshot's live delete files.

    Args:
        entries: live entries of all delete manifests.
        specs: partition specs by id.
        key_types: types of the equality key fields by field id; a field without a type is not used
            for pruning.

    Raises:
        InvalidMetadataError: a data file has two deletion vectors, or an entry of a deletion
            vector or equality delete file lacks required fields.
    """

    def __init__(
        self,
        entries: Iterable[ManifestEntry],
        specs: Mapping[int, PartitionSpec],
        key_types: Mapping[int, IcebergType],
    ) -> None:
        self._vectors: dict[str, ManifestEntry] = {}
        by_path: dict[str, list[ManifestEntry]] = {}
        by_scope: dict[PartitionKey, list[ManifestEntry]] = {}
        keys: dict[PartitionKey | None, list[ManifestEntry]] = {}
        for entry in entries:
            delete_file = entry.data_file
            if delete_file.content is FileContent.EQUALITY_DELETES:
                _check_keys(delete_file)
                is_global = specs[delete_file.spec_id].is_unpartitioned
                keys.setdefault(None if is_global else partition_of(delete_file), []).append(entry)
            elif delete_file.is_deletion_vector:
                self._add_vector(entry)
            elif (path := only_data_path(delete_file)) is not None:
                by_path.setdefault(path, []).append(entry)
            else:
                by_scope.setdefault(partition_of(delete_file), []).append(entry)
        self._by_path = {path: _Deletes(group) for path, group in by_path.items()}
        self._by_scope = {scope: _PositionDeletes(group) for scope, group in by_scope.items()}
        self._keys = {scope: _EqualityDeletes(group, key_types) for scope, group in keys.items()}
        self._is_empty = not (self._vectors or by_path or by_scope or keys)

    def deletes_for(self, entry: ManifestEntry) -> AppliedDeletes:
        """The delete files that may apply to a live data file."""
        if self._is_empty:
            return _NO_DELETES
        data_file = entry.data_file
        number = entry.data_sequence_number
        scope = partition_of(data_file)
        vector = self._vectors.get(data_file.file_path)
        positions: _Entries
        if vector is not None and vector.data_sequence_number >= number:
            positions = (vector,)
        else:
            positions = _of(self._by_path.get(data_file.file_path), data_file, number)
            positions += _of(self._by_scope.get(scope), data_file, number)
        equality = _of(self._keys.get(None), data_file, number)
        equality += _of(self._keys.get(scope), data_file, number)
        return AppliedDeletes(positions, equality) if positions or equality else _NO_DELETES

    def compares_metrics(self, entry: ManifestEntry) -> bool:
        """Whether `deletes_for` uses the metrics of a data file, if the file is old enough."""
        keys = self._keys
        return bool(keys) and (None in keys or partition_of(entry.data_file) in keys)

    def _add_vector(self, entry: ManifestEntry) -> None:
        delete_file = entry.data_file
        path = delete_file.referenced_data_file
        if (
            path is None
            or delete_file.content_offset is None
            or delete_file.content_size_in_bytes is None
        ):
            raise InvalidMetadataError(
                f"deletion vector in {delete_file.file_path}: its manifest entry must have "
                "referenced_data_file, content_offset and content_size_in_bytes"
            )
        other = self._vectors.get(path)
        if other is not None:
            raise InvalidMetadataError(
                f"data file {path} has two deletion vectors, in {other.data_file.file_path} and "
                f"{delete_file.file_path}; only one is allowed. Rewrite the table's deletes with "
                "the engine that wrote them"
            )
        self._vectors[path] = entry


_NO_DELETES = AppliedDeletes()


def key_types(history: Sequence[Schema], equality_ids: Iterable[int]) -> dict[int, IcebergType]:
    """The newest type of each key field, also if dropped; `history` is newest first."""
    found: dict[int, IcebergType] = {}
    for field_id in equality_ids:
        for schema in history:
            if (key := schema.find_field(field_id)) is not None:
                found[field_id] = key.field_type
                break
    return found


class _Deletes:
    """Deletes of one scope, in ascending order of data sequence number."""

    def __init__(self, entries: Iterable[ManifestEntry]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.data_sequence_number)
        self._numbers = [entry.data_sequence_number for entry in self._entries]
        self._chosen: dict[tuple[int, bytes], _Entries] = {}

    def applying_to(self, data_file: DataFile, sequence_number: int) -> _Entries:
        """The deletes of a data file in this scope; equal results are the same object."""
        start = self._first_for(sequence_number)
        if start == len(self._entries):
            return ()
        mask = self._may_apply(data_file, start)
        key = (start, mask.tobytes())
        chosen = self._chosen.get(key)
        if chosen is None:
            chosen = self._chosen[key] = tuple(compress(self._entries[start:], mask))
        return chosen

    def _first_for(self, sequence_number: int) -> int:
        # Position deletes also apply to rows of their own commit (invariant NoRowResurrected of
        # docs/commit-model.md).
        return bisect_left(self._numbers, sequence_number)

    def _may_apply(self, data_file: DataFile, start: int) -> Mask:
        return np.ones(len(self._entries) - start, np.bool_)


class _PositionDeletes(_Deletes):
    """Position delete files of one partition."""

    @cached_property
    def _ranges(self) -> PathRanges:
        return PathRanges([entry.data_file for entry in self._entries])

    def _may_apply(self, data_file: DataFile, start: int) -> Mask:
        return self._ranges.may_name(data_file.file_path, start)


class _EqualityDeletes(_Deletes):
    """Equality delete files of one partition, or the global ones."""

    def __init__(
        self, entries: Iterable[ManifestEntry], key_types: Mapping[int, IcebergType]
    ) -> None:
        super().__init__(entries)
        self._key_types = key_types

    @cached_property
    def _ranges(self) -> list[KeyRanges]:
        files = [entry.data_file for entry in self._entries]
        return [
            KeyRanges(files, field_id, self._key_types[field_id])
            for field_id in sorted({i for file in files for i in file.equality_ids})
            if field_id in self._key_types and is_ordered(self._key_types[field_id])
        ]

    def _first_for(self, sequence_number: int) -> int:
        # Equality deletes apply to strictly older data files (invariant NoRowLost).
        return bisect_right(self._numbers, sequence_number)

    def _may_apply(self, data_file: DataFile, start: int) -> Mask:
        mask = super()._may_apply(data_file, start)
        for ranges in self._ranges:
            mask &= ranges.may_share(data_file, start)
        return mask


def _of(deletes: _Deletes | None, data_file: DataFile, number: int) -> _Entries:
    return () if deletes is None else deletes.applying_to(data_file, number)


def _check_keys(delete_file: DataFile) -> None:
    if not delete_file.equality_ids:
        raise InvalidMetadataError(
            f"equality delete file {delete_file.file_path} has no equality_ids"
        )
