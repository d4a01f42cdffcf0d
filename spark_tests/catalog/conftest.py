"""Databases, services and metastores for catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hive_tables
import pytest
from effort import IS_NIGHTLY
from faulty_proxy import FaultyProxy, faulty_proxy
from hive_server import CONDITIONAL, LOCKING, HiveServer
from mariadb_server import MariaDbServer
from moto_server import MotoServer
from postgres_server import PostgresServer
from rest_proxy import RestProxy, rest_proxy

from icebergds.testing.catalog_races import CatalogRaces

if TYPE_CHECKING:
    from rest_server import RestServer

if not IS_NIGHTLY:
    CatalogRaces.commits = 24

# What is special about MariaDB is tested in each change (`test_catalog_sql_mariadb`).
_DATABASES = ["sqlite", "postgresql", *(["mariadb"] if IS_NIGHTLY else [])]


@pytest.fixture
def quick_proxy(rest: RestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestProxy]:
    """A proxy in front of the REST server; clients repeat failed requests soon."""
    from icebergds.catalog.rest import http

    monkeypatch.setattr(http, "_FIRST_WAIT_S", 0.01)
    with rest_proxy(rest.port) as proxy:
        yield proxy


@pytest.fixture(params=_DATABASES)
def database_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    name = {"postgresql": "postgres"}.get(request.param, request.param)
    server: PostgresServer | MariaDbServer = request.getfixturevalue(name)
    uri = server.uri(server.new_database())
    # PyMySQL would read the certificates of the system for each connection.
    return f"{uri}?ssl_disabled=true" if request.param == "mariadb" else uri


@pytest.fixture(scope="session")
def running_proxy(running_moto: MotoServer) -> Iterator[FaultyProxy]:
    with faulty_proxy(running_moto.port) as proxy:
        yield proxy


@pytest.fixture
def proxy(running_proxy: FaultyProxy) -> Iterator[FaultyProxy]:
    """A proxy in front of `moto`, which spoils no request yet."""
    running_proxy.spoil("")
    yield running_proxy
    running_proxy.spoil("")


@pytest.fixture(params=[CONDITIONAL, LOCKING] if IS_NIGHTLY else [CONDITIONAL])
def hive(request: pytest.FixtureRequest) -> HiveServer:
    """An empty metastore; of each kind in the nightly profile."""
    kinds = {CONDITIONAL: "conditional_metastore", LOCKING: "locking_metastore"}
    server: HiveServer = request.getfixturevalue(kinds[request.param])
    hive_tables.empty(server)
    return server
