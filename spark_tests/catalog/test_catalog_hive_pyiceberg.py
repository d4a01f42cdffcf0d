"""The Hive catalog and PyIceberg's use one metastore.

It is one of version 3: PyIceberg 0.12 asks for tables by a call that version 4 no longer has.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hive_server import HiveServer
from hive_tables import TABLE, create_table, empty, open_hive_catalog, set_property
from pyiceberg.catalog.hive import HiveCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchTableError as PyIcebergNoSuchTable
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField as PyIcebergField

from icebergds.catalog.hive.catalog import HiveCatalog
from icebergds.errors import CommitConflictError, NoSuchTableError
from icebergds.spec.updates.table_updates import RemoveProperties, SetProperties

pytestmark = pytest.mark.interop

_SCHEMA = PyIcebergSchema(PyIcebergField(1, "id", LongType(), required=False))


@pytest.fixture
def hive(locking_metastore: HiveServer) -> HiveServer:
    empty(locking_metastore)
    return locking_metastore


@pytest.fixture
def ours(hive: HiveServer, tmp_path: Path) -> HiveCatalog:
    return open_hive_catalog(hive.uri, tmp_path)


@pytest.fixture
def theirs(hive: HiveServer, tmp_path: Path) -> PyIcebergCatalog:
    return PyIcebergCatalog("lake", uri=hive.uri, warehouse=f"file://{tmp_path}/warehouse")


def test_namespaces_are_shared(ours: HiveCatalog, theirs: PyIcebergCatalog) -> None:
    ours.create_namespace(("a",), {"k": "v", "comment": "ours"})
    theirs.create_namespace("b", {"k": "w", "comment": "theirs"})
    assert ours.list_namespaces() == [("a",), ("b",), ("default",)]
    assert sorted(theirs.list_namespaces()) == [("a",), ("b",), ("default",)]
    assert theirs.load_namespace_properties("a")["comment"] == "ours"
    found = ours.namespace_properties(("b",))
    assert (found["k"], found["comment"]) == ("w", "theirs")
    theirs.drop_namespace("a")
    ours.drop_namespace(("b",))
    assert ours.list_namespaces() == [("default",)]


def test_they_commit_to_our_tables(ours: HiveCatalog, theirs: PyIcebergCatalog) -> None:
    created = create_table(ours, {"mine": "1"})
    table = theirs.load_table("db.t")
    assert table.metadata_location == created.metadata_location
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    loaded = ours.load(TABLE)
    snapshot = loaded.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["total-records"] == "2"
    assert loaded.metadata.properties["mine"] == "1"
    assert [e.metadata_file for e in loaded.metadata.metadata_log] == [created.metadata_location]


def test_we_commit_to_their_tables(ours: HiveCatalog, theirs: PyIcebergCatalog) -> None:
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


def test_neither_overwrites_the_other(ours: HiveCatalog, theirs: PyIcebergCatalog) -> None:
    create_table(ours)
    operations = ours.operations(TABLE)
    base, table = operations.refresh(), theirs.load_table("db.t")
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with pytest.raises(CommitConflictError):
        operations.commit(base, [], [SetProperties({"k": "v"})])
    stale = theirs.load_table("db.t")
    set_property(ours)
    theirs.load_table("db.t").append(pa.table({"id": pa.array([2], pa.int64())}))
    # It is tried again on the table as it is then.
    stale.append(pa.table({"id": pa.array([3], pa.int64())}))
    loaded = ours.load(TABLE).metadata
    assert len(loaded.snapshots) == 3
    assert loaded.properties["k"] == "v"


def test_properties_that_one_removes_are_gone_for_both(
    ours: HiveCatalog, theirs: PyIcebergCatalog, hive: HiveServer
) -> None:
    create_table(ours, {"a": "1", "b": "2"})
    with theirs.load_table("db.t").transaction() as transaction:
        transaction.remove_properties("a")
    operations = ours.operations(TABLE)
    operations.commit(operations.refresh(), [], [RemoveProperties(("b",))])
    found = theirs.load_table("db.t").properties
    assert "a" not in found
    assert "b" not in found
    with theirs._client as client:
        parameters = client.get_table("db", "t").parameters
    assert not {"a", "b"} & parameters.keys()


def test_tables_are_dropped_and_renamed_for_both(
    ours: HiveCatalog, theirs: PyIcebergCatalog
) -> None:
    create_table(ours)
    theirs.rename_table("db.t", "db.u")
    assert ours.list_tables(("db",)) == [("db", "u")]
    ours.rename(("db", "u"), ("db", "v"))
    assert theirs.list_tables("db") == [("db", "v")]
    theirs.drop_table("db.v")
    with pytest.raises(NoSuchTableError):
        ours.load(("db", "v"))
    create_table(ours)
    ours.drop(TABLE)
    with pytest.raises(PyIcebergNoSuchTable):
        theirs.load_table("db.t")


def test_a_registered_table_is_seen_by_both(ours: HiveCatalog, theirs: PyIcebergCatalog) -> None:
    created = create_table(ours)
    ours.drop(TABLE)
    theirs.register_table("db.u", created.metadata_location)
    assert ours.load(("db", "u")).metadata == created.metadata
    theirs.drop_table("db.u")
    ours.register(TABLE, created.metadata_location)
    assert str(theirs.load_table("db.t").metadata.table_uuid) == created.metadata.table_uuid
