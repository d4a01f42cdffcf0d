"""Writes of each kind to a table of a catalog, whose storage and commits fail as planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from built.api_tables import TABLE, Properties, create_table, ids_of, rows
from built.commit_tables import IMPATIENT

from icebergds.api.catalog import load_catalog
from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.base import Catalog
from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import NoSuchTableError
from icebergds.operations.write.arrow_rows import write_rows
from icebergds.operations.write.options import parse_write_options
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.testing.faults import Faults, FaultyFileIO, FaultyOperations

CALLS = (
    "open_output",
    "write_stream",
    "close_stream",
    "write",
    "create",
    "delete",
    "delete_all",
    "commit",
)
"""What a write calls that changes something."""

BATCH = "batch"
"""The entry of a snapshot's summary by which a user knows a write again."""

_OPTIONS = {
    "append": {},
    "overwrite": {"overwrite-filter": "day = 1", "isolation-level": "serializable"},
    "create": {
        "create": "true",
        "partition-by": "day",
        **{f"table-property.{name}": value for name, value in IMPATIENT.items()},
    },
}


class FaultyAddress(TableAddress):
    """A table of a catalog whose storage and commits go through `Faults`."""

    faults: Faults

    def _load_catalog(self) -> Catalog:
        catalog = super()._load_catalog()
        assert isinstance(catalog, FileSystemCatalog | SqlCatalog)
        return replace(catalog, io=FaultyFileIO(catalog.io, self.faults))

    def operations(self) -> TableOperations:
        return FaultyOperations(super().operations(), self.faults)

    def create(self, updates: Sequence[TableUpdate]) -> TableState:
        return self.faults.around("commit", lambda: TableAddress.create(self, updates))


def prepare(catalog: Properties, kind: str) -> None:
    """The table before a write: days 0 and 1 with a row each; none, where it is to be created."""
    if kind == "create":
        load_catalog("lake", **catalog).create_namespace_if_not_exists("db")
        return
    table = create_table(catalog, partition_by="day")
    table.append(pa.concat_tables([rows(1, day=0), rows(2, day=1)]))


def ids_before(kind: str) -> list[int]:
    return [] if kind == "create" else [1, 2]


def ids_after(kind: str) -> list[int]:
    return {"append": [1, 2, 10, 11], "create": [10, 11]}.get(kind, [1, 10, 11])


def write(catalog: Properties, kind: str, faults: Faults | None = None) -> None:
    """Writes rows 10 and 11 of day 1; over those of day 1, where it is an overwrite."""
    address = FaultyAddress(TABLE, "lake", catalog)
    object.__setattr__(address, "faults", faults or Faults(counted=()))
    options = {**_OPTIONS[kind], f"snapshot-property.{BATCH}": kind}
    parsed = parse_write_options({**options, "path": TABLE}, address)
    write_rows(parsed, rows(10, 11, day=1), overwrite=kind == "overwrite")


def write_unless_done(catalog: Properties, kind: str) -> None:
    """Writes again as a user does who does not know what became of the first time."""
    table = find_table(catalog)
    snapshots = () if table is None else table.snapshots()
    if not any(snapshot.summary.get(BATCH) == kind for snapshot in snapshots):
        write(catalog, kind)


def find_table(catalog: Properties) -> Table | None:
    try:
        return load_catalog("lake", **catalog).load_table(TABLE)
    except NoSuchTableError:
        return None


def ids_now(catalog: Properties) -> list[int]:
    """The ids of all rows; none where there is no table."""
    table = find_table(catalog)
    return [] if table is None else ids_of(table)
