"""What a plan hands to an executor: files to read and the deletes that apply to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.schema import Schema

_NO_COLUMNS = Schema(())


@dataclass(frozen=True, slots=True)
class DeleteFileRef:
    """A delete file, or one deletion vector inside a Puffin file."""

    file_path: str
    file_format: FileFormat
    data_sequence_number: int
    file_size_in_bytes: int
    record_count: int
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class EqualityDeleteGroup:
    """Equality delete files of one scope that share their key columns.

    Sequence numbers are judged per key, so a group may hold files newer and older than a data file.
    """

    equality_ids: tuple[int, ...]
    files: tuple[DeleteFileRef, ...]


class ChangeType(StrEnum):
    """What a commit did to a row of a change feed: the values of `_change_type`."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    UPDATE_AFTER = "UPDATE_AFTER"


@dataclass(frozen=True, slots=True)
class TaskChange:
    """What a commit did to the rows of a task.

    Attributes:
        ordinal: of the commit in the feed, from 0.
        is_partial: only rows changed that these further deletes delete; else all live rows did.
        position_deletes, equality_deletes: index the tuples of the `ScanTaskGroup`.
    """

    change_type: ChangeType
    ordinal: int
    snapshot_id: int
    is_partial: bool = False
    position_deletes: tuple[int, ...] = ()
    equality_deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """A data file, or the bytes `start` to `start + length` of it, with its deletes.

    `position_deletes` and `equality_deletes` index the tuples of the `ScanTaskGroup` around it.
    `change` is set in change feeds.
    """

    file_path: str
    file_format: FileFormat
    file_size_in_bytes: int
    start: int
    length: int
    spec_id: int
    partition: tuple[Any, ...]
    data_sequence_number: int
    first_row_id: int | None
    position_deletes: tuple[int, ...] = ()
    equality_deletes: tuple[int, ...] = ()
    change: TaskChange | None = None

    def uses_positions(self, index: int) -> bool:
        """Whether the position deletes at an index of the task group concern the file."""
        return index in self.position_deletes or (
            self.change is not None and index in self.change.position_deletes
        )


@dataclass(frozen=True, slots=True)
class ScanTaskGroup:
    """What one Spark task reads: data files and the delete files they refer to.

    `key_schema` has the columns that equality deletes compare, also ones since dropped, each
    narrowed to its keys.
    """

    tasks: tuple[FileScanTask, ...]
    position_deletes: tuple[DeleteFileRef, ...] = ()
    equality_deletes: tuple[EqualityDeleteGroup, ...] = ()
    key_schema: Schema = _NO_COLUMNS


@dataclass(frozen=True, slots=True)
class CarryoverGroup:
    """Tasks among whose rows the same one may be deleted and inserted.

    Attributes:
        held: the side, INSERT or DELETE, that is likely to have fewer rows.
    """

    partition: ScanTaskGroup
    held: ChangeType


@dataclass(frozen=True, slots=True)
class ChangelogTaskGroup:
    """What one Spark task reads of a change feed in which rows cancel each other out.

    Attributes:
        identifier_ids: columns by which a row that was deleted and one that was inserted are an
            update; none where updates are not asked for.
    """

    groups: tuple[CarryoverGroup, ...]
    identifier_ids: tuple[int, ...] = ()


TaskGroup: TypeAlias = ScanTaskGroup | ChangelogTaskGroup
"""What one task reads."""


def delete_file_ref(data_file: DataFile, data_sequence_number: int) -> DeleteFileRef:
    """What an executor needs to know of a delete file."""
    return DeleteFileRef(
        data_file.file_path,
        data_file.file_format,
        data_sequence_number,
        data_file.file_size_in_bytes,
        data_file.record_count,
        data_file.content_offset,
        data_file.content_size_in_bytes,
    )
