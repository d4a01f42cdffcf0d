"""The S3 Tables catalog does what every catalog must."""

from __future__ import annotations

from functools import partial

import pytest
from effort import IS_NIGHTLY
from moto_server import MotoServer

from icebergds.catalog.loading import load_catalog
from icebergds.testing.catalog_conformance import (
    CatalogCapabilities,
    CatalogConformance,
    OpenCatalog,
)


@pytest.mark.skipif(not IS_NIGHTLY, reason="its own tests are enough for a change")
class TestS3TablesCatalog(CatalogConformance):
    capabilities = CatalogCapabilities(
        namespace_properties=False,
        nested_namespaces=False,
        names=("a_b",),
        register=False,
        overwrites=False,
        unregisters=False,
        keeps_metadata=False,
        deletes_metadata=False,
    )
    threads = 4
    processes = 2

    @pytest.fixture
    def open_catalog(self, moto: MotoServer) -> OpenCatalog:
        return partial(load_catalog, "lake", moto.s3_tables_properties())
