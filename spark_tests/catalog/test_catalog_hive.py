"""What the Hive catalog stores in a metastore, and what it says of what it cannot do."""

from __future__ import annotations

import json
import pickle
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from built.schemas import optional
from hive_server import HiveServer
from hive_tables import (
    SCHEMA,
    TABLE,
    create_table,
    empty,
    metadata_files,
    metastore,
    open_hive_catalog,
    set_property,
)

from icebergds.catalog.hive.calls import ALTER_TABLE, CREATE_TABLE, GET_TABLE
from icebergds.catalog.hive.catalog import HiveCatalog
from icebergds.catalog.hive.entries import hive_columns
from icebergds.catalog.hive.messages import (
    Column,
    EnvironmentContext,
    GetTableRequest,
    SerDe,
    StorageDescriptor,
    Table,
)
from icebergds.catalog.loading import load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
)
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
)
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    AddSnapshot,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
)
from icebergds.testing.catalog_steps import new_snapshot


@pytest.fixture
def catalog(hive: HiveServer, tmp_path: Path) -> HiveCatalog:
    return open_hive_catalog(hive.uri, tmp_path)


def _entry(server: HiveServer) -> Table:
    with metastore(server).connect() as connection:
        return connection.ask(GET_TABLE, GetTableRequest(*TABLE)).table


def _parameters(server: HiveServer) -> Mapping[str, str]:
    return _entry(server).parameters or {}


def _make_hive_table(server: HiveServer) -> None:
    storage = StorageDescriptor(
        columns=(Column("id", "bigint"),),
        input_format="org.apache.hadoop.mapred.TextInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serde=SerDe(library="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    entry = Table(
        "t", "db", storage=storage, parameters={"EXTERNAL": "TRUE"}, table_type="EXTERNAL_TABLE"
    )
    with metastore(server).connect() as connection:
        connection.tell(CREATE_TABLE, entry)


# What is stored.


def test_an_entry_is_as_java_iceberg_writes_it(hive: HiveServer, catalog: HiveCatalog) -> None:
    created = create_table(catalog, {"mine": "1", "hive.metastore.table.owner": "me"})
    entry = _entry(hive)
    assert (entry.name, entry.database, entry.table_type) == ("t", "db", "EXTERNAL_TABLE")
    assert entry.owner == "me"
    parameters = _parameters(hive)
    assert {name: parameters.get(name) for name in _STORED} == {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": created.metadata_location,
        "previous_metadata_location": None,
        "uuid": created.metadata.table_uuid,
        "mine": "1",
        "hive.metastore.table.owner": None,
        "snapshot-count": "0",
        "current-snapshot-id": None,
        "default-partition-spec": None,
        "storage_handler": None,
    }
    assert json.loads(parameters["current-schema"]) == {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
    }
    storage = entry.storage
    assert storage is not None
    assert storage.columns == (Column("id", "bigint"),)
    assert storage.location is not None
    assert storage.location == f"file:{created.metadata.location.removeprefix('file:')}"
    assert storage.input_format == "org.apache.hadoop.mapred.FileInputFormat"
    assert storage.serde is not None
    assert storage.serde.library == "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


_STORED = (
    "EXTERNAL",
    "table_type",
    "metadata_location",
    "previous_metadata_location",
    "uuid",
    "mine",
    "hive.metastore.table.owner",
    "snapshot-count",
    "current-snapshot-id",
    "default-partition-spec",
    "storage_handler",
)


def test_a_commit_is_mirrored(hive: HiveServer, catalog: HiveCatalog) -> None:
    created = create_table(catalog)
    summary = {
        "operation": "append",
        "total-data-files": "2",
        "total-records": "30",
        "total-files-size": "400",
    }
    snapshot = replace(new_snapshot(1), summary=summary)
    main = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
    committed = catalog.operations(TABLE).commit(created, [], [AddSnapshot(snapshot), main])
    found = _parameters(hive)
    assert found["metadata_location"] == committed.metadata_location
    assert found["previous_metadata_location"] == created.metadata_location
    assert found["current-snapshot-id"] == str(snapshot.snapshot_id)
    assert found["current-snapshot-timestamp-ms"] == str(snapshot.timestamp_ms)
    assert json.loads(found["current-snapshot-summary"]) == {
        name: value for name, value in summary.items() if name != "operation"
    }
    assert found["snapshot-count"] == "1"
    assert (found["numFiles"], found["numRows"], found["totalSize"]) == ("2", "30", "400")


def test_a_changed_schema_is_mirrored(conditional_metastore: HiveServer, tmp_path: Path) -> None:
    empty(conditional_metastore)
    catalog = open_hive_catalog(conditional_metastore.uri, tmp_path)
    created = create_table(catalog)
    catalog.operations(TABLE).commit(created, [], _other_columns())
    storage = _entry(conditional_metastore).storage
    assert storage is not None
    assert storage.columns == (Column("all", "array<bigint>", "each"),)


def test_a_schema_that_a_metastore_does_not_allow_is_refused_with_a_remedy(
    locking_metastore: HiveServer, tmp_path: Path
) -> None:
    empty(locking_metastore)
    catalog = open_hive_catalog(locking_metastore.uri, tmp_path)
    created = create_table(catalog)
    with pytest.raises(
        StorageError, match=r"set metastore\.disallow\.incompatible\.col\.type\.changes to false"
    ) as raised:
        catalog.operations(TABLE).commit(created, [], _other_columns())
    assert not raised.value.outcome_unknown
    assert catalog.load(TABLE) == created
    assert len(metadata_files(created)) == 1


def _other_columns() -> list[TableUpdate]:
    other = Schema((optional(2, "all", ListType(3, LONG), doc="each"),), schema_id=1)
    return [AddSchema(other), SetCurrentSchema(LAST_ADDED)]


def test_removed_properties_go_and_those_of_others_stay(
    hive: HiveServer, catalog: HiveCatalog
) -> None:
    create_table(catalog, {"a": "1", "b": "2", "gc.enabled": "false"})
    entry = _entry(hive)
    assert _parameters(hive)["external.table.purge"] == "false"
    parameters = {**(entry.parameters or {}), "of-hive": "x"}
    with metastore(hive).connect() as connection:
        changed = replace(entry, parameters=parameters)
        connection.tell(ALTER_TABLE, "db", "t", changed, EnvironmentContext({}))
    operations = catalog.operations(TABLE)
    removals = RemoveProperties(("a", "gc.enabled"))
    operations.commit(operations.refresh(), [], [removals, SetProperties({"b": "3"})])
    found = _parameters(hive)
    assert {"a", "external.table.purge"}.isdisjoint(found)
    assert (found["b"], found["of-hive"]) == ("3", "x")


def test_hive_can_be_given_the_table(hive: HiveServer, catalog: HiveCatalog) -> None:
    create_table(catalog, {"engine.hive.enabled": "true"})
    handler = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
    storage = _entry(hive).storage
    assert _parameters(hive)["storage_handler"] == handler
    assert storage is not None
    assert storage.input_format == "org.apache.iceberg.mr.hive.HiveIcebergInputFormat"
    operations = catalog.operations(TABLE)
    disabled = SetProperties({"engine.hive.enabled": "false"})
    operations.commit(operations.refresh(), [], [disabled])
    assert "storage_handler" not in _parameters(hive)


def test_long_texts_are_left_out(hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(
        hive.uri, tmp_path, **{"iceberg.hive.table-property-max-size": "20"}
    )
    create_table(catalog)
    assert "current-schema" not in _parameters(hive)
    assert set_property(catalog).metadata.schema().fields == SCHEMA.fields


@pytest.mark.parametrize(
    ("name", "value"), [("k" * 257, "v"), ("k", "a\0b"), ("transactional", "TRUE")]
)
def test_properties_that_a_metastore_refuses_are_not_committed(
    hive: HiveServer, tmp_path: Path, name: str, value: str
) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path)
    with pytest.raises(InvalidOptionError, match=f"table property .*{name[:40]}"):
        create_table(catalog, {name: value})
    created = create_table(catalog, {"k" * 256: "v"})
    operations = catalog.operations(TABLE)
    with pytest.raises(InvalidOptionError, match="table property"):
        operations.commit(created, [], [SetProperties({name: value})])
    assert catalog.load(TABLE).metadata == created.metadata


def test_all_types_are_columns_that_a_metastore_takes(
    hive: HiveServer, catalog: HiveCatalog
) -> None:
    types = [
        *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS),
        *(TIMESTAMPTZ_NS, STRING, UUID, BINARY, UNKNOWN, VARIANT, DecimalType(9, 2)),
        *(FixedType(3), GeometryType(), GeographyType()),
    ]
    fields = [optional(i, f"c{i}", kind) for i, kind in enumerate(types, 1)]
    inner = StructType((optional(52, "a", LONG), optional(53, "b", ListType(54, STRING))))
    fields.append(optional(50, "nested", MapType(55, STRING, 56, inner)))
    catalog.create_namespace(("db",), {})
    location = catalog.new_table_location(TABLE)
    updates = new_table_updates(
        Schema(tuple(fields)), location=location, properties={"format-version": "3"}
    )
    catalog.create(TABLE, updates)
    storage = _entry(hive).storage
    assert storage is not None
    assert [column.type for column in storage.columns] == [
        *("boolean", "int", "bigint", "float", "double", "date", "string", "timestamp"),
        *("timestamp with local time zone", "timestamp", "timestamp with local time zone"),
        *("string", "string", "binary", "void", "binary", "decimal(9,2)"),
        *("binary", "binary", "binary", "map<string,struct<a:bigint,b:array<string>>>"),
    ]


def test_hive_2_has_no_timestamps_with_a_zone() -> None:
    schema = Schema((optional(1, "at", TIMESTAMPTZ), optional(2, "all", ListType(3, TIMESTAMPTZ))))
    columns = hive_columns(schema, hive2_compatible=True)
    assert [column.type for column in columns] == ["timestamp", "array<timestamp>"]


def test_namespaces_are_databases(hive: HiveServer, catalog: HiveCatalog, tmp_path: Path) -> None:
    catalog.create_namespace(("plain",), {})
    assert catalog.namespace_properties(("plain",))["location"].endswith("/warehouse/plain.db")
    owner = {
        "hive.metastore.database.owner": "team",
        "hive.metastore.database.owner-type": "ROLE",
    }
    given = {"location": f"file:{tmp_path}/here", "comment": "a lake", "k": "v", **owner}
    catalog.create_namespace(("db",), given)
    assert catalog.namespace_properties(("db",)).items() >= given.items()
    assert catalog.new_table_location(TABLE) == f"file:{tmp_path}/here/t"


def test_a_catalog_without_a_warehouse_leaves_places_to_the_metastore(hive: HiveServer) -> None:
    catalog = load_catalog("lake", {"uri": hive.uri})
    catalog.create_namespace(("db",), {})
    assert catalog.new_table_location(TABLE) == f"file:{hive.warehouse}/db.db/t"


def test_names_are_found_in_any_case(catalog: HiveCatalog) -> None:
    catalog.create_namespace(("Db",), {})
    create_table(catalog)
    assert catalog.load(("DB", "T")).metadata == catalog.load(TABLE).metadata
    assert catalog.list_namespaces() == [("db",), ("default",)]
    assert catalog.list_tables(("DB",)) == [("DB", "t")]


# Tables of other formats.


def test_tables_of_other_formats_are_not_listed(
    hive: HiveServer, catalog: HiveCatalog, tmp_path: Path
) -> None:
    catalog.create_namespace(("db",), {})
    _make_hive_table(hive)
    assert catalog.list_tables(("db",)) == []
    listing = open_hive_catalog(hive.uri, tmp_path, **{"list-all-tables": "true"})
    assert listing.list_tables(("db",)) == [("db", "t")]


def test_tables_of_other_formats_are_refused(
    hive: HiveServer, catalog: HiveCatalog, tmp_path: Path
) -> None:
    catalog.create_namespace(("db",), {})
    _make_hive_table(hive)
    for use in (
        lambda: catalog.load(TABLE),
        lambda: catalog.drop(TABLE),
        lambda: catalog.rename(TABLE, ("db", "u")),
    ):
        with pytest.raises(
            NoSuchTableError, match=r"lake\.db\.t is not an Iceberg table: its type .* EXTERNAL"
        ):
            use()
    with pytest.raises(AlreadyExistsError, match=r"lake\.db\.t is not an Iceberg table"):
        create_table(catalog)
    other = catalog.create(("db", "o"), new_table_updates(SCHEMA, location=f"{tmp_path}/o"))
    with pytest.raises(AlreadyExistsError):
        catalog.register(TABLE, other.metadata_location)
    with pytest.raises(AlreadyExistsError):
        catalog.rename(("db", "o"), TABLE)


def test_a_database_with_tables_of_other_formats_is_not_dropped(
    hive: HiveServer, catalog: HiveCatalog
) -> None:
    catalog.create_namespace(("db",), {})
    _make_hive_table(hive)
    with pytest.raises(NamespaceNotEmptyError, match=r"lake\.db is not empty"):
        catalog.drop_namespace(("db",))


# Errors.


def test_what_is_missing_is_named_with_what_is_near(catalog: HiveCatalog) -> None:
    create_table(catalog)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.tt .*did you mean db\.t\?"):
        catalog.load(("db", "tt"))
    with pytest.raises(NoSuchTableError, match="there is no namespace dbb; did you mean db"):
        catalog.load(("dbb", "t"))
    with pytest.raises(NoSuchNamespaceError, match=r"no namespace dbb; did you mean db\?"):
        catalog.list_tables(("dbb",))
    with pytest.raises(NoSuchTableError, match=r"expected a database and a table"):
        catalog.load(("a", "b", "t"))
    with pytest.raises(InvalidOptionError, match=r"expected a database and a table"):
        catalog.load(("t",))


def test_names_that_the_metastore_refuses_are_named(catalog: HiveCatalog) -> None:
    catalog.create_namespace(("db",), {})
    updates = new_table_updates(SCHEMA, location=catalog.new_table_location(TABLE))
    with pytest.raises(InvalidOptionError, match=r"lake\.db\.über cannot be created"):
        catalog.create(("db", "über"), updates)
    with pytest.raises(InvalidOptionError, match=r"lake\.über cannot be created"):
        catalog.create_namespace(("über",), {})


def test_a_metastore_out_of_reach_is_named_with_what_to_check(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        catalog = open_hive_catalog(f"thrift://127.0.0.1:{port}", tmp_path)
        with pytest.raises(
            StorageError,
            match=rf"catalog lake: its Hive Metastore cannot be reached \(127\.0\.0\.1:{port}: "
            r"Connection refused\); check .* uri",
        ):
            catalog.list_namespaces()


def test_the_default_database_stays(hive: HiveServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"lake\.default .* cannot be dropped"):
        open_hive_catalog(hive.uri, tmp_path).drop_namespace(("default",))


def test_several_metastores_are_tried_in_turn(hive: HiveServer, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        first = f"thrift://127.0.0.1:{closed.getsockname()[1]}"
        catalog = open_hive_catalog(f"{first}, {hive.uri}", tmp_path)
        assert catalog.list_namespaces() == [("default",)]


def test_a_metastore_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        timeout = {"hive.metastore.client.socket.timeout": "1s"}
        catalog = open_hive_catalog(uri, tmp_path, **timeout)
        with pytest.raises(StorageError, match="no answer in 1 s"):
            catalog.list_namespaces()


def test_a_user_is_told_to_the_metastore(hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path, ugi="etl:group-secret")
    assert catalog.list_namespaces() == [("default",)]
    assert "group-secret" not in repr(catalog)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"type": "hive"}, "needs the address of its metastore"),
        ({"uri": "thrift://"}, "expected thrift://<host>:9083"),
        ({"type": "hive", "uri": "http://host/path"}, "Thrift over HTTP is not supported"),
        ({"uri": "thrift://me:hush@host"}, "without a user"),
        ({"uri": "thrift://host:port"}, "expected thrift://<host>:9083"),
        ({"hive.metastore.client.socket.timeout": "soon"}, "expected seconds above 0"),
        ({"lock-check-retry": "1"}, "no property 'lock-check-retry'; did you mean"),
        ({"hive.metastore.use.SSL": "true"}, r"no property 'hive\.metastore\.use\.SSL'"),
        ({"iceberg.hive.lock-timeout-ms": "soon"}, "expected an integer"),
        ({"lock-check-min-wait-time": "-1"}, "not below 0"),
        ({"iceberg.engine.hive.lock-enabled": "maybe"}, "expected true or false"),
        ({"ugi": ":group"}, "expected a user and a group"),
        (
            {"lock-check-max-wait-time": "1", "iceberg.hive.lock-check-max-wait-ms": "1"},
            "set one of them",
        ),
    ],
)
def test_wrong_properties_are_refused(properties: dict[str, str], message: str) -> None:
    given = {"uri": "thrift://host:9083", "warehouse": "/w", **properties}
    if properties == {"type": "hive"}:
        del given["uri"]
    with pytest.raises(InvalidOptionError, match=message) as raised:
        load_catalog("lake", given)
    assert "catalog lake" in str(raised.value)
    assert "hush" not in str(raised.value)


def test_kerberos_needs_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kerberos", None)
    given = {"uri": "thrift://host:9083", "hive.kerberos-authentication": "true"}
    with pytest.raises(
        InvalidOptionError, match=r"catalog lake: .*pip install 'icebergds\[hive-kerberos\]'"
    ):
        load_catalog("lake", given)


def test_a_storage_that_the_metastore_does_not_know_is_refused(catalog: HiveCatalog) -> None:
    elsewhere = {"location": "nosuch://bucket/db"}
    with pytest.raises(StorageError, match=r"create namespace lake\.db: .*No FileSystem") as raised:
        catalog.create_namespace(("db",), elsewhere)
    assert not raised.value.outcome_unknown
    assert catalog.list_namespaces() == [("default",)]


def test_a_change_at_which_the_metastore_fails_is_unknown(catalog: HiveCatalog) -> None:
    created = create_table(catalog)
    # Too long for its database.
    column = optional(2, "n" * 800, LONG)
    wide = AddSchema(Schema((*SCHEMA.fields, column), schema_id=1))
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.t: it is unknown whether"):
        catalog.operations(TABLE).commit(created, [], [wide, SetCurrentSchema(LAST_ADDED)])
    assert catalog.load(TABLE) == created
    assert len(metadata_files(created)) == 2


def test_a_loaded_table_does_not_take_the_catalog_to_other_processes(
    catalog: HiveCatalog, hive: HiveServer
) -> None:
    assert str(hive.port) not in repr(pickle.loads(pickle.dumps(create_table(catalog).io)))
