"""The SQL catalog does what every catalog must, on each database."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from icebergds.catalog.loading import load_catalog
from icebergds.testing.catalog_conformance import CatalogConformance, OpenCatalog
from icebergds.testing.view_conformance import ViewConformance


class TestSqlCatalog(CatalogConformance):
    @pytest.fixture
    def open_catalog(self, database_uri: str, tmp_path: Path) -> OpenCatalog:
        properties = {
            "type": "sql",
            "uri": database_uri,
            "warehouse": str(tmp_path / "ware house%20#1"),
        }
        return partial(load_catalog, "lake", properties)


class TestViewsOfSqlCatalog(ViewConformance):
    @pytest.fixture
    def open_catalog(self, database_uri: str, tmp_path: Path) -> OpenCatalog:
        properties = {"uri": database_uri, "warehouse": str(tmp_path / "warehouse")}
        return partial(load_catalog, "lake", properties)
