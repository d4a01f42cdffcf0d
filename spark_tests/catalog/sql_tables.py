"""Catalogs and tables for tests of the SQL catalog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from built.schemas import optional
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from icebergds.catalog.base import Identifier
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.commit.operations import TableState
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing import catalog_steps

TABLE: Identifier = ("db", "t")
_SCHEMA = Schema((optional(1, "id", LONG),))


def open_sql_catalog(uri: str, tmp_path: Path, **properties: str) -> SqlCatalog:
    given = {"uri": uri, "warehouse": str(tmp_path / "warehouse"), **properties}
    catalog = load_catalog("lake", given)
    assert isinstance(catalog, SqlCatalog)
    return catalog


def create_table(catalog: SqlCatalog, properties: dict[str, str] | None = None) -> TableState:
    """The table `TABLE`, without rows."""
    return catalog_steps.create_table(catalog, TABLE, properties, _SCHEMA)


def set_property(catalog: SqlCatalog, key: str = "k") -> TableState:
    operations = catalog.operations(TABLE)
    return operations.commit(operations.refresh(), [], [SetProperties({key: "v"})])


def metadata_files(state: TableState) -> set[str]:
    return set(state.io.list(f"{state.metadata.location}/metadata"))


def execute(uri: str, *statements: str) -> Sequence[tuple[Any, ...]]:
    """Executes statements behind the catalog's back; gives the rows of the last."""
    engine = create_engine(uri, poolclass=NullPool)
    with engine.begin() as connection:
        results = [connection.execute(text(statement)) for statement in statements]
        return [tuple(row) for row in results[-1]] if results[-1].returns_rows else []
