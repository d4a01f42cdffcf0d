"""Defines scan tasks: files for executors to read, with the deletes that apply to them."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    key_metadata: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class EqualityDeleteGroup:
    """Equality delete files of one scope with the same key columns.

    Sequence numbers are compared per key, so a group may have files newer and older than a data
    file.
    """

    equality_ids: tuple[int, ...]
    files: tuple[DeleteFileRef, ...]


class ChangeType(StrEnum):
    """How a commit changed a row of a change feed: the values of `_change_type`."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    UPDATE_AFTER = "UPDATE_AFTER"

    @property
    def spark_name(self) -> str:
        """The value of `_change_type` in Spark's change data."""
        return _SPARK_NAMES.get(self, self.value.lower())


_SPARK_NAMES = {
    ChangeType.UPDATE_BEFORE: "update_preimage",
    ChangeType.UPDATE_AFTER: "update_postimage",
}


@dataclass(frozen=True, slots=True)
class FeedCommit:
    """A commit of a change feed.

    Attributes:
        ordinal: its number in the feed, from 0.
        version: its number in the table's history (`commit_version`).
        timestamp_ms: when it was made, in milliseconds since 1970.
    """

    ordinal: int
    snapshot_id: int
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TaskChange:
    """How a commit changed the rows of a scan task.

    Attributes:
        is_partial: the change covers only live rows that the deletes below delete; otherwise all
            live rows.
        position_deletes, equality_deletes: indices into the tuples of the `ScanTaskGroup`.
    """

    change_type: ChangeType
    commit: FeedCommit
    is_partial: bool = False
    position_deletes: tuple[int, ...] = ()
    equality_deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """A data file, or its bytes from `start` to `start + length`, with its deletes.

    `position_deletes` and `equality_deletes` are indices into the tuples of the `ScanTaskGroup`.
    `change` is set in change feeds. `contradicted` means that partition columns have values other
    than `partition`, which then does not determine which rows a filter selects. `bounds` are those
    of timestamp columns, as in `Recorded`.
    """

    file_path: str
    file_format: FileFormat
    file_size_in_bytes: int
    record_count: int
    start: int
    length: int
    spec_id: int
    partition: tuple[Any, ...]
    data_sequence_number: int
    first_row_id: int | None
    position_deletes: tuple[int, ...] = ()
    equality_deletes: tuple[int, ...] = ()
    change: TaskChange | None = None
    contradicted: bool = False
    bounds: tuple[tuple[int, bytes, bytes], ...] = ()
    key_metadata: bytes | None = field(default=None, repr=False)

    @property
    def length_to_read(self) -> int | None:
        """Length of the range; None for the last one: the recorded file size may be too low."""
        is_last = self.start + self.length >= self.file_size_in_bytes
        return None if is_last else self.length

    @property
    def equality_groups(self) -> tuple[int, ...]:
        """The equality deletes of the task and of its change, as indices."""
        changing = () if self.change is None else self.change.equality_deletes
        return (*self.equality_deletes, *changing)

    def uses_positions(self, index: int) -> bool:
        """Whether the task uses the position deletes at an index of the task group."""
        return index in self.position_deletes or (
            self.change is not None and index in self.change.position_deletes
        )


@dataclass(frozen=True, slots=True)
class ScanTaskGroup:
    """What one Spark task reads: data files and the delete files they refer to.

    `key_schema` has the columns that equality deletes compare, including dropped ones, each
    narrowed to its keys.
    """

    tasks: tuple[FileScanTask, ...]
    position_deletes: tuple[DeleteFileRef, ...] = ()
    equality_deletes: tuple[EqualityDeleteGroup, ...] = ()
    key_schema: Schema = _NO_COLUMNS


@dataclass(frozen=True, slots=True)
class CarryoverGroup:
    """Scan tasks whose rows may include carry-overs: rows deleted and re-inserted unchanged.

    Attributes:
        smaller_side: the side, INSERT or DELETE, that is likely to have fewer rows.
    """

    task_group: ScanTaskGroup
    smaller_side: ChangeType


@dataclass(frozen=True, slots=True)
class ChangelogTaskGroup:
    """What one Spark task reads of a change feed with carry-overs, which it leaves out.

    Attributes:
        identifier_ids: a deleted and an inserted row with equal values of these columns are an
            update; empty if updates are not computed.
    """

    groups: tuple[CarryoverGroup, ...]
    identifier_ids: tuple[int, ...] = ()


def has_keys(task_group: TaskGroup) -> bool:
    """Whether files of a task group are encrypted, so that it has their keys."""
    if isinstance(task_group, ChangelogTaskGroup):
        return any(has_keys(carried.task_group) for carried in task_group.groups)
    deletes = (
        *task_group.position_deletes,
        *(file for group in task_group.equality_deletes for file in group.files),
    )
    return any(task.key_metadata is not None for task in task_group.tasks) or any(
        delete.key_metadata is not None for delete in deletes
    )


TaskGroup: TypeAlias = ScanTaskGroup | ChangelogTaskGroup
"""What one Spark task reads."""


def delete_file_ref(data_file: DataFile, data_sequence_number: int) -> DeleteFileRef:
    """The part of a delete file's metadata that executors need."""
    return DeleteFileRef(
        data_file.file_path,
        data_file.file_format,
        data_sequence_number,
        data_file.file_size_in_bytes,
        data_file.record_count,
        data_file.content_offset,
        data_file.content_size_in_bytes,
        data_file.key_metadata,
    )
