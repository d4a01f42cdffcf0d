"""Tables of `id` and `day` in catalogs of each kind, written with Arrow's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from icebergds.api.catalog import load_catalog
from icebergds.api.table import Table
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.spec.snapshot import Snapshot

Properties: TypeAlias = Mapping[str, str]
"""Properties of a catalog."""

TABLE = "db.t"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32())])
IMPATIENT = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.retry.num-retries": "100",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.num-retries": "1",
}


def catalog_in(directory: Path, uri: str | None = None) -> dict[str, str]:
    """A catalog whose tables are in a directory: of the database, or without one."""
    warehouse = {"warehouse": str(directory / "warehouse")}
    return warehouse if uri is None else {"type": "sql", "uri": uri, **warehouse}


def create_table(catalog: Properties, *, partition_by: str = "", **properties: str) -> Table:
    """A new table; in names of properties `__` stands for a dot and `_` for a hyphen."""
    lake = load_catalog("lake", **catalog)
    lake.create_namespace_if_not_exists("db")
    given = {k.replace("__", ".").replace("_", "-"): v for k, v in properties.items()}
    return lake.create_table(
        TABLE, SCHEMA, partition_spec=partition_by, properties={**IMPATIENT, **given}
    )


def open_table(catalog: Properties) -> Table:
    """The table as it is now."""
    return load_catalog("lake", **catalog).load_table(TABLE)


def rows(*ids: int, day: int = 0) -> pa.RecordBatch:
    """Rows of one day."""
    return pa.record_batch([list(ids), [day] * len(ids)], schema=SCHEMA)


def ids_of(table: Table, branch: str | None = None) -> list[int]:
    """The ids of a branch's rows, in order."""
    found: list[int] = table.scan(branch=branch).to_arrow()["id"].to_pylist()
    return sorted(found)


def days_of(table: Table) -> Mapping[tuple[int, int], int]:
    """How often each row of `id` and `day` is there."""
    columns = table.scan(columns=["id", "day"]).to_arrow().to_pydict()
    return Counter(zip(columns["id"], columns["day"], strict=True))


def history(table: Table, branch: str = "main") -> list[Snapshot]:
    """The snapshots of a branch from its first to its head, by their parents."""
    snapshot = table.metadata.snapshot_by_ref(branch)
    found: list[Snapshot] = []
    while snapshot is not None:
        found.append(snapshot)
        snapshot = table.metadata.snapshot_by_id(snapshot.parent_snapshot_id or 0)
    return found[::-1]


def unused_files(table: Table) -> set[str]:
    """Data files, manifests and manifest lists in a table's directories that no snapshot uses."""
    metadata, io = table.metadata, table.io
    used = {snapshot.manifest_list or "" for snapshot in metadata.snapshots}
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in metadata.snapshots
        for manifest in read_snapshot_manifests(io, snapshot)
    }
    used |= manifests.keys()
    for manifest in manifests.values():
        entries = read_manifest(io, manifest, metadata.specs_by_id, metadata.schema())
        used |= {entry.data_file.file_path for entry in entries}
    root = Path(table.location())
    found = {str(f) for f in (*root.glob("data/**/*"), *root.glob("metadata/*.avro"))}
    return {f for f in found - used if Path(f).is_file()}


def metadata_files(table: Table) -> list[str]:
    """Names of a table's metadata files, oldest first."""
    directory = Path(table.location()) / "metadata"
    names = [file.name for file in directory.glob("*.metadata.json")]
    return sorted(names, key=lambda name: (len(name), name))
