"""Builds small encrypted tables in a catalog of a directory, and looks at their files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from icebergds import Catalog, Table, load_catalog
from icebergds.spec.schema import Schema

MARKER = "a text that no file may show"
"""In each row, so that it would be found in a plain file."""
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("name", pa.string())])
KEY_ID = "encryption.key-id"


def catalog_with_keys(directory: Path, **properties: str) -> Catalog:
    """A catalog whose key service has the keys keyA and keyB in memory."""
    given: dict[str, Any] = {
        "type": "filesystem",
        "warehouse": str(directory / "warehouse"),
        "encryption.kms-impl": "key_services.MemoryClient",
        **properties,
    }
    return load_catalog("c", **given)


def plain_catalog(directory: Path) -> Catalog:
    """The same catalog without a key service."""
    return load_catalog("plain", type="filesystem", warehouse=str(directory / "warehouse"))


def encrypted_table(
    directory: Path, schema: pa.Schema | Schema = SCHEMA, name: str = "db.t", **properties: str
) -> Table:
    """A new table of version 3, encrypted by keyA, in `catalog_with_keys`."""
    catalog = catalog_with_keys(directory)
    given = {"format-version": "3", KEY_ID: "keyA", **properties}
    return catalog.create_table(name, schema, properties=given)


def rows(*ids: int, day: int = 1) -> pa.Table:
    """Rows of `SCHEMA`, each with the marker."""
    names = [f"{MARKER} {number}" for number in ids]
    columns = {"id": list(ids), "day": [day] * len(ids), "name": names}
    return pa.table(columns, schema=SCHEMA)


def ids_of(table: Table) -> list[int]:
    """The ids of the rows of a table, sorted."""
    found: Iterable[int] = table.scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def stored_files(table: Table) -> list[Path]:
    """All files of a table but its metadata files, which are never encrypted."""
    root = Path(table.location().removeprefix("file:"))
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and not path.name.endswith((".metadata.json", ".crc"))
        and path.name != "version-hint.text"
    )
