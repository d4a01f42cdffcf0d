"""Which delete files apply to which data file (spec: Scan Planning).

A lookup costs a few dictionary probes and binary searches, whatever the number of deletes.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.expr.bounds import Bounds, decode_bounds
from icebergds.spec.manifest import DataFile, FileContent, ManifestEntry
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, TypeId, is_scalar

_Scope = tuple[int, tuple[Any, ...]]
_UNORDERED = frozenset({TypeId.VARIANT, TypeId.GEOMETRY, TypeId.GEOGRAPHY, TypeId.UNKNOWN})


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The deletes of one data file; a deletion vector replaces all position deletes."""

    position_deletes: tuple[ManifestEntry, ...] = ()
    equality_deletes: tuple[ManifestEntry, ...] = ()


@dataclass(slots=True)
class _BySequence:
    """Entries in ascending order of data sequence number."""

    entries: list[ManifestEntry] = field(default_factory=list)
    sequence_numbers: list[int] = field(default_factory=list)

    def seal(self) -> None:
        self.entries.sort(key=lambda entry: entry.data_sequence_number)
        self.sequence_numbers = [entry.data_sequence_number for entry in self.entries]

    def at_least(self, sequence_number: int) -> list[ManifestEntry]:
        return self.entries[bisect_left(self.sequence_numbers, sequence_number) :]

    def above(self, sequence_number: int) -> list[ManifestEntry]:
        return self.entries[bisect_right(self.sequence_numbers, sequence_number) :]


class DeleteIndex:
    """Live delete files of a snapshot, indexed by what they may apply to.

    Args:
        entries: live entries of all delete manifests.
        specs: partition specs by id.
        key_types: type of every field that is an equality key, by field id; a key without an
            entry is never used to drop a delete file.

    Raises:
        InvalidMetadataError: two deletion vectors for one data file.
    """

    def __init__(
        self,
        entries: Iterable[ManifestEntry],
        specs: Mapping[int, PartitionSpec],
        key_types: Mapping[int, IcebergType],
    ) -> None:
        self._key_types = key_types
        self._vectors: dict[str, ManifestEntry] = {}
        self._positions_by_path: dict[str, _BySequence] = {}
        self._positions_by_scope: dict[_Scope, _BySequence] = {}
        self._equality_by_scope: dict[_Scope, _BySequence] = {}
        self._equality_global = _BySequence()
        for entry in entries:
            self._add(entry, specs)
        for group in (
            *self._positions_by_path.values(),
            *self._positions_by_scope.values(),
            *self._equality_by_scope.values(),
            self._equality_global,
        ):
            group.seal()
        self._is_empty = not (
            self._vectors
            or self._positions_by_path
            or self._positions_by_scope
            or self._equality_by_scope
            or self._equality_global.entries
        )

    def deletes_for(self, entry: ManifestEntry) -> AppliedDeletes:
        """The delete files that apply to a live data file, and no others."""
        if self._is_empty:
            return _NO_DELETES
        data_file = entry.data_file
        sequence_number = entry.data_sequence_number
        scope = _scope(data_file)
        vector = self._vectors.get(data_file.file_path)
        positions: list[ManifestEntry]
        if vector is not None and vector.data_sequence_number >= sequence_number:
            positions = [vector]
        else:
            # Position deletes also apply to rows of their own commit.
            positions = [
                *_at_least(self._positions_by_path.get(data_file.file_path), sequence_number),
                *(
                    delete
                    for delete in _at_least(self._positions_by_scope.get(scope), sequence_number)
                    if _may_name(delete.data_file, data_file.file_path)
                ),
            ]
        # Equality deletes apply to strictly older rows.
        candidates = self._equality_global.above(sequence_number)
        scoped = self._equality_by_scope.get(scope)
        if scoped is not None:
            candidates = candidates + scoped.above(sequence_number)
        if not positions and not candidates:
            return _NO_DELETES
        return AppliedDeletes(
            tuple(positions),
            tuple(d for d in candidates if self._may_share_keys(d.data_file, data_file)),
        )

    def _add(self, entry: ManifestEntry, specs: Mapping[int, PartitionSpec]) -> None:
        delete_file = entry.data_file
        if delete_file.content is FileContent.EQUALITY_DELETES:
            if not delete_file.equality_ids:
                raise InvalidMetadataError(
                    f"equality delete file {delete_file.file_path} names no equality_ids"
                )
            if specs[delete_file.spec_id].is_unpartitioned:
                self._equality_global.entries.append(entry)
            else:
                scope = _scope(delete_file)
                self._equality_by_scope.setdefault(scope, _BySequence()).entries.append(entry)
        elif delete_file.is_deletion_vector:
            self._add_vector(entry)
        elif (path := _only_data_path(delete_file)) is not None:
            self._positions_by_path.setdefault(path, _BySequence()).entries.append(entry)
        else:
            scope = _scope(delete_file)
            self._positions_by_scope.setdefault(scope, _BySequence()).entries.append(entry)

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
                f"{delete_file.file_path}; the format allows one at most. Rewrite the table's "
                "deletes with the engine that wrote them"
            )
        self._vectors[path] = entry

    def _may_share_keys(self, delete_file: DataFile, data_file: DataFile) -> bool:
        return all(
            self._may_share_key(field_id, delete_file, data_file)
            for field_id in delete_file.equality_ids
        )

    def _may_share_key(self, field_id: int, delete_file: DataFile, data_file: DataFile) -> bool:
        key_type = self._key_types.get(field_id)
        if key_type is None or not is_scalar(key_type) or _type_id(key_type) in _UNORDERED:
            return True
        delete_nulls, delete_values = _may_hold(delete_file, field_id)
        data_nulls, data_values = _may_hold(data_file, field_id)
        if delete_nulls and data_nulls:
            return True
        if not (delete_values and data_values):
            return False
        deleted = _bounds(key_type, field_id, delete_file)
        stored = _bounds(key_type, field_id, data_file)
        if not (deleted.nan_free or stored.nan_free):
            return True
        return _at_most(deleted.lower, stored.upper) and _at_most(stored.lower, deleted.upper)


_NO_DELETES = AppliedDeletes()


def key_types(schemas: Sequence[Schema], equality_ids: Iterable[int]) -> dict[int, IcebergType]:
    """The newest type of each key field; `schemas` from oldest to newest, dropped ones included."""
    found: dict[int, IcebergType] = {}
    for field_id in equality_ids:
        for schema in schemas:
            if (key := schema.find_field(field_id)) is not None:
                found[field_id] = key.field_type
    return found


def _at_least(group: _BySequence | None, sequence_number: int) -> list[ManifestEntry]:
    return [] if group is None else group.at_least(sequence_number)


def _scope(data_file: DataFile) -> _Scope:
    partition = data_file.partition
    if any(isinstance(value, float) for value in partition):
        # Floating partition values are equal if their bits are, with all NaNs as one.
        partition = tuple(
            _float_bits(value) if isinstance(value, float) else value for value in partition
        )
    return data_file.spec_id, partition


def _float_bits(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)


def _only_data_path(delete_file: DataFile) -> str | None:
    """The one data file that a position delete file is about, where its metadata proves it."""
    if delete_file.referenced_data_file is not None:
        return delete_file.referenced_data_file
    path_id = DELETE_FILE_PATH.field_id
    lower = delete_file.lower_bounds.get(path_id)
    upper = delete_file.upper_bounds.get(path_id)
    # An upper bound that was truncated is greater than the lower bound: equality means exact.
    if lower is not None and lower == upper:
        return lower.decode("utf-8")
    return None


def _may_name(delete_file: DataFile, path: str) -> bool:
    """Whether the bounds of a position delete file's paths leave room for this one."""
    encoded = path.encode("utf-8")
    lower = delete_file.lower_bounds.get(DELETE_FILE_PATH.field_id)
    upper = delete_file.upper_bounds.get(DELETE_FILE_PATH.field_id)
    return (lower is None or lower <= encoded) and (upper is None or encoded <= upper)


def _type_id(key_type: IcebergType) -> TypeId | None:
    return getattr(key_type, "type_id", None)


def _may_hold(data_file: DataFile, field_id: int) -> tuple[bool, bool]:
    """Whether a column may hold nulls, and whether it may hold values."""
    nulls = data_file.null_value_counts.get(field_id)
    # Counts of values are counts of rows only if there are as many: some writers leave out rows in
    # which a struct around the column is null.
    if nulls is None or data_file.value_counts.get(field_id) != data_file.record_count:
        return True, True
    return nulls != 0, nulls != data_file.record_count


def _bounds(key_type: IcebergType, field_id: int, data_file: DataFile) -> Bounds:
    return decode_bounds(
        key_type,
        data_file.lower_bounds.get(field_id),
        data_file.upper_bounds.get(field_id),
        data_file.nan_value_counts.get(field_id) == 0,
    )


def _at_most(lower: Any, upper: Any) -> bool:
    """Whether a lower bound leaves room below an upper one; an unknown bound always does."""
    return lower is None or upper is None or bool(lower <= upper)
