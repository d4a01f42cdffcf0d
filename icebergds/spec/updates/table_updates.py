"""Changes of table metadata, as the REST catalog specification names them (`TableUpdate`).

Every change of a table is a list of these, applied to fresh metadata by `apply_updates`.
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
    """Raises the format version; never lowers it."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Adds a schema, or finds the one that equals it; its id is assigned."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Makes a schema current; `LAST_ADDED` for the one added before."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Adds a partition spec, or finds the one that equals it; its id is assigned."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Makes a spec the one of new files; `LAST_ADDED` for the one added before."""

    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Adds a sort order, or finds the one that equals it; its id is assigned."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Makes a sort order the default; `LAST_ADDED` for the one added before."""

    sort_order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Adds a snapshot; no reference moves to it yet."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Makes a branch or tag, or moves it."""

    name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Forgets snapshots, and the references and statistics that need them."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Forgets a branch or tag."""

    name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Moves where the table's new files go."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Sets table properties."""

    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Removes table properties; those that are not set are no error."""

    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Registers the statistics file of a snapshot, in the place of an older one."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Forgets the statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Registers the partition statistics file of a snapshot, in the place of an older one."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Forgets the partition statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Forgets partition specs that no manifest uses; never the default one."""

    spec_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Forgets schemas that no snapshot uses; never the current one."""

    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """Adds an encryption key."""

    encryption_key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """Forgets an encryption key."""

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
