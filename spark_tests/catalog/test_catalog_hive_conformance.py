"""The Hive catalog does what every catalog must, on metastores with and without conditions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from effort import IS_NIGHTLY
from hive_server import HiveServer

from icebergds.catalog.loading import load_catalog
from icebergds.testing.catalog_conformance import (
    CatalogCapabilities,
    CatalogConformance,
    OpenCatalog,
)


class TestHiveCatalog(CatalogConformance):
    capabilities = CatalogCapabilities(
        nested_namespaces=False,
        names=("a_b", "t1"),
        given_namespaces=("default",),
        unregisters=False,
    )

    # Each waits for a lock of the metastore.
    threads = 8 if IS_NIGHTLY else 4
    commits = 48 if IS_NIGHTLY else 12

    @pytest.fixture
    def open_catalog(self, hive: HiveServer, tmp_path: Path) -> OpenCatalog:
        properties = {"uri": hive.uri, "warehouse": str(tmp_path / "ware house%20#1")}
        return partial(load_catalog, "lake", properties)
