"""Databases for catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer, find_binaries, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the whole run."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    with postgres_server(binaries) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.uri(server.new_database())
