"""Holds the state of a table, which its reads and writes share (`TableBase`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from icebergds.api.display import table_html, table_text
from icebergds.api.inspect import InspectTable
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.operations import TableOperations, TableState
from icebergds.commit.staging import StagedOperations
from icebergds.errors import ValidationError
from icebergds.io.fileio import FileIO
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.labels import NO_LABELS, Labels
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef, Snapshots
from icebergds.spec.sort import SortOrder


@dataclass(slots=True)
class TableBase:
    """A table's state when it was last loaded, refreshed or changed, and how to find it.

    The operations on a table are in the classes that `Table` adds to this one.
    """

    _address: TableAddress
    _state: TableState
    _operations: TableOperations | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self._state.name

    def __repr__(self) -> str:
        return table_text(self._state)

    def _repr_html_(self) -> str:
        return table_html(self._state)

    @property
    def metadata(self) -> TableMetadata:
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        return self._state.metadata_location

    @property
    def io(self) -> FileIO:
        return self._state.io

    @property
    def labels(self) -> Labels:
        """Labels that the catalog's server gave the table when it was loaded; mostly none.

        Pickled tables have none until they are refreshed.
        """
        return self._state.labels

    def refresh(self) -> Self:
        """Updates this object to the table's current state, and returns it."""
        operations = self._operations
        self._state = self._address.load() if operations is None else operations.refresh()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The operations may hold connections, which cannot be pickled.
        return type(self), (self._address, replace(self._state, labels=NO_LABELS))

    def location(self) -> str:
        """The table's base location, as in its metadata."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def spec(self) -> PartitionSpec:
        """The current partition spec, which new files are written with."""
        return self.metadata.spec()

    def sort_order(self) -> SortOrder:
        """The current sort order, which new files should be sorted by."""
        return self.metadata.sort_order()

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def inspect(self) -> InspectTable:
        """The table's metadata as tables: snapshots, files, partitions and others."""
        return InspectTable(self._state, isinstance(self._operations, StagedOperations))

    def current_snapshot(self) -> Snapshot | None:
        """The current snapshot of the main branch; None if the table has no snapshot yet."""
        return self.metadata.current_snapshot()

    def snapshots(self) -> Snapshots:
        """All snapshots that have not been expired."""
        return Snapshots(self.metadata.snapshots)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with this id, or None."""
        return self.metadata.snapshots_by_id.get(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """The snapshot of a branch or tag, or None."""
        ref = self.metadata.refs.get(name)
        return None if ref is None else self.metadata.snapshots_by_id.get(ref.snapshot_id)

    def history(self) -> list[SnapshotLogEntry]:
        """The snapshots that were current on main, with their times, oldest first."""
        return list(self.metadata.snapshot_log)

    def schemas(self) -> Mapping[int, Schema]:
        """The schemas that the table has had, by their ids."""
        return dict(self.metadata.schemas_by_id)

    def specs(self) -> Mapping[int, PartitionSpec]:
        """The partition specs that the table has had, by their ids."""
        return dict(self.metadata.specs_by_id)

    def sort_orders(self) -> Mapping[int, SortOrder]:
        """The sort orders that the table has had, by their ids."""
        return {order.order_id: order for order in self.metadata.sort_orders}

    def refs(self) -> Mapping[str, SnapshotRef]:
        """The branches and tags, by name."""
        return self.metadata.refs

    def _current(self) -> LoadedTable:
        """Loads the table's current state.

        Raises:
            InvalidOptionError: the table was loaded from a metadata file, which cannot change; or
                it was copied or moved, and its old location is not mapped to the new one.
            ValidationError: the name now belongs to another table.
        """
        table = load_for_write(self._address, self._operations)
        self._operations = table.operations
        known, found = self.metadata.table_uuid, table.metadata.table_uuid
        if known is not None and found != known:
            raise ValidationError(
                f"table {table.name} was dropped and re-created since it was loaded: its UUID is "
                f"{found}, expected {known}; load it again"
            )
        return replace(table, seen=self.metadata)

    def _options(
        self,
        options: Mapping[str, str] | None,
        snapshot_properties: Mapping[str, str] | None,
        **arguments: str | None,
    ) -> WriteOptions:
        return WriteOptions.of(self._address, options, snapshot_properties, **arguments)
