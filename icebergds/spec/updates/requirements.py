"""Checks the requirements of a commit (REST catalog: `TableRequirement`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.errors import AlreadyExistsError, CommitConflictError
from icebergds.spec.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The table does not exist."""


@dataclass(frozen=True, slots=True)
class AssertTableUuid:
    """The table is still the same, not another one with the same name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A branch or tag refers to a snapshot; None: it does not exist."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column was added meanwhile."""

    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema is this one."""

    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field was added meanwhile."""

    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default partition spec is this one."""

    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order is this one."""

    default_sort_order_id: int


TableRequirement: TypeAlias = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def check_requirements(
    requirements: Iterable[TableRequirement], metadata: TableMetadata | None, name: str
) -> None:
    """Raises if a table does not meet the requirements of a commit.

    Args:
        metadata: the table's current metadata; None if it does not exist.
        name: the table's name in messages.

    Raises:
        AlreadyExistsError: the table was to be created but exists.
        CommitConflictError: another commit changed what this one was based on.
    """
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if metadata is not None:
                raise AlreadyExistsError(f"table {name} already exists")
            continue
        if metadata is None:
            raise CommitConflictError(f"table {name} does not exist any more")
        expected, found, what = _compared(requirement, metadata)
        if expected != found:
            raise CommitConflictError(
                f"table {name} was changed by another commit: {what} is {found}, expected "
                f"{expected}"
            )


def _compared(requirement: TableRequirement, metadata: TableMetadata) -> tuple[object, object, str]:
    """The expected value, the actual value, and what they are."""
    match requirement:
        case AssertTableUuid(uuid=uuid):
            found = metadata.table_uuid
            return uuid.lower(), None if found is None else found.lower(), "its UUID"
        case AssertRefSnapshotId(ref=ref, snapshot_id=snapshot_id):
            at = metadata.refs.get(ref)
            return snapshot_id, None if at is None else at.snapshot_id, f"the snapshot of {ref!r}"
        case AssertLastAssignedFieldId(last_assigned_field_id=expected):
            return expected, metadata.last_column_id, "its last column id"
        case AssertCurrentSchemaId(current_schema_id=expected):
            return expected, metadata.current_schema_id, "its current schema"
        case AssertLastAssignedPartitionId(last_assigned_partition_id=expected):
            return expected, metadata.last_partition_id, "its last partition field id"
        case AssertDefaultSpecId(default_spec_id=expected):
            return expected, metadata.default_spec_id, "its default partition spec"
        case AssertDefaultSortOrderId(default_sort_order_id=expected):
            return expected, metadata.default_sort_order_id, "its default sort order"
        case _:
            raise TypeError(f"unknown requirement {requirement!r}")
