"""Models the updates of table metadata (REST catalog: `TableUpdate`).

Every change to a table is a list of these, which `apply_updates` applies to current metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot, SnapshotRef
from icebergds.spec.sort import SortOrder
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile

LAST_ADDED = -1
"""Stands for the id of the schema, spec or sort order that the same list of updates added."""


@dataclass(frozen=True, slots=True)
class AssignUuid:
    """Gives a table its UUID."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """Upgrades the format version; it is never downgraded."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Adds a schema with a new id, or reuses an equal one."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Sets the current schema; `LAST_ADDED` for the one added before."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Adds a partition spec with a new id, or reuses an equal one."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Sets the default spec, that of new files; `LAST_ADDED` for the one added before."""

    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Adds a sort order with a new id, or reuses an equal one."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Sets the default sort order; `LAST_ADDED` for the one added before."""

    sort_order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Adds a snapshot, without a reference to it."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Creates or moves a branch or tag."""

    name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Removes snapshots, and their references and statistics."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Removes a branch or tag."""

    name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Sets the table's location, for new files."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Sets table properties."""

    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Removes table properties; missing ones are ignored."""

    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Sets the statistics file of a snapshot, replacing an older one."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Removes the statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Sets the partition statistics file of a snapshot, replacing an older one."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Removes the partition statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Removes partition specs that no manifest uses; never the default one."""

    spec_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Removes schemas that no snapshot uses; never the current one."""

    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """Adds an encryption key."""

    encryption_key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """Removes an encryption key."""

    key_id: str


TableUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)
