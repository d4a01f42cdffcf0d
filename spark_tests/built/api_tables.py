"""Builds small tables in catalogs, written with Arrow rows, and says what rows they hold.

Their columns are `id`, `day` and `name`; `DAYS` is the schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from built.commit_tables import IMPATIENT
from built.rows import arrow_table
from built.schemas import optional
from icebergds.api.catalog import load_catalog
from icebergds.api.table import Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.commit.snapshot_commit import Committed
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.io.fileio import FileIO
from icebergds.operations.write.append_overwrite import PreparedWrite, prepare_write
from icebergds.operations.write.arrow_rows import write_rows
from icebergds.operations.write.options import parse_write_options
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, LONG, STRING
from icebergds.testing.faults import Faults, FaultyFileIO
from icebergds.write.task import write_batches

Properties: TypeAlias = Mapping[str, str]
"""Properties of a catalog."""

TABLE = "db.t"
DAYS = Schema((optional(1, "id", LONG), optional(2, "day", INT), optional(3, "name", STRING)))


class FaultyAddress(TableAddress):
    """The address of a location whose storage fails as `Faults` says."""

    faults: Faults

    def _io(self) -> FileIO:
        return FaultyFileIO(FileIO(), self.faults)


def faulty(location: str | Path, faults: Faults) -> FaultyAddress:
    """The address of a table by its location, whose storage fails as `faults` says."""
    address = FaultyAddress(str(location))
    object.__setattr__(address, "faults", faults)
    return address


def catalog_in(directory: Path, uri: str | None = None) -> dict[str, str]:
    """A catalog whose tables are in a directory: that of a database, or one without."""
    warehouse = {"warehouse": str(directory / "warehouse")}
    return warehouse if uri is None else {"type": "sql", "uri": uri, **warehouse}


def create_table(
    catalog: Properties,
    schema: Schema = DAYS,
    *,
    partition_by: str = "",
    sort_by: str = "",
    version: int = 2,
    **properties: str,
) -> Table:
    """A new table, without rows, that hardly waits for other writers.

    In names of properties `__` stands for a dot and `_` for a hyphen.
    """
    lake = load_catalog("lake", location_map=None, **catalog)
    lake.create_namespace_if_not_exists("db")
    given = {**IMPATIENT, **named(properties), "format-version": str(version)}
    return lake.create_table(
        TABLE, schema, partition_spec=partition_by, sort_order=sort_by, properties=given
    )


def open_table(catalog: Properties) -> Table:
    """The table of `create_table` as it is now."""
    return load_catalog("lake", location_map=None, **catalog).load_table(TABLE)


def new_table(
    directory: Path,
    schema: Schema = DAYS,
    *,
    partition_by: str = "",
    sort_by: str = "",
    version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """A new table, without rows, at `<directory>/db/t` and named by its location."""
    created = create_table(
        {"warehouse": str(directory)},
        schema,
        partition_by=partition_by,
        sort_by=sort_by,
        version=version,
        **(properties or {}),
    )
    return load_table(created.location())


def rows(*ids: int, day: int = 0) -> pa.Table:
    """Rows of `DAYS` of one day, named by their ids."""
    return arrow_table(DAYS, [(i, day, f"n{i}") for i in ids])


def write(
    address: TableAddress | Path | str, given: Any, *, overwrite: bool = False, **options: str
) -> Committed | None:
    """Writes with options, in whose names `__` stands for a dot and `_` for a hyphen."""
    if not isinstance(address, TableAddress):
        address = TableAddress(str(address))
    parsed = parse_write_options({**named(options), "path": address.path}, address)
    return write_rows(parsed, given, overwrite=overwrite)


def prepare(
    address: TableAddress | str, given: pa.Table, *, overwrite: bool = False, **options: str
) -> PreparedWrite:
    """Prepares a write of rows like `given`, of which nothing is written yet."""
    if not isinstance(address, TableAddress):
        address = TableAddress(address)
    parsed = parse_write_options({**options, "path": address.path}, address)
    columns = schema_from_arrow(given.schema)
    return prepare_write(parsed, given.schema, columns, overwrite=overwrite)[0]


def written(write: PreparedWrite, given: pa.Table) -> list[DataFile]:
    """Writes the data files of a prepared write, which are not committed."""
    return write_batches(write.plan, given.to_batches(), partition_id=0, attempt_id=0)


def named(options: Mapping[str, str]) -> dict[str, str]:
    """Options by their names, in which `__` stood for a dot and `_` for a hyphen."""
    return {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}


def ids_of(table: Table, **scan: Any) -> list[int]:
    """The column `id` of all rows that a scan finds, in order."""
    found: list[int] = table.scan(columns="id", **scan).to_arrow()["id"].to_pylist()
    return sorted(found)


def days_of(table: Table) -> Mapping[tuple[int, int], int]:
    """How often each row of `id` and `day` is there."""
    columns = table.scan(columns=["id", "day"]).to_arrow().to_pydict()
    return Counter(zip(columns["id"], columns["day"], strict=True))
