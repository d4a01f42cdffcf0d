"""Commits changes of a table's partitioning and sort order (spec: Partition Evolution, Sorting)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.errors import InvalidOptionError
from icebergds.operations.evolution.commit import commit_update
from icebergds.spec.evolution.spec_edits import SpecDraft
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortField, SortOrder
from icebergds.spec.updates.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
)
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSortOrder,
    SetDefaultSortOrder,
    SetDefaultSpec,
)

SpecEdit: TypeAlias = Callable[[SpecDraft, Schema], SpecDraft]
SortEdit: TypeAlias = Callable[[tuple[SortField, ...], Schema], tuple[SortField, ...]]


def spec_draft(metadata: TableMetadata) -> SpecDraft:
    """The current partition spec of a table, to be edited."""
    known = tuple(field for spec in metadata.partition_specs for field in spec.fields)
    fields = metadata.spec().fields
    return SpecDraft(fields, known, metadata.format_version, before=fields)


def update_spec(table: LoadedTable, edits: Sequence[SpecEdit]) -> TableState:
    """Edits the partition spec that new files get, in one commit.

    After a conflict, the edits are repeated on the latest metadata. Existing files keep their
    partitions.

    Raises:
        InvalidOptionError: an edit does not fit the spec or the schema as they are now.
        InvalidMetadataError: the spec would break the specification.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the spec was changed is not known.
    """
    wanted: list[PartitionSpec] = []

    def produce(state: TableState) -> Change:
        metadata, draft = state.metadata, spec_draft(state.metadata)
        for edit in edits:
            draft = edit(draft, metadata.schema())
        spec = PartitionSpec(0, draft.fields)
        wanted.append(spec)
        if spec.has_same_fields(metadata.spec()):
            return Change([], [])
        return Change(
            [
                AssertCurrentSchemaId(metadata.current_schema_id),
                AssertDefaultSpecId(metadata.default_spec_id),
                AssertLastAssignedPartitionId(metadata.last_partition_id),
            ],
            [AddPartitionSpec(spec), SetDefaultSpec(LAST_ADDED)],
        )

    def is_updated(state: TableState) -> bool:
        return bool(wanted) and wanted[-1].has_same_fields(state.metadata.spec())

    return commit_update(table, produce, is_updated)


def replace_sort_order(table: LoadedTable, edits: Sequence[SortEdit]) -> TableState:
    """Replaces the sort order of new files with the one that the edits build from an empty one.

    Raises:
        InvalidOptionError: an edit does not fit the schema as it is now.
        InvalidMetadataError: the order would break the specification.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the order was changed is not known.
    """

    def fields_of(state: TableState) -> tuple[SortField, ...]:
        fields: tuple[SortField, ...] = ()
        for edit in edits:
            fields = edit(fields, state.metadata.schema())
        return fields

    def produce(state: TableState) -> Change:
        metadata, fields = state.metadata, fields_of(state)
        if fields == metadata.sort_order().fields:
            return Change([], [])
        return Change(
            [
                AssertCurrentSchemaId(metadata.current_schema_id),
                AssertDefaultSortOrderId(metadata.default_sort_order_id),
            ],
            [
                AddSortOrder(SortOrder(1 if fields else 0, fields)),
                SetDefaultSortOrder(LAST_ADDED),
            ],
        )

    def is_updated(state: TableState) -> bool:
        try:
            return fields_of(state) == state.metadata.sort_order().fields
        except InvalidOptionError:
            return False

    return commit_update(table, produce, is_updated)
