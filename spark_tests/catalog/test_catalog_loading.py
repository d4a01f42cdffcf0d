"""From a catalog's properties to the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.errors import IcebergError, InvalidOptionError, StorageError


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


def test_a_catalog_of_misspelt_properties_is_told_which_they_are() -> None:
    message = r"no warehouse, uri or type; .* 'owner', 'warehose' \(did you mean 'warehouse'\?\)"
    with pytest.raises(InvalidOptionError, match=message):
        load_catalog("bad", {"warehose": "/w", "owner": "me"})


def test_a_catalog_that_only_configures_its_storage_is_not_called_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__BAD__S3__ENDPOINT", "http://localhost:1")
    with pytest.raises(InvalidOptionError, match="catalog bad is configured, but has no warehouse"):
        load_catalog("bad", {})


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
        {"warehouse": "/w", "s3.endpoint": "http://localhost:1", "storage-schemes": "oss"},
        location_map={"s3://b/": str(tmp_path)},
    )
    assert isinstance(catalog, FileSystemCatalog)
    assert catalog.io.properties == {
        "s3.endpoint": "http://localhost:1",
        "storage-schemes": "oss",
    }
    assert dict(catalog.io.location_map) == {"s3://b/": str(tmp_path)}


def test_options_of_the_storage_are_no_properties_of_an_sql_catalog(tmp_path: Path) -> None:
    given = {"uri": f"sqlite:///{tmp_path}/c.db", "storage-schemes": "oss"}
    catalog = load_catalog("lake", given)
    assert isinstance(catalog, SqlCatalog)
    assert catalog.io.properties == {"storage-schemes": "oss"}


@pytest.mark.parametrize("kind", ["sql", "SQL", "jdbc", None])
def test_a_database_is_an_sql_catalog(tmp_path: Path, kind: str | None) -> None:
    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)}
    catalog = load_catalog("lake", given | ({"type": kind} if kind else {}))
    assert isinstance(catalog, SqlCatalog)
    assert (catalog.name, catalog.warehouse) == ("lake", str(tmp_path))


@pytest.mark.parametrize(
    "uri", ["postgresql://u@localhost:1/db", "jdbc:postgresql://localhost:1/db"]
)
def test_a_database_server_is_an_sql_catalog(uri: str) -> None:
    with pytest.raises(IcebergError, match=r"its database .* cannot be"):
        load_catalog("lake", {"uri": uri})


def test_a_rest_catalog_needs_a_uri() -> None:
    with pytest.raises(InvalidOptionError, match="catalog lake: a REST catalog needs the address"):
        load_catalog("lake", {"type": "rest"})


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1", "https://127.0.0.1:1/v1"])
def test_a_web_address_is_a_rest_catalog(uri: str) -> None:
    with pytest.raises(StorageError, match=r"catalog lake: GET .*/v1/config failed"):
        load_catalog("lake", {"uri": uri, "rest.client.max-retries": "0"})


def test_a_uri_that_tells_no_type_needs_one() -> None:
    with pytest.raises(InvalidOptionError, match=r"scheme 'redis'.*catalog\.type"):
        load_catalog("lake", {"uri": "redis://localhost:9083"})


def test_the_environment_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/c.db")
    assert isinstance(load_catalog("lake", {}), SqlCatalog)
