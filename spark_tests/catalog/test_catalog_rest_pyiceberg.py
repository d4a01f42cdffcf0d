"""The REST catalog and PyIceberg's use one server."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField as PyIcebergField, StringType
from rest_server import RestServer

import icebergds
from icebergds.errors import AlreadyExistsError, NoSuchTableError

pytestmark = pytest.mark.interop

_SCHEMA = PyIcebergSchema(
    PyIcebergField(1, "id", LongType(), required=False),
    PyIcebergField(2, "s", StringType(), required=False),
)
_ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})


@pytest.fixture
def uri(rest: RestServer) -> str:
    return rest.uri(rest.new_catalog())


@pytest.fixture
def ours(uri: str) -> icebergds.Catalog:
    return icebergds.load_catalog("lake", uri=uri)


@pytest.fixture
def theirs(uri: str) -> PyIcebergCatalog:
    return PyIcebergCatalog("lake", uri=uri)


def test_namespaces_are_shared(ours: icebergds.Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace("a", {"k": "v"})
    theirs.create_namespace(("b", "c"), {"k": "w"})
    assert theirs.load_namespace_properties("a")["k"] == "v"
    assert ours.load_namespace_properties("b.c")["k"] == "w"
    with pytest.raises(AlreadyExistsError):
        ours.create_namespace("b.c")
    theirs.drop_namespace("a")
    assert not ours.namespace_exists("a")


def test_they_read_what_we_write(ours: icebergds.Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace("db")
    table = ours.create_table("db.t", "id bigint, s string", partition_spec="bucket(2, id)")
    table.append(_ROWS)
    with table.update_schema() as update:
        update.add_column("more", "int")
    read = theirs.load_table("db.t")
    assert sorted(read.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert read.schema().find_field("more").field_id == 3
    assert str(read.metadata.table_uuid) == table.metadata.table_uuid


def test_we_read_what_they_write(ours: icebergds.Catalog, theirs: PyIcebergCatalog) -> None:
    theirs.create_namespace("db")
    written = theirs.create_table("db.t", _SCHEMA, properties={"mine": "1"})
    written.append(_ROWS)
    table = ours.load_table("db.t")
    assert table.current_snapshot().summary["total-records"] == "2"
    assert table.properties["mine"] == "1"
    table.append(_ROWS)
    assert written.refresh().scan().to_arrow().num_rows == 4


def test_neither_overwrites_the_other(ours: icebergds.Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace("db")
    mine = ours.create_table("db.t", "id bigint, s string")
    other = theirs.load_table("db.t")
    other.append(_ROWS)
    # From an old state: it is tried again on the new one.
    mine.append(_ROWS)
    assert other.refresh().scan().to_arrow().num_rows == 4
    assert len(mine.refresh().metadata.snapshots) == 2


def test_tables_are_dropped_and_renamed_for_both(
    ours: icebergds.Catalog, theirs: PyIcebergCatalog
) -> None:
    ours.create_namespace("db")
    ours.create_table("db.t", "id bigint")
    theirs.rename_table("db.t", "db.u")
    assert ours.list_tables("db") == [("db", "u")]
    ours.rename_table("db.u", "db.v")
    assert theirs.list_tables("db") == [("db", "v")]
    theirs.drop_table("db.v")
    with pytest.raises(NoSuchTableError):
        ours.load_table("db.v")


def test_views_are_shared(ours: icebergds.Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace("db")
    ours.create_view("db.v", "id bigint", "SELECT 1 AS id")
    assert theirs.list_views("db") == [("db", "v")]
    theirs.drop_view("db.v")
    assert not ours.view_exists("db.v")
