"""From a catalog's properties to the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from icebergds.catalog.filesystem import FileSystemCatalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import InvalidOptionError


@pytest.mark.parametrize(
    "kind", [{}, {"type": "filesystem"}, {"type": "hadoop"}, {"type": "HADOOP"}]
)
def test_a_warehouse_is_a_file_system_catalog(kind: dict[str, str]) -> None:
    catalog = load_catalog("local", {**kind, "warehouse": "/w"})
    assert isinstance(catalog, FileSystemCatalog)
    assert (catalog.name, catalog.warehouse) == ("local", "/w")


@pytest.mark.parametrize("properties", [{}, {"warehouse": ""}, {"type": "hadoop"}])
def test_a_file_system_catalog_needs_a_warehouse(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match=r"catalog local.*catalog\.warehouse"):
        load_catalog("local", properties)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [("filesytem", r"did you mean filesystem\?"), ("hadop", r"did you mean hadoop\?"), ("x", "")],
)
def test_an_unknown_type_is_refused_with_the_nearest(kind: str, hint: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"unknown type '{kind}'.*hadoop.*{hint}$"):
        load_catalog("local", {"type": kind, "warehouse": "/w"})


def test_storage_properties_and_mapped_locations_reach_the_files(tmp_path: Path) -> None:
    catalog = load_catalog(
        "local",
        {"warehouse": "/w", "s3.endpoint": "http://localhost:1"},
        location_map={"s3://b/": str(tmp_path)},
    )
    assert isinstance(catalog, FileSystemCatalog)
    assert catalog.io.properties["s3.endpoint"] == "http://localhost:1"
    assert dict(catalog.io.location_map) == {"s3://b/": str(tmp_path)}
