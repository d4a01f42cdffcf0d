"""Databases and services for catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_proxy import FaultyProxy, faulty_proxy
from mariadb_server import MariaDbServer
from moto_server import MotoServer
from postgres_server import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    name = {"postgresql": "postgres"}.get(request.param, request.param)
    server: PostgresServer | MariaDbServer = request.getfixturevalue(name)
    return server.uri(server.new_database())


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
