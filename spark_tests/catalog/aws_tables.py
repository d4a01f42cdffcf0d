"""Catalogs and tables for tests of the catalogs that are services of AWS."""

from __future__ import annotations

from built.schemas import optional

from icebergds.catalog.base import Catalog, Identifier
from icebergds.commit.operations import TableState
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing import catalog_steps

TABLE: Identifier = ("db", "t")
SCHEMA = Schema((optional(1, "id", LONG),))


def create_table(catalog: Catalog, properties: dict[str, str] | None = None) -> TableState:
    """The table `TABLE`, without rows."""
    return catalog_steps.create_table(catalog, TABLE, properties, SCHEMA)


def set_property(catalog: Catalog, key: str = "k") -> TableState:
    operations = catalog.operations(TABLE)
    return operations.commit(operations.refresh(), [], [SetProperties({key: "v"})])


def metadata_files(state: TableState) -> set[str]:
    return set(state.io.list(f"{state.metadata.location}/metadata"))
