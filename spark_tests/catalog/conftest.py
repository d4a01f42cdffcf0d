"""Databases for catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_server import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def database_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.uri(server.new_database())
