"""The SQL catalog and PyIceberg's use one database."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField as PyIcebergField
from sql_tables import TABLE, create_table, open_sql_catalog, set_property

from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.errors import AlreadyExistsError, CommitConflictError, NoSuchTableError
from icebergds.spec.updates.table_updates import SetProperties

pytestmark = pytest.mark.interop

_SCHEMA = PyIcebergSchema(PyIcebergField(1, "id", LongType(), required=False))


@pytest.fixture(params=["ours first", "theirs first"])
def catalogs(
    request: pytest.FixtureRequest, database_uri: str, tmp_path: Path
) -> tuple[SqlCatalog, PyIcebergCatalog]:
    def theirs() -> PyIcebergCatalog:
        return PyIcebergCatalog("lake", uri=database_uri, warehouse=f"file://{tmp_path}/warehouse")

    if request.param == "ours first":
        return open_sql_catalog(database_uri, tmp_path), theirs()
    first = theirs()
    return open_sql_catalog(database_uri, tmp_path), first


@pytest.fixture
def ours(catalogs: tuple[SqlCatalog, PyIcebergCatalog]) -> SqlCatalog:
    return catalogs[0]


@pytest.fixture
def theirs(catalogs: tuple[SqlCatalog, PyIcebergCatalog]) -> PyIcebergCatalog:
    return catalogs[1]


def test_namespaces_are_shared(ours: SqlCatalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace(("a",), {"k": "v"})
    theirs.create_namespace(("b", "c"), {"k": "w"})
    theirs.create_namespace("d")
    assert ours.list_namespaces() == [("a",), ("b",), ("d",)]
    assert sorted(theirs.list_namespaces()) == [("a",), ("b",), ("d",)]
    assert ours.namespace_properties(("b", "c")) == {"k": "w"}
    assert theirs.load_namespace_properties("a")["k"] == "v"
    assert ours.namespace_properties(("d",)) == {}
    with pytest.raises(AlreadyExistsError):
        ours.create_namespace(("d",), {})
    with pytest.raises(NamespaceAlreadyExistsError):
        theirs.create_namespace("a")
    theirs.drop_namespace("a")
    ours.drop_namespace(("b", "c"))
    assert ours.list_namespaces() == [("d",)]
    assert theirs.list_namespaces() == [("d",)]


def test_they_commit_to_our_tables(ours: SqlCatalog, theirs: PyIcebergCatalog) -> None:
    created = create_table(ours, {"mine": "1"})
    table = theirs.load_table("db.t")
    assert table.metadata_location == created.metadata_location
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    loaded = ours.load(TABLE)
    snapshot = loaded.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["total-records"] == "2"
    assert loaded.metadata.properties["mine"] == "1"
    assert loaded.metadata.table_uuid == created.metadata.table_uuid
    assert [e.metadata_file for e in loaded.metadata.metadata_log] == [created.metadata_location]


def test_we_commit_to_their_tables(ours: SqlCatalog, theirs: PyIcebergCatalog) -> None:
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", _SCHEMA)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    committed = set_property(ours)
    assert committed.metadata_location.rpartition("/")[2].startswith("00002-")
    table = table.refresh()
    assert table.metadata_location == committed.metadata_location
    assert table.properties["k"] == "v"
    assert table.scan().to_arrow().num_rows == 2
    table.append(pa.table({"id": pa.array([3], pa.int64())}))
    assert ours.load(TABLE).metadata.properties["k"] == "v"
    assert theirs.load_table("db.t").scan().to_arrow().num_rows == 3


def test_neither_overwrites_the_other(ours: SqlCatalog, theirs: PyIcebergCatalog) -> None:
    create_table(ours)
    operations = ours.operations(TABLE)
    base, table = operations.refresh(), theirs.load_table("db.t")
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with pytest.raises(CommitConflictError):
        operations.commit(base, [], [SetProperties({"k": "v"})])
    set_property(ours, "k")
    table.append(pa.table({"id": pa.array([2], pa.int64())}))
    loaded = ours.load(TABLE).metadata
    assert loaded.properties["k"] == "v"
    assert len(loaded.snapshots) == 2


def test_tables_are_dropped_and_renamed_for_both(
    ours: SqlCatalog, theirs: PyIcebergCatalog
) -> None:
    create_table(ours)
    theirs.rename_table("db.t", "db.u")
    assert ours.list_tables(("db",)) == [("db", "u")]
    ours.rename(("db", "u"), ("db", "v"))
    assert theirs.list_tables("db") == [("db", "v")]
    theirs.drop_table("db.v")
    with pytest.raises(NoSuchTableError):
        ours.load(("db", "v"))


def test_a_registered_table_is_seen_by_both(ours: SqlCatalog, theirs: PyIcebergCatalog) -> None:
    created = create_table(ours)
    ours.drop(TABLE)
    theirs.register_table("db.u", created.metadata_location)
    assert ours.load(("db", "u")).metadata == created.metadata
    theirs.drop_table("db.u")
    ours.register(TABLE, created.metadata_location)
    assert str(theirs.load_table("db.t").metadata.table_uuid) == created.metadata.table_uuid
