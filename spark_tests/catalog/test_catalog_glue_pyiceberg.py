"""The Glue catalog and PyIceberg's use one Data Catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from aws_tables import TABLE, create_table, set_property
from moto_server import MotoServer

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import CommitConflictError, NoSuchTableError
from icebergds.spec.updates.table_updates import SetProperties

pytest.importorskip("boto3", reason="boto3 is not installed")

from pyiceberg.catalog.glue import GlueCatalog as PyIcebergCatalog
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField as PyIcebergField

pytestmark = pytest.mark.interop

_SCHEMA = PyIcebergSchema(PyIcebergField(1, "id", LongType(), required=False))


@pytest.fixture
def ours(moto: MotoServer, tmp_path: Path) -> Catalog:
    return load_catalog("lake", moto.properties("glue") | {"warehouse": str(tmp_path)})


@pytest.fixture
def theirs(moto: MotoServer, tmp_path: Path) -> PyIcebergCatalog:
    properties = moto.properties("glue") | {"warehouse": f"file://{tmp_path}"}
    return PyIcebergCatalog("lake", **properties)


def test_namespaces_are_shared(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace(("a",), {"k": "v", "location": "s3://b/a"})
    theirs.create_namespace("b", {"k": "w", "location": "s3://b/b"})
    assert ours.list_namespaces() == sorted(theirs.list_namespaces()) == [("a",), ("b",)]
    assert ours.namespace_properties(("b",)) == {"k": "w", "location": "s3://b/b"}
    assert theirs.load_namespace_properties("a") == {"k": "v", "location": "s3://b/a"}
    theirs.drop_namespace("a")
    ours.drop_namespace(("b",))
    assert ours.list_namespaces() == theirs.list_namespaces() == []


def test_they_commit_to_our_tables(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    created = create_table(ours, {"mine": "1"})
    table = theirs.load_table("db.t")
    assert table.metadata_location == created.metadata_location
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    loaded = ours.load(TABLE)
    snapshot = loaded.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["total-records"] == "2"
    assert loaded.metadata.table_uuid == created.metadata.table_uuid
    assert [e.metadata_file for e in loaded.metadata.metadata_log] == [created.metadata_location]


def test_we_commit_to_their_tables(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", _SCHEMA)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    committed = set_property(ours)
    table = table.refresh()
    assert table.metadata_location == committed.metadata_location
    assert table.properties["k"] == "v"
    table.append(pa.table({"id": pa.array([3], pa.int64())}))
    assert ours.load(TABLE).metadata.properties["k"] == "v"
    assert theirs.load_table("db.t").scan().to_arrow().num_rows == 3


def test_neither_overwrites_the_other(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    create_table(ours)
    operations = ours.operations(TABLE)
    base, table = operations.refresh(), theirs.load_table("db.t")
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with pytest.raises(CommitConflictError):
        operations.commit(base, [], [SetProperties({"k": "v"})])
    set_property(ours)
    table.append(pa.table({"id": pa.array([2], pa.int64())}))
    loaded = ours.load(TABLE).metadata
    assert loaded.properties["k"] == "v"
    assert len(loaded.snapshots) == 2


def test_tables_are_dropped_and_renamed_for_both(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    create_table(ours)
    theirs.rename_table("db.t", "db.u")
    assert ours.list_tables(("db",)) == [("db", "u")]
    ours.rename(("db", "u"), TABLE)
    assert theirs.list_tables("db") == [TABLE]
    theirs.drop_table("db.t")
    with pytest.raises(NoSuchTableError):
        ours.load(TABLE)


def test_they_register_our_tables_and_the_reverse(ours: Catalog, theirs: PyIcebergCatalog) -> None:
    location = create_table(ours).metadata_location
    ours.drop(TABLE)
    theirs.register_table("db.t", location)
    assert ours.load(TABLE).metadata_location == location
    theirs.drop_table("db.t")
    ours.register(TABLE, location)
    assert theirs.load_table("db.t").metadata_location == location
