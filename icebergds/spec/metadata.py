"""Models table metadata (spec: Table Metadata)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from icebergds.display import WIDTH, html_table, joined, printable, time_text
from icebergds.errors import InvalidMetadataError, NoSuchSnapshotError
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.lazy_snapshots import LazySnapshots
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.read_only import ReadOnlyDict, set_read_only
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import (
    MAIN_BRANCH,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from icebergds.spec.sort import SortOrder
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.table_properties import METADATA_PATH
from icebergds.spec.types import StructType

MAX_FORMAT_VERSION = 3


def metadata_directory(location: str) -> str:
    """The default metadata directory of a table at a location."""
    return f"{location.rstrip('/')}/metadata"


@dataclass(frozen=True)
class TableMetadata:
    """One version of a table's metadata, of format version 1, 2 or 3.

    Times are milliseconds since the epoch. `current_snapshot_id` is None if the table has no
    current snapshot. `table_uuid` is None only in old version 1 tables. `snapshots` is a tuple, or
    a sequence that is loaded when it is needed. `unknown` keeps JSON members that the spec does not
    define, so that they are written back.
    """

    format_version: int
    table_uuid: str | None
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: int
    last_sequence_number: int = 0
    properties: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    current_snapshot_id: int | None = None
    snapshots: Sequence[Snapshot] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=ReadOnlyDict)
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int = 0
    encryption_keys: tuple[EncryptedKey, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_read_only(self, "properties")
        set_read_only(self, "refs")

    def __repr__(self) -> str:
        lines = (f"  {name}: {printable(text)}" for name, text in self._rows())
        return "\n".join(("TableMetadata", *lines))

    def _repr_html_(self) -> str:
        return html_table("Table metadata", (), self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("format_version", str(self.format_version)),
            ("table_uuid", str(self.table_uuid)),
            ("location", self.location),
            ("last_updated_ms", f"{self.last_updated_ms}, {time_text(self.last_updated_ms)}"),
            ("schemas", f"{len(self.schemas):,}, current {self.current_schema_id}"),
            ("partition_specs", f"{len(self.partition_specs):,}, default {self.default_spec_id}"),
            ("sort_orders", f"{len(self.sort_orders):,}, default {self.default_sort_order_id}"),
            ("snapshots", f"{self.snapshots_known()}, current {self.current_snapshot_id}"),
            ("refs", joined(list(self.refs), "reference", WIDTH - 10)),
            ("properties", joined(list(self.properties), "property", WIDTH - 16)),
            ("statistics", str(len(self.statistics) + len(self.partition_statistics))),
        ]

    def snapshots_known(self) -> str:
        """How many snapshots there are, for messages; never loads them."""
        if isinstance(self.snapshots, LazySnapshots):
            return self.snapshots.known_count()
        return f"{len(self.snapshots):,}"

    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """A schema of the table's history.

        Raises InvalidMetadataError if the metadata does not list it.
        """
        found = self.schemas_by_id.get(schema_id)
        if found is None:
            raise InvalidMetadataError(
                f"table at {self.location}: its metadata has no schema {schema_id}, only schemas "
                f"{sorted(self.schemas_by_id)}"
            )
        return found

    def spec(self) -> PartitionSpec:
        """The partition spec that new files are written with."""
        return self.specs_by_id[self.default_spec_id]

    def sort_order(self) -> SortOrder:
        """The sort order that new files should be written with; unsorted if it is not listed."""
        listed = (
            order for order in self.sort_orders if order.order_id == self.default_sort_order_id
        )
        return next(listed, SortOrder())

    def partition_type(self, spec: PartitionSpec) -> StructType:
        """The struct of a spec's partition values, even if source columns were dropped since.

        The type of a dropped column is the one in the newest schema that has it.
        """
        return partition_type(spec, self.schema(), self.schema_history)

    def current_snapshot(self) -> Snapshot | None:
        """The snapshot of the main branch, or None if there is none."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshots_by_id[self.current_snapshot_id]

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot, or None if it does not exist (any more)."""
        return self.snapshots_by_id.get(snapshot_id)

    def snapshot_by_ref(self, name: str) -> Snapshot | None:
        """The snapshot that a branch or tag refers to, or None if there is no such reference."""
        ref = self.refs.get(name)
        return None if ref is None else self.snapshots_by_id[ref.snapshot_id]

    def head_of(self, branch: str) -> Snapshot | None:
        """The snapshot that a commit to a branch follows; None if it would be the table's first.

        A branch that does not exist yet starts at main's head.
        """
        return self.snapshot_by_ref(branch if branch in self.refs else MAIN_BRANCH)

    def lineage(self, head: Snapshot | None) -> list[Snapshot]:
        """A snapshot and its ancestors as far as they are known, newest first."""
        found: list[Snapshot] = []
        while head is not None:
            found.append(head)
            parent_id = head.parent_snapshot_id
            head = None if parent_id is None else self.snapshot_by_id(parent_id)
        return found

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot | None:
        """The snapshot that was current at a time, or None if the log does not reach back so far.

        Raises NoSuchSnapshotError if that snapshot has expired.
        (spec: Point in Time Reads)
        """
        found: int | None = None
        for entry in self.snapshot_log:
            if entry.timestamp_ms <= timestamp_ms:
                found = entry.snapshot_id
        if found is None:
            return None
        snapshot = self.snapshots_by_id.get(found)
        if snapshot is None:
            raise NoSuchSnapshotError(
                f"table at {self.location}: snapshot {found}, current at {timestamp_ms} ms, has "
                "expired; read as of a later time"
            )
        return snapshot

    @property
    def metadata_directory(self) -> str:
        """The directory of new metadata files, manifest lists and manifests."""
        return (METADATA_PATH.of(self.properties) or metadata_directory(self.location)).rstrip("/")

    @cached_property
    def schema_history(self) -> tuple[Schema, ...]:
        """All schemas, newest first, for looking up dropped columns.

        Newer schemas have higher ids; their order in the metadata has no meaning.
        """
        return tuple(sorted(self.schemas, key=lambda schema: schema.schema_id, reverse=True))

    @cached_property
    def schemas_by_id(self) -> dict[int, Schema]:
        """Every schema by its id."""
        return ReadOnlyDict({schema.schema_id: schema for schema in self.schemas})

    @cached_property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """Every partition spec by its id."""
        return ReadOnlyDict({spec.spec_id: spec for spec in self.partition_specs})

    @cached_property
    def snapshots_by_id(self) -> Mapping[int, Snapshot]:
        """Every snapshot by its id."""
        if isinstance(self.snapshots, LazySnapshots):
            return self.snapshots.by_id
        return ReadOnlyDict({snapshot.snapshot_id: snapshot for snapshot in self.snapshots})

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for derived in ("schema_history", "schemas_by_id", "specs_by_id", "snapshots_by_id"):
            state.pop(derived, None)
        return state
