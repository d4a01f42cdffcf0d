"""Writes the manifests of a commit (spec: Manifests).

All attempts share them: entries inherit sequence numbers and row ids, and the `ManifestFile` has
`UNASSIGNED` as a placeholder for the attempt's sequence number.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import ceil
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from icebergds.commit.base import CommitBase
from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidDataError, InvalidOptionError, UnsupportedFeatureError
from icebergds.formats.avro.container_writer import check_codec
from icebergds.formats.manifests.manifest import INHERITED, write_manifest
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.spec.manifest import (
    DataFile,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.table_properties import (
    ENCRYPTION_KEY_ID,
    MANIFEST_COMPRESSION,
    MANIFEST_COMPRESSION_LEVEL,
    MANIFEST_TARGET_SIZE_BYTES,
)
from icebergds.spec.types import UNKNOWN, IcebergType, NestedField, StructType
from icebergds.spec.values.binary import to_bytes

UNASSIGNED = -1
"""Placeholder for the sequence number of the new snapshot."""

_SAMPLE = 500
_Group = tuple[int, ManifestContent]


class NewFiles(Protocol):
    """Files that a commit adds. They are iterated over several times, one after the other."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[DataFile]: ...


def new_manifests(
    work: Workspace,
    base: CommitBase,
    files: NewFiles,
    data_sequence_number: int | None = None,
    added_key: Hashable = None,
    *,
    may_be_plain: bool = False,
) -> list[ManifestFile]:
    """Writes the manifests of a commit's added files, once for all attempts that add the same.

    Args:
        added_key: what `files` depends on, if attempts add other ones.
        data_sequence_number: for the files, if their rows are from earlier commits.
        may_be_plain: whether an encrypted table may get files that are not encrypted.

    Raises:
        InvalidDataError: a file is listed twice.
        UnsupportedFeatureError: the table is encrypted, and a file is not.
        ValidationError: the table does not have its partition spec, or no longer.
    """
    if not len(files):
        return []
    key = ("new", base.metadata.format_version, data_sequence_number, added_key)
    if not may_be_plain:
        _refuse_plain(base, files)
    number = UNASSIGNED if data_sequence_number is None else data_sequence_number
    return work.once(key, lambda: _write_added(work, base, lambda: ((f, number) for f in files)))


def numbered_manifests(
    work: Workspace, base: CommitBase, files: Sequence[tuple[DataFile, int]], key: Hashable
) -> list[ManifestFile]:
    """Writes the manifests of added files with data sequence numbers of earlier commits.

    Args:
        files: each with its number.
        key: what `files` depends on; the manifests of an earlier attempt with this key are reused.

    Raises:
        InvalidDataError, UnsupportedFeatureError, ValidationError: as for `new_manifests`.
    """
    if not files:
        return []
    _refuse_plain(base, (file for file, _ in files))
    key = ("numbered", base.metadata.format_version, key)
    return work.once(key, lambda: _write_added(work, base, lambda: files))


def write_entries(
    work: Workspace,
    base: CommitBase,
    entries: Sequence[ManifestEntry],
    spec_id: int,
    content: ManifestContent,
) -> ManifestFile:
    """Writes one manifest; all entries have the same partition spec.

    Either all entries with status ADDED have the sequence number `UNASSIGNED`, or none has.
    """
    return _write(work, base, entries, spec_id, content, _encode(base, entries, spec_id, content))


def manifest_compression(properties: Mapping[str, str]) -> tuple[str, int | None]:
    """Codec and level of manifests (`write.manifest.compression-*`); None for the default level.

    Raises:
        InvalidOptionError: Avro files do not support the codec, or the codec the level.
    """
    codec = MANIFEST_COMPRESSION.of(properties)
    level = MANIFEST_COMPRESSION_LEVEL.of(properties)
    if level is None:
        return codec, None
    try:
        check_codec(codec, level)
    except InvalidOptionError as error:
        raise InvalidOptionError(
            f"property {MANIFEST_COMPRESSION_LEVEL.name} is {level}: {error}"
        ) from None
    return codec, level


def _write_added(
    work: Workspace, base: CommitBase, files: Callable[[], Iterable[tuple[DataFile, int]]]
) -> list[ManifestFile]:
    """Writes files with their data sequence numbers; either all are `UNASSIGNED`, or none is.

    Few of them are in memory at a time, if `files` creates them as they are needed.
    """
    _refuse_duplicates(base, files)
    counts = Counter(_group_of(file) for file, _ in files())

    def entries(group: _Group) -> Iterable[ManifestEntry]:
        status, snapshot_id = ManifestEntryStatus.ADDED, work.snapshot_id
        return (
            ManifestEntry(status, snapshot_id, number, UNASSIGNED, file)
            for file, number in files()
            if _group_of(file) == group
        )

    return [
        manifest
        for group in sorted(counts)
        for manifest in _write_split(work, base, entries(group), counts[group], *group)
    ]


def _group_of(file: DataFile) -> _Group:
    is_data = file.content is FileContent.DATA
    return file.spec_id, ManifestContent.DATA if is_data else ManifestContent.DELETES


def _refuse_plain(base: CommitBase, files: Iterable[DataFile]) -> None:
    if ENCRYPTION_KEY_ID.of(base.metadata.properties) is None:
        return
    plain = next((file.file_path for file in files if file.key_metadata is None), None)
    if plain is not None:
        raise UnsupportedFeatureError(
            f"table {base.name} is encrypted, but the new file {plain} is not; nothing was "
            "committed. If the table was encrypted during this operation, repeat it"
        )


def _refuse_duplicates(
    base: CommitBase, files: Callable[[], Iterable[tuple[DataFile, int]]]
) -> None:
    # Hashes take less memory than keys.
    hashes = np.array(array("q", (hash(file_key(file)) for file, _ in files())), np.int64)
    values, counts = np.unique(hashes, return_counts=True)
    repeated = frozenset(values[counts > 1].tolist())
    if not repeated:
        return
    seen = set[FileKey]()
    for key in (file_key(file) for file, _ in files()):
        if key in seen:
            raise InvalidDataError(f"table {base.name}: {key[0]} is listed twice in one commit")
        if hash(key) in repeated:
            seen.add(key)


def _write_split(
    work: Workspace,
    base: CommitBase,
    entries: Iterable[ManifestEntry],
    count: int,
    spec_id: int,
    content: ManifestContent,
) -> Iterable[ManifestFile]:
    """Splits the entries into manifests near the target size."""
    left = iter(entries)
    sample = list(islice(left, _SAMPLE))
    data = _encode(base, sample, spec_id, content)
    target = MANIFEST_TARGET_SIZE_BYTES.of(base.metadata.properties)
    if count == len(sample) and len(data) <= target:
        yield _write(work, base, sample, spec_id, content, data)
        return
    parts = ceil(count / max(1, len(sample) * target // len(data)))
    length = ceil(count / parts)
    left = chain(sample, left)
    for _ in range(0, count, length):
        yield write_entries(work, base, list(islice(left, length)), spec_id, content)


def _encode(
    base: CommitBase, entries: Sequence[ManifestEntry], spec_id: int, content: ManifestContent
) -> bytes:
    metadata = base.metadata
    codec, level = manifest_compression(metadata.properties)
    return write_manifest(
        entries,
        base.spec(spec_id),
        metadata.schema(),
        format_version=metadata.format_version,
        content=content,
        inherit=_inherited(entries),
        history=base.metadata.schema_history,
        codec=codec,
        level=level,
    )


def _inherited(entries: Iterable[ManifestEntry]) -> Collection[str]:
    has_number = any(
        entry.status is ManifestEntryStatus.ADDED and entry.data_sequence_number != UNASSIGNED
        for entry in entries
    )
    return INHERITED - {"sequence_number"} if has_number else INHERITED


def _write(
    work: Workspace,
    base: CommitBase,
    entries: Sequence[ManifestEntry],
    spec_id: int,
    content: ManifestContent,
    data: bytes,
) -> ManifestFile:
    added = _files(entries, ManifestEntryStatus.ADDED)
    existing = _files(entries, ManifestEntryStatus.EXISTING)
    deleted = _files(entries, ManifestEntryStatus.DELETED)
    live_numbers = {
        entry.data_sequence_number
        for entry in entries
        if entry.status is not ManifestEntryStatus.DELETED
    }
    partition_type = base.metadata.partition_type(base.spec(spec_id))
    written = work.write_manifest(base.metadata, data)
    return ManifestFile(
        manifest_path=written.location,
        manifest_length=written.length,
        key_metadata=written.key_metadata,
        partition_spec_id=spec_id,
        content=content,
        sequence_number=UNASSIGNED,
        # The new snapshot's number is higher than all others.
        min_sequence_number=min(live_numbers - {UNASSIGNED}, default=UNASSIGNED),
        added_snapshot_id=work.snapshot_id,
        added_files_count=len(added),
        existing_files_count=len(existing),
        deleted_files_count=len(deleted),
        added_rows_count=_rows(added),
        existing_rows_count=_rows(existing),
        deleted_rows_count=_rows(deleted),
        partitions=partition_summaries(partition_type, _partitions((*added, *existing, *deleted))),
    )


def _files(entries: Iterable[ManifestEntry], status: ManifestEntryStatus) -> list[DataFile]:
    return [entry.data_file for entry in entries if entry.status is status]


def _rows(files: Iterable[DataFile]) -> int:
    return sum(file.record_count for file in files)


def _partitions(files: Iterable[DataFile]) -> list[tuple[Any, ...]]:
    return [file.partition for file in files]


def partition_summaries(
    partition_type: StructType, partitions: Sequence[tuple[Any, ...]]
) -> tuple[FieldSummary, ...]:
    """Computes one summary for each partition field.

    Args:
        partitions: the partition tuple of each file; duplicates are fine.
    """
    columns = zip(*partitions, strict=True) if partitions else ((),) * len(partition_type.fields)
    return tuple(
        _summary(field.field_type, set(values))
        for field, values in zip(partition_type.fields, columns, strict=True)
    )


def column_summaries(
    partition_type: StructType, columns: Sequence[pa.Array]
) -> tuple[FieldSummary, ...]:
    """Computes the same from the columns of `EntryColumns.partition`."""
    return tuple(
        _summary(field.field_type, {value for (value,) in _distinct(field, column)})
        for field, column in zip(partition_type.fields, columns, strict=True)
    )


def _distinct(field: NestedField, column: pa.Array) -> list[tuple[Any, ...]]:
    distinct = column.unique()
    return partition_tuples(StructType((field,)), (distinct,), len(distinct))


def _summary(field_type: IcebergType, values: set[Any]) -> FieldSummary:
    has_null = None in values
    known = [value for value in values if value is not None and value == value]
    has_nan = len(known) + has_null < len(values)
    # The result type of an unknown transform is not known, so there are no bounds.
    if not known or field_type == UNKNOWN:
        return FieldSummary(has_null, has_nan)
    lower, upper = min(known), max(known)
    return FieldSummary(has_null, has_nan, to_bytes(field_type, lower), to_bytes(field_type, upper))
