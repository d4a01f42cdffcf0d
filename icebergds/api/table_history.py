"""Look-ups of `Table` in its history: snapshots, schemas, partition specs and sort orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot, SnapshotLogEntry
from icebergds.spec.sort import SortOrder

if TYPE_CHECKING:
    from icebergds.api.table import Table


def snapshot_by_id(self: Table, snapshot_id: int) -> Snapshot | None:
    """The snapshot with this id, or None."""
    return self.metadata.snapshots_by_id.get(snapshot_id)


def snapshot_by_name(self: Table, name: str) -> Snapshot | None:
    """The snapshot of a branch or tag, or None."""
    ref = self.metadata.refs.get(name)
    return None if ref is None else self.metadata.snapshots_by_id.get(ref.snapshot_id)


def history(self: Table) -> list[SnapshotLogEntry]:
    """Since when which snapshot was the current one of main, the oldest first."""
    return list(self.metadata.snapshot_log)


def schemas(self: Table) -> Mapping[int, Schema]:
    """The schemas that the table has had, by their ids."""
    return dict(self.metadata.schemas_by_id)


def specs(self: Table) -> Mapping[int, PartitionSpec]:
    """The partition specs that the table has had, by their ids."""
    return dict(self.metadata.specs_by_id)


def sort_orders(self: Table) -> Mapping[int, SortOrder]:
    """The sort orders that the table has had, by their ids."""
    return {order.order_id: order for order in self.metadata.sort_orders}
