"""Builds small tables by committing given files, and says what their snapshots hold."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from built.contents import snapshot_entries
from built.files import ids_in, write_parquet_file
from icebergds.catalog.filesystem.commits import create_at_location, location_operations
from icebergds.commit.operations import TableOperations, TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.snapshot_commit import Action, Committed, commit_snapshot
from icebergds.encryption.key_metadata import data_key_length
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.spec.manifest import DataFile, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, LONG, NestedField
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import SetProperties, TableUpdate

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "day", INT)))
BY_DAY = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
"""Days are partitions."""

IMPATIENT = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.retry.num-retries": "100",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.num-retries": "1",
}
"""Properties of a table whose commits hardly wait for others."""


@dataclass(frozen=True, slots=True)
class CommitTable:
    """A table on the local disk and how it is committed to."""

    location: Path
    operations: TableOperations

    @property
    def state(self) -> TableState:
        return self.operations.refresh()

    @property
    def metadata(self) -> TableMetadata:
        return self.state.metadata

    @property
    def head(self) -> Snapshot:
        """The snapshot of the main branch."""
        snapshot = self.metadata.current_snapshot()
        assert snapshot is not None
        return snapshot

    def commit(self, action: Action, branch: str = "main", **options: Any) -> Committed:
        return commit_snapshot(self.operations, action, CommitOptions(branch, **options))

    def change(self, *updates: TableUpdate) -> None:
        """Changes metadata other than snapshots."""
        self.operations.commit(self.state, [], list(updates))

    def set_properties(self, **properties: Any) -> None:
        """Sets table properties; `__` stands for a dot and `_` for a hyphen."""
        named = {k.replace("__", ".").replace("_", "-"): str(v) for k, v in properties.items()}
        self.change(SetProperties(named))

    def file(self, ids: Sequence[int], day: int | None = 0, spec_id: int | None = None) -> DataFile:
        """A data file of rows of one day."""
        return data_file(self.location, self.metadata, ids, day, spec_id)

    def manifests(self, snapshot: Snapshot | None = None) -> tuple[ManifestFile, ...]:
        return read_snapshot_manifests(self.state.io, snapshot or self.head)

    def entries(self, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
        """All entries of a snapshot's manifests, removed files too."""
        state = self.state
        return snapshot_entries(state.io, state.metadata, snapshot or self.head)

    def files(self, snapshot: Snapshot | None = None) -> list[PlannedFile]:
        """What a scan of a snapshot reads."""
        state = self.state
        metadata = state.metadata
        return plan_files(state.io, metadata, snapshot or self.head, metadata.schema()).files

    def paths(self, snapshot: Snapshot | None = None) -> set[str]:
        return {file.entry.data_file.file_path for file in self.files(snapshot)}

    def ids(self, branch: str = "main") -> list[int]:
        """The column `id` of every row of a branch, in order."""
        snapshot = self.metadata.snapshot_by_ref(branch)
        assert snapshot is not None
        files = [file.entry.data_file for file in self.files(snapshot)]
        return sorted(i for file in files for i in ids_in(file))

    def left_over(self) -> set[str]:
        """Names of manifests and manifest lists on disk that no snapshot uses."""
        metadata = self.metadata
        used = {snapshot.manifest_list for snapshot in metadata.snapshots}
        for snapshot in metadata.snapshots:
            used |= {manifest.manifest_path for manifest in self.manifests(snapshot)}
        names = {Path(location or "").name for location in used}
        return {path.name for path in (self.location / "metadata").glob("*.avro")} - names


def create_table(
    location: Path,
    *,
    spec: PartitionSpec = BY_DAY,
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
    schema: Schema = SCHEMA,
) -> CommitTable:
    """A new table of `id` and `day` without rows, impatient when it meets other writers."""
    io = FileIO()
    updates = new_table_updates(
        schema,
        location=str(location),
        spec=spec,
        format_version=format_version,
        properties={**IMPATIENT, **(properties or {})},
    )
    create_at_location(io, str(location), updates, "db.t")
    (location / "data").mkdir(exist_ok=True)
    return CommitTable(location, location_operations(io, str(location), "db.t"))


def open_table(location: Path) -> CommitTable:
    """The table that is at a location."""
    return CommitTable(location, location_operations(FileIO(), str(location), "db.t"))


def data_file(
    location: Path,
    metadata: TableMetadata,
    ids: Sequence[int],
    day: int | None,
    spec_id: int | None = None,
) -> DataFile:
    """Writes a data file of rows of one day."""
    spec_id = metadata.default_spec_id if spec_id is None else spec_id
    path = location / "data" / f"{uuid.uuid4()}.parquet"
    rows = [(i, day) for i in ids]
    key_length = data_key_length(metadata.properties)
    written = write_parquet_file(path, metadata.schema(), rows, key_length=key_length)
    partition = tuple(
        day if part.source_id == 2 else None for part in metadata.specs_by_id[spec_id].fields
    )
    return replace(written, spec_id=spec_id, partition=partition)
