"""A catalog with a table, and the command."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from command_line import Command, run

from icebergds import Catalog, load_catalog


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A configured catalog `lake` with a table `db.events` of three rows in two snapshots."""
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(tmp_path / "lake"))
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    catalog = load_catalog("lake")
    columns = "id bigint NOT NULL COMMENT 'the key', name string, day date"
    table = catalog.create_table("db.events", columns, partition_spec="bucket(2, id)")
    schema = table.scan().to_arrow().schema
    table.append(pa.table({"id": [1, 2], "name": ["one", None], "day": [None, 3]}, schema=schema))
    table.append(pa.table({"id": [3], "name": ["drei"], "day": [None]}, schema=schema))
    return catalog


@pytest.fixture
def icebergds() -> Command:
    return run
