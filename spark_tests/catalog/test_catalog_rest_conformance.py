"""The REST catalog does what every catalog must, on Java Iceberg's server."""

from __future__ import annotations

from functools import partial

import pytest
from rest_server import RestServer

from icebergds.catalog.loading import load_catalog
from icebergds.testing.catalog_conformance import (
    CatalogCapabilities,
    CatalogConformance,
    OpenCatalog,
)
from icebergds.testing.view_conformance import ViewConformance


class TestRestCatalog(CatalogConformance):
    # The protocol compares what requirements name, and Java's server leaves metadata files behind.
    capabilities = CatalogCapabilities(
        swaps=False, deletes_metadata=False, overwrites=False, unregisters=False
    )

    @pytest.fixture
    def open_catalog(self, rest: RestServer) -> OpenCatalog:
        uri = rest.uri(rest.new_catalog())
        return partial(load_catalog, "lake", {"type": "rest", "uri": uri})


class TestViewsOfRestCatalog(ViewConformance):
    @pytest.fixture
    def open_catalog(self, rest: RestServer) -> OpenCatalog:
        return partial(load_catalog, "lake", {"type": "rest", "uri": rest.uri(rest.new_catalog())})
