"""Defines the plan of a read of a metadata table, and its tasks, which are sent to executors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from icebergds.commit.operations import TableState
from icebergds.expr.nodes import Expr
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.metadata_tables.metadata_rows import Row
from icebergds.operations.metadata_tables.schemas import MetadataTableSchema
from icebergds.spec.manifest import DataFile, ManifestFile
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class MetadataTablePlan:
    """What all tasks of a read share.

    Attributes:
        state: the state of the table, without its snapshots.
        table: the columns of the metadata table.
        columns: the columns that are read; structs may be narrowed.
        row_filter: bound to `table`; all returned rows match it.
        of_parts: whether `partitions` is read in parts, which several tasks add up
            (`partition_parts_schema`).
        committed_ms: when each snapshot was committed, by its id; for `partitions`.
    """

    kind: MetadataTable
    state: TableState
    table: MetadataTableSchema
    columns: Schema
    row_filter: Expr
    of_parts: bool = False
    committed_ms: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """Reads the entries of manifests."""

    manifests: tuple[ManifestFile, ...]


@dataclass(frozen=True, slots=True)
class AddUpPartitions:
    """Adds up the files of manifests by their partitions.

    Attributes:
        part: the number of the task, if there are several.
    """

    manifests: tuple[ManifestFile, ...]
    part: int = 0


@dataclass(frozen=True, slots=True)
class ReadManifestLists:
    """Reads the manifests that snapshots list."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class ReadPositionDeletes:
    """Reads the rows of position delete files and deletion vectors."""

    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class ReadyRows:
    """Has all rows already: in-memory values of all columns of the metadata table."""

    rows: Iterable[Row]


MetadataTask: TypeAlias = (
    ReadManifests | AddUpPartitions | ReadManifestLists | ReadPositionDeletes | ReadyRows
)
