"""Replaces a table by another definition and other rows, in one commit that keeps its history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.catalog.new_properties import new_table_properties
from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.commit.retry import commit_change
from icebergds.errors import (
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    ValidationError,
)
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.write.create import check_properties, naming_columns
from icebergds.operations.write.options import Creation
from icebergds.spec.evolution.replacement import replacing_schema
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import NO_FIELD_ID
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot
from icebergds.spec.table_properties import FORMAT_VERSION
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.requirements import AssertRefSnapshotId, TableRequirement
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from icebergds.spec.values.dates import now_ms


@dataclass(frozen=True, slots=True)
class ReplacedTable:
    """A table whose next commit replaces it (`TableOperations`).

    Until then it seems to have the new definition and no rows; other branches, tags and all
    snapshots are kept.

    Attributes:
        operations: the operations of the table.
        creation: the new definition.
        columns: the new columns; their ids do not matter.
        planned: the metadata that the rows are written for; None while that is planned.
        only_head: whether only the snapshot of `head` may be replaced; None means no snapshot.
    """

    operations: TableOperations
    creation: Creation
    columns: Schema
    planned: TableMetadata | None = None
    only_head: bool = False
    head: Snapshot | None = None
    _found: dict[str, TableState] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.operations.name

    def refresh(self) -> TableState:
        """The table as it is now, with the new definition and without rows."""
        found = self.operations.refresh()
        try:
            return self.replaced(found)
        except IcebergError:
            # `commit` raises it: it is known there that nothing was committed.
            return found

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Replaces the table's definition, and applies the updates to it.

        Raises:
            ValidationError: another commit has changed the ids that new files are written with, or
                rows that the new ones were computed from.
        """
        found = self._found[base.metadata_location]
        self._check(found)
        head = found.metadata.head_of(MAIN_BRANCH)
        unchanged = AssertRefSnapshotId(MAIN_BRANCH, None if head is None else head.snapshot_id)
        others = [each for each in requirements if not isinstance(each, AssertRefSnapshotId)]
        return self.operations.commit(
            found, [*others, unchanged], [*self._updates(found.metadata), *updates]
        )

    def replaced(self, found: TableState) -> TableState:
        """A state of the table with the new definition and without rows."""
        self._found[found.metadata_location] = found
        updates = self._updates(found.metadata)
        try:
            metadata = apply_updates(found.metadata, updates, now_ms=now_ms())
        except InvalidMetadataError as error:
            raise InvalidMetadataError(f"table {self.name}: {error}") from None
        return replace(found, metadata=metadata)

    def is_replaced(self, state: TableState) -> bool:
        """Whether the table behind a state already has the definition, and no rows."""
        found = self._found[state.metadata_location].metadata
        wanted = state.metadata
        return (
            found.head_of(MAIN_BRANCH) is None
            and _written_with(found) == _written_with(wanted)
            and found.properties == wanted.properties
        )

    def _check(self, found: TableState) -> None:
        now, planned = self.replaced(found).metadata, self.planned
        if planned is not None and _written_with(planned) != _written_with(now):
            raise ValidationError(
                f"table {self.name}: another commit changed the table's columns, partitioning or "
                "sort order while the rows that replace it were written; repeat the write"
            )
        if self.only_head and found.metadata.head_of(MAIN_BRANCH) != self.head:
            raise ValidationError(
                f"table {self.name}: another commit changed rows that this write, whose rows come "
                "from the table, was to replace; read the table again and repeat the write"
            )

    def _updates(self, metadata: TableMetadata) -> list[TableUpdate]:
        creation = self.creation
        version = creation.format_version
        schema = replacing_schema(metadata.schema(), self.columns, metadata.last_column_id)
        spec = parse_partition_by(creation.partition_by, schema)
        # The fields of other specs keep their ids.
        fields = tuple(replace(each, field_id=NO_FIELD_ID) for each in spec.fields)
        return [
            *([] if version is None else [UpgradeFormatVersion(version)]),
            RemoveSnapshotRef(MAIN_BRANCH),
            AddSchema(schema),
            SetCurrentSchema(LAST_ADDED),
            AddPartitionSpec(replace(spec, fields=fields)),
            SetDefaultSpec(LAST_ADDED),
            AddSortOrder(parse_sort_by(creation.sort_by, schema)),
            SetDefaultSortOrder(LAST_ADDED),
            SetProperties(naming_columns(creation.properties, schema)),
        ]


def plan_replacement(
    table: LoadedTable, creation: Creation, columns: Schema, *, only_head: bool = False
) -> LoadedTable:
    """Plans the replacement of a table; its next commit carries it out.

    Columns that have the name and the type of an old one keep its id.

    Args:
        columns: the rows' columns; their ids do not matter.
        only_head: fail rather than replace rows of later commits, too.

    Raises:
        InvalidOptionError: `partition-by`, `sort-by` or properties do not fit, or `location` is not
            the table's.
        InvalidMetadataError: the definition is invalid, or the format version has no such change.
    """
    chosen = creation.location
    if chosen is not None and chosen.rstrip("/") != table.metadata.location.rstrip("/"):
        raise InvalidOptionError(
            f"option 'location' = {chosen!r}: table {table.name}, which is replaced, is at "
            f"{table.metadata.location} and stays there; leave the option out, or drop the table"
        )
    prescribed = new_table_properties(table.address.all_catalog_properties(), creation.properties)
    if FORMAT_VERSION not in creation.properties:
        # It is for new tables: this one keeps its own version.
        prescribed.pop(FORMAT_VERSION, None)
    creation = replace(creation, properties=prescribed)
    replaced = ReplacedTable(table.operations, creation, columns)
    state = replaced.replaced(table.state)
    check_properties(state.metadata)
    head = table.metadata.head_of(MAIN_BRANCH)
    operations = replace(replaced, planned=state.metadata, only_head=only_head, head=head)
    return replace(table, operations=operations, state=state, seen=None)


def replace_definition(table: LoadedTable, creation: Creation, columns: Schema) -> TableState:
    """Replaces a table's definition and removes its rows, in one commit that keeps its history.

    Arguments and further errors are those of `plan_replacement`.

    Raises:
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the table was replaced is not known.
    """
    planned = plan_replacement(table, creation, columns)
    assert isinstance(planned.operations, ReplacedTable), "it was made above"
    # No files are written that another commit could leave with wrong ids.
    operations = replace(planned.operations, planned=None)
    return commit_change(operations, _no_rows, operations.is_replaced, planned.state)


def _no_rows(state: TableState) -> Change:
    return Change([], [])


def _written_with(metadata: TableMetadata) -> tuple[object, ...]:
    """What new files depend on."""
    return metadata.schema().fields, metadata.spec(), metadata.sort_order()
