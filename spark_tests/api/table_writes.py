"""Small tables that are written to without Spark, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from icebergds import Schema, Table, load_catalog, load_table
from icebergds.catalog.address import TableAddress
from icebergds.commit.snapshot_commit import Committed
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.operations.write.arrow_rows import write_rows
from icebergds.operations.write.options import parse_write_options
from icebergds.spec.manifest import ManifestEntry
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import INT, LONG, STRING, NestedField
from icebergds.testing.faults import Faults, FaultyFileIO

SCHEMA = Schema(
    (NestedField(1, "id", LONG), NestedField(2, "day", INT), NestedField(3, "name", STRING))
)
IMPATIENT = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.num-retries": "1",
}


class FaultyAddress(TableAddress):
    """The address of a location whose storage fails as `Faults` says."""

    faults: Faults

    def _io(self) -> FileIO:
        return FaultyFileIO(FileIO(), self.faults)


def faulty(location: str | Path, faults: Faults) -> FaultyAddress:
    address = FaultyAddress(str(location))
    object.__setattr__(address, "faults", faults)
    return address


def new_table(
    directory: Path,
    schema: Schema = SCHEMA,
    *,
    partition_by: str = "",
    sort_by: str = "",
    version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """A table without rows at `<directory>/db/t`, named by its location."""
    given = {**IMPATIENT, **(properties or {}), "format-version": str(version)}
    table = load_catalog("lake", warehouse=str(directory)).create_table(
        "db.t", schema, partition_spec=partition_by, sort_order=sort_by, properties=given
    )
    return load_table(table.location())


def rows(*ids: int, day: int = 0) -> pa.Table:
    """Rows of `SCHEMA`, named by their ids."""
    return arrow(SCHEMA, [(i, day, f"n{i}") for i in ids])


def arrow(schema: Schema, values: Sequence[Sequence[Any]]) -> pa.Table:
    """An Arrow table of in-memory values, a tuple a row."""
    columns = [
        to_array(field.field_type, [row[at] for row in values])
        for at, field in enumerate(schema.fields)
    ]
    return pa.Table.from_arrays(columns, schema=schema_to_arrow(schema))


def write(
    address: TableAddress | Path | str, given: Any, *, overwrite: bool = False, **options: str
) -> Committed:
    """Writes with options, whose names have `_` for a hyphen and `__` for a dot."""
    if not isinstance(address, TableAddress):
        address = TableAddress(str(address))
    parsed = parse_write_options({**named(options), "path": address.path}, address)
    return write_rows(parsed, given, overwrite=overwrite)


def named(options: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}


def ids(table: Table, **scan: Any) -> list[int]:
    """The column `id` of all rows, in order."""
    return sorted(table.scan(columns="id", **scan).to_arrow()["id"].to_pylist())


def head(table: Table) -> Snapshot:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot


def entries(table: Table, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
    """The live files of a snapshot, the current one by default."""
    metadata = table.refresh().metadata
    return [
        entry
        for manifest in read_snapshot_manifests(table.io, snapshot or head(table))
        for entry in read_manifest(
            table.io, manifest, metadata.specs_by_id, metadata.schema(), live_only=True
        )
    ]


def data_files(location: str | Path) -> list[Path]:
    """The files below a table's data directory."""
    return sorted(path for path in Path(location, "data").rglob("*") if path.is_file())


def metadata_files(location: str | Path) -> list[str]:
    return sorted(path.name for path in Path(location, "metadata").glob("*.metadata.json"))
