"""Catalogs and tables for tests of the Hive catalog."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

from breaking_proxy import BreakingProxy, Cut
from built.schemas import optional
from hive_server import HiveServer

from icebergds.catalog.base import Identifier
from icebergds.catalog.hive.calls import (
    DROP_DATABASE,
    DROP_TABLE,
    GET_ALL_DATABASES,
    GET_ALL_TABLES,
    Call,
)
from icebergds.catalog.hive.catalog import HiveCatalog
from icebergds.catalog.hive.connection import Endpoint, Metastore
from icebergds.catalog.loading import load_catalog
from icebergds.commit.operations import TableState
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing import catalog_steps

TABLE: Identifier = ("db", "t")
SCHEMA = Schema((optional(1, "id", LONG),))


def metastore(server: HiveServer, kerberos_service: str | None = None) -> Metastore:
    endpoint = Endpoint("127.0.0.1", server.port)
    return Metastore("lake", (endpoint,), kerberos_service=kerberos_service)


def open_hive_catalog(uri: str, tmp_path: Path, **properties: str) -> HiveCatalog:
    given = {"uri": uri, "warehouse": str(tmp_path / "warehouse"), **properties}
    catalog = load_catalog("lake", given)
    assert isinstance(catalog, HiveCatalog)
    return catalog


def create_table(catalog: HiveCatalog, properties: dict[str, str] | None = None) -> TableState:
    """The table `TABLE`, without rows."""
    return catalog_steps.create_table(catalog, TABLE, properties, SCHEMA)


def set_property(catalog: HiveCatalog, key: str = "k") -> TableState:
    operations = catalog.operations(TABLE)
    return operations.commit(operations.refresh(), [], [SetProperties({key: "v"})])


def metadata_files(state: TableState) -> set[str]:
    return set(state.io.list(f"{state.metadata.location}/metadata"))


def empty(server: HiveServer, kerberos_service: str | None = None) -> None:
    """Drops all tables, and all databases but the one that every metastore has."""
    with metastore(server, kerberos_service).connect() as connection:
        for database in connection.ask(GET_ALL_DATABASES):
            for table in connection.ask(GET_ALL_TABLES, database):
                connection.tell(DROP_TABLE, database, table, False)
            if database != "default":
                connection.tell(DROP_DATABASE, database, False, False)


def cut_call(
    proxy: BreakingProxy, call: Call[object], cut: Cut, then: Callable[[], object] = bool
) -> None:
    """Cuts the connection of the next call of a kind, as `BreakingProxy.arm` does."""
    name = call.name.encode()
    proxy.arm(cut, then, request=re.escape(struct.pack(">I", len(name)) + name))
