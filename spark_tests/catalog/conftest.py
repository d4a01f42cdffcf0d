"""Databases for catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest
from mariadb_server import MariaDbServer
from postgres_server import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    name = {"postgresql": "postgres"}.get(request.param, request.param)
    server: PostgresServer | MariaDbServer = request.getfixturevalue(name)
    return server.uri(server.new_database())
