"""The Glue catalog does what every catalog must."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from moto_server import MotoServer

from icebergds.catalog.loading import load_catalog
from icebergds.testing.catalog_conformance import (
    CatalogCapabilities,
    CatalogConformance,
    OpenCatalog,
)


class TestGlueCatalog(CatalogConformance):
    capabilities = CatalogCapabilities(nested_namespaces=False, unregisters=False)

    @pytest.fixture
    def open_catalog(self, moto: MotoServer, tmp_path: Path) -> OpenCatalog:
        properties = moto.properties("glue") | {
            "warehouse": str(tmp_path / "ware house%20#1"),
            "glue.skip-name-validation": "true",
        }
        return partial(load_catalog, "lake", properties)
