"""The DynamoDB catalog does what every catalog must."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from effort import IS_NIGHTLY
from moto_server import MotoServer

from icebergds.catalog.loading import load_catalog
from icebergds.testing.catalog_conformance import CatalogConformance, OpenCatalog


@pytest.mark.skipif(not IS_NIGHTLY, reason="its own tests are enough for a change")
class TestDynamoDbCatalog(CatalogConformance):
    @pytest.fixture
    def open_catalog(self, moto: MotoServer, tmp_path: Path) -> OpenCatalog:
        warehouse = str(tmp_path / "ware house%20#1")
        properties = moto.properties("dynamodb") | {"warehouse": warehouse}
        return partial(load_catalog, "lake", properties)
