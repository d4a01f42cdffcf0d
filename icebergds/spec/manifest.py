"""Models manifests and the files they track (spec: Manifests, Manifest Lists)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Any, TypeAlias

from icebergds.display import counted, printable, size_text


class FileContent(IntEnum):
    """The content type of a file tracked by a manifest."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class ManifestContent(IntEnum):
    """The kind of files that a manifest tracks."""

    DATA = 0
    DELETES = 1


class ManifestEntryStatus(IntEnum):
    """The status of a manifest entry: what the manifest's snapshot did to the file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class FileFormat(StrEnum):
    """File formats of data and delete files, lower case."""

    AVRO = "avro"
    ORC = "orc"
    PARQUET = "parquet"
    PUFFIN = "puffin"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data or delete file as a manifest describes it (spec: struct `data_file`).

    `partition` holds one in-memory value per field of the spec `spec_id`, in the spec's order.
    Maps go from field id to count, size or serialised bound. `first_row_id` is already inherited.
    A deletion vector is the blob at `content_offset` of a Puffin file, for `referenced_data_file`.
    """

    content: FileContent
    file_path: str
    file_format: FileFormat
    spec_id: int
    partition: tuple[Any, ...]
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] = ()
    equality_ids: tuple[int, ...] = ()
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    def __repr__(self) -> str:
        return (
            f"DataFile({self.file_path!r}, {self.content.name.lower()}, {self.file_format}, "
            f"{counted(self.record_count, 'row')}, {size_text(self.file_size_in_bytes)}, "
            f"spec_id={self.spec_id}, partition={printable(repr(self.partition), 40)})"
        )

    @property
    def is_deletion_vector(self) -> bool:
        return (
            self.content is FileContent.POSITION_DELETES and self.file_format is FileFormat.PUFFIN
        )

    @property
    def stored_size(self) -> int:
        """Its size in bytes; of a deletion vector, that of its blob."""
        of_blob = self.content_size_in_bytes
        return self.file_size_in_bytes if of_blob is None else of_blob


_NO_METRICS: Mapping[int, Any] = {}


def without_metrics(file: DataFile) -> DataFile:
    """The file without sizes, counts and bounds of its columns, which take most of its memory."""
    return replace(
        file,
        column_sizes=_NO_METRICS,
        value_counts=_NO_METRICS,
        null_value_counts=_NO_METRICS,
        nan_value_counts=_NO_METRICS,
        lower_bounds=_NO_METRICS,
        upper_bounds=_NO_METRICS,
    )


@dataclass(frozen=True, slots=True)
class DataFileRef:
    """A data file's path and partition, as its position deletes refer to it."""

    file_path: str
    spec_id: int
    partition: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A manifest entry; sequence numbers and snapshot id are already inherited."""

    status: ManifestEntryStatus
    snapshot_id: int
    data_sequence_number: int
    file_sequence_number: int
    data_file: DataFile


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """Summary of one partition field over a manifest (spec: `field_summary`)."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest as a manifest list describes it (spec: struct `manifest_file`).

    Counts are None if a version 1 list leaves them out. `partitions` is empty if absent.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] = ()
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    def __repr__(self) -> str:
        counts = (self.added_files_count, self.existing_files_count, self.deleted_files_count)
        added, existing, deleted = ("?" if count is None else f"{count:,}" for count in counts)
        return (
            f"ManifestFile({self.manifest_path!r}, {self.content.name.lower()}, "
            f"spec_id={self.partition_spec_id}, "
            f"files: {added} added, {existing} existing, {deleted} deleted)"
        )


PartitionKey: TypeAlias = tuple[int, tuple[Hashable, ...]]
"""A spec's id and the key of a tuple of its partition values."""


def partition_of(file: DataFile | DataFileRef) -> PartitionKey:
    """The key of a file's partition."""
    return file.spec_id, values_key(file.partition)


def partition_key(spec_id: int, partition: tuple[Any, ...]) -> PartitionKey:
    """The key of a partition of a spec."""
    return spec_id, values_key(partition)


def values_key(partition: tuple[Any, ...]) -> tuple[Hashable, ...]:
    """The key of partition values of one spec, equal for equal partitions only.

    All NaNs are equal, and -0.0 is not 0.0: Python has it the other way round. Other values are
    equal if they are in Python.
    """
    if any(isinstance(value, float) for value in partition):
        return tuple(value.hex() if isinstance(value, float) else value for value in partition)
    return partition
