"""SQL functions of REST catalogs are listed and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_newer import NewerServer, newer_server
from rest_server import RestServer
from sql_functions import definition, function

import icebergds
from icebergds.api.catalog import Catalog
from icebergds.errors import (
    InvalidMetadataError,
    NoSuchFunctionError,
    NoSuchNamespaceError,
    UnsupportedFeatureError,
)


@pytest.fixture
def server(rest: RestServer) -> Iterator[NewerServer]:
    with newer_server(rest) as server:
        yield server


@pytest.fixture
def catalog(server: NewerServer) -> Catalog:
    catalog = icebergds.load_catalog("lake", uri=server.uri)
    catalog.create_namespace("db")
    for name in ("add_one", "other", "third"):
        server.functions["db", name] = function(
            definition({"x": "int"}, "long", {"spark": "x + 1", "trino": "x + 2"}),
            definition({"x": "int", "y": "string"}, "string", "y", on_null="return-null"),
            doc="adds one",
            properties={"owner": "me"},
        )
    return catalog


def test_functions_are_listed_page_by_page(catalog: Catalog, server: NewerServer) -> None:
    names = [("db", "add_one"), ("db", "other"), ("db", "third")]
    assert catalog.list_functions("db") == names
    assert sum("/functions?" in path for path in server.proxy.paths("GET")) == 2
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.list_functions("nowhere")


def test_a_function_is_loaded_with_its_definitions(catalog: Catalog) -> None:
    found = catalog.load_function("lake.db.add_one")
    assert (found.doc, found.properties, found.secure) == ("adds one", {"owner": "me"}, False)
    first, second = found.definitions
    assert [(each.name, str(each.parameter_type)) for each in second.parameters] == [
        ("x", "int"),
        ("y", "string"),
    ]
    version = first.current_version()
    assert [(each.dialect, each.sql) for each in version.sqls] == [
        ("spark", "x + 1"),
        ("trino", "x + 2"),
    ]
    assert (version.null_for_null, second.current_version().null_for_null) == (False, True)


def test_a_missing_function_is_named_with_a_similar_one(catalog: Catalog) -> None:
    with pytest.raises(NoSuchFunctionError, match=r"lake\.db\.add_on .*did you mean add_one\?"):
        catalog.load_function("db.add_on")
    assert [catalog.function_exists(f"db.{name}") for name in ("add_one", "two")] == [True, False]


def test_malformed_functions_are_named(catalog: Catalog, server: NewerServer) -> None:
    server.functions["db", "broken"] = {"format-version": 1}
    with pytest.raises(InvalidMetadataError, match=r"lake\.db\.broken"):
        catalog.load_function("db.broken")


def test_catalogs_without_functions_are_named(rest: RestServer, tmp_path: Path) -> None:
    catalog = icebergds.load_catalog("lake", uri=rest.uri(rest.new_catalog()))
    with pytest.raises(UnsupportedFeatureError, match=r"GET .*/functions\b"):
        catalog.list_functions("db")
    with pytest.raises(UnsupportedFeatureError, match=r"GET .*/functions/\{function\}"):
        catalog.load_function("db.f")
    with pytest.raises(UnsupportedFeatureError, match="plain has no functions"):
        icebergds.load_catalog("plain", warehouse=tmp_path).list_functions("db")
