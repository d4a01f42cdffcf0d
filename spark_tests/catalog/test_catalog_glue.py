"""Tables and namespaces of a Glue catalog as Glue has them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from aws_tables import TABLE, create_table, set_property
from built.schemas import optional
from moto_server import MotoServer

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.spec.schema import Schema
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
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    SetCurrentSchema,
)
from icebergds.testing import catalog_steps


@pytest.fixture
def catalog(moto: MotoServer, tmp_path: Path) -> Catalog:
    return load_catalog("lake", moto.properties("glue") | {"warehouse": str(tmp_path)})


@pytest.fixture
def glue(moto: MotoServer) -> Any:
    return moto.client("glue")


def entry(glue: Any) -> dict[str, Any]:
    """The table `TABLE` as Glue has it."""
    found: dict[str, Any] = glue.get_table(DatabaseName="db", Name="t")["Table"]
    return found


# Tables.


def test_a_new_table_is_described_as_java_iceberg_does(catalog: Catalog, glue: Any) -> None:
    fields = (
        NestedField(1, "id", LONG, required=True, doc="the key"),
        optional(2, "price", DecimalType(9, 2)),
    )
    properties = {"comment": "events of all sites", "write.data.path": "/data"}
    catalog.create_namespace(("db",), {})
    state = catalog_steps.create_table(catalog, TABLE, properties, Schema(fields))
    found = entry(glue)
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert found["Description"] == "events of all sites"
    assert found["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": state.metadata_location,
    }
    assert found["StorageDescriptor"] == {
        "Location": state.metadata.location,
        "AdditionalLocations": ["/data"],
        "Columns": [
            {
                "Name": "id",
                "Type": "bigint",
                "Comment": "the key",
                "Parameters": {
                    "iceberg.field.id": "1",
                    "iceberg.field.optional": "false",
                    "iceberg.field.current": "true",
                },
            },
            {
                "Name": "price",
                "Type": "decimal(9,2)",
                "Parameters": {
                    "iceberg.field.id": "2",
                    "iceberg.field.optional": "true",
                    "iceberg.field.current": "true",
                },
            },
        ],
    }


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOLEAN, "boolean"),
        (INT, "int"),
        (LONG, "bigint"),
        (FLOAT, "float"),
        (DOUBLE, "double"),
        (DATE, "date"),
        (TIME, "string"),
        (TIMESTAMP, "timestamp"),
        (TIMESTAMPTZ, "timestamp"),
        (STRING, "string"),
        (UUID, "string"),
        (BINARY, "binary"),
        (FixedType(4), "binary"),
        (ListType(2, DecimalType(38, 0)), "array<decimal(38,0)>"),
        (MapType(2, STRING, 3, LONG), "map<string,bigint>"),
        (StructType((optional(2, "a", INT), optional(3, "b", UUID))), "struct<a:int,b:string>"),
    ],
)
def test_types_have_the_names_of_hive(catalog: Catalog, glue: Any, kind: Any, text: str) -> None:
    catalog_steps.create_table(catalog, TABLE, schema=Schema((optional(1, "c", kind),)))
    (column,) = entry(glue)["StorageDescriptor"]["Columns"]
    assert column["Type"] == text


def test_a_commit_names_the_file_before(catalog: Catalog, glue: Any) -> None:
    created = create_table(catalog)
    committed = set_property(catalog)
    parameters = entry(glue)["Parameters"]
    assert parameters["metadata_location"] == committed.metadata_location
    assert parameters["previous_metadata_location"] == created.metadata_location


def test_a_commit_keeps_what_others_wrote_into_the_entry(catalog: Catalog, glue: Any) -> None:
    create_table(catalog)
    found = entry(glue)
    found["Parameters"]["owner_team"] = "events"
    found["StorageDescriptor"]["Columns"][0]["Comment"] = "said by hand"
    kept = ("Name", "TableType", "Parameters", "StorageDescriptor")
    changed = {key: found[key] for key in kept} | {"Description": "described by hand"}
    glue.update_table(DatabaseName="db", TableInput=changed)
    set_property(catalog)
    found = entry(glue)
    assert found["Parameters"]["owner_team"] == "events"
    assert found["StorageDescriptor"]["Columns"][0]["Comment"] == "said by hand"
    assert found["Description"] == "described by hand"


def test_columns_of_earlier_schemas_are_not_current(catalog: Catalog, glue: Any) -> None:
    base = create_table(catalog)
    renamed = Schema((optional(1, "number", LONG),))
    updates = [AddSchema(renamed), SetCurrentSchema(LAST_ADDED)]
    catalog.operations(TABLE).commit(base, [], updates)
    columns = entry(glue)["StorageDescriptor"]["Columns"]
    current = {c["Name"]: c["Parameters"]["iceberg.field.current"] for c in columns}
    assert current == {"number": "true", "id": "false"}


def test_texts_that_are_too_long_for_glue_are_shortened(catalog: Catalog, glue: Any) -> None:
    schema = Schema((NestedField(1, "id", LONG, doc="d" * 300),))
    catalog_steps.create_table(catalog, TABLE, {"comment": "c" * 3000}, schema)
    found = entry(glue)
    assert found["Description"] == "c" * 2048
    assert found["StorageDescriptor"]["Columns"][0]["Comment"] == "d" * 255


def test_tables_of_other_kinds_are_neither_listed_nor_loaded(catalog: Catalog, glue: Any) -> None:
    create_table(catalog)
    glue.create_table(
        DatabaseName="db", TableInput={"Name": "hive", "Parameters": {"table_type": "x"}}
    )
    glue.create_table(DatabaseName="db", TableInput={"Name": "view"})
    assert catalog.list_tables(("db",)) == [TABLE]
    for name in ("hive", "view"):
        with pytest.raises(NoSuchTableError, match=rf"lake\.db\.{name} is not an Iceberg table"):
            catalog.load(("db", name))
        with pytest.raises(NoSuchTableError, match="not an Iceberg table"):
            catalog.drop(("db", name))
        with pytest.raises(NoSuchTableError, match="not an Iceberg table"):
            catalog.rename(("db", name), ("db", "u"))
        with pytest.raises(AlreadyExistsError, match="not an Iceberg table"):
            catalog.create(("db", name), catalog_steps.new_table(catalog, ("db", name)))
    catalog.drop(TABLE)
    with pytest.raises(NamespaceNotEmptyError, match="hive"):
        catalog.drop_namespace(("db",))


def test_a_missing_table_or_namespace_is_named_with_a_similar_one(catalog: Catalog) -> None:
    catalog_steps.create_table(catalog, ("db", "events"))
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.event .*did you mean db\.events\?"):
        catalog.load(("db", "event"))
    with pytest.raises(NoSuchTableError, match=r"no namespace dbs; did you mean db\?"):
        catalog.load(("dbs", "events"))


def test_a_table_is_renamed_with_what_glue_has_of_it(catalog: Catalog, glue: Any) -> None:
    catalog_steps.create_table(catalog, TABLE, {"comment": "events"})
    before = entry(glue)
    catalog.create_namespace(("other",), {})
    catalog.rename(TABLE, ("other", "u"))
    after = glue.get_table(DatabaseName="other", Name="u")["Table"]
    for key in ("Description", "TableType", "Parameters", "StorageDescriptor"):
        assert after[key] == before[key]


@pytest.mark.parametrize("name", ["Events", "über", "a-b", "a b", "x" * 256, ""])
def test_names_that_hive_does_not_know_are_refused(catalog: Catalog, name: str) -> None:
    catalog.create_namespace(("db",), {})
    with pytest.raises(InvalidOptionError, match=r"cannot be a name in Glue|not an identifier"):
        catalog.load(("db", name))
    with pytest.raises(InvalidOptionError, match="cannot be a name in Glue"):
        catalog.create_namespace((name,), {})


def test_namespaces_in_namespaces_are_refused(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"namespaces in namespaces, such as a\.b"):
        catalog.list_tables(("a", "b"))
    with pytest.raises(InvalidOptionError, match="expected a namespace and a name"):
        catalog.load(("t",))


def test_tables_are_not_created_in_databases_of_s3_tables(catalog: Catalog, glue: Any) -> None:
    federated = {
        "Identifier": "arn:aws:s3tables:us-east-1:1:bucket/b",
        "ConnectionName": "aws:s3tables",
        "ConnectionType": "aws:s3tables",
    }
    glue.create_database(DatabaseInput={"Name": "db", "FederatedDatabase": federated})
    with pytest.raises(UnsupportedFeatureError, match="type s3tables"):
        catalog.create(TABLE, catalog_steps.new_table(catalog, TABLE))


# Locations.


def test_a_table_is_in_the_location_of_its_namespace(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace(("db",), {"location": f"{tmp_path}/own/"})
    assert catalog.new_table_location(TABLE) == f"{tmp_path}/own/t"


def test_a_table_is_in_the_warehouse_as_those_of_hive_are(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace(("db",), {})
    assert catalog.new_table_location(TABLE) == f"{tmp_path}/db.db/t"


def test_a_table_without_a_warehouse_needs_a_location(moto: MotoServer) -> None:
    catalog = load_catalog("lake", moto.properties("glue"))
    catalog.create_namespace(("db",), {})
    with pytest.raises(InvalidOptionError, match=r"catalog lake has no warehouse for db\.t"):
        catalog.new_table_location(TABLE)


# Namespaces.


def test_namespaces_are_databases(catalog: Catalog, glue: Any) -> None:
    given = {"location": "s3://b/db/", "comment": "of events", "team": "x"}
    catalog.create_namespace(("db",), given)
    database = glue.get_database(Name="db")["Database"]
    assert database["LocationUri"] == "s3://b/db/"
    assert database["Description"] == "of events"
    assert database["Parameters"] == {"team": "x"}
    expected = given | {"location": "s3://b/db"}
    assert catalog.namespace_properties(("db",)) == expected
    catalog.update_namespace_properties(("db",), ["comment"], {"team": "y"})
    del expected["comment"]
    assert catalog.namespace_properties(("db",)) == expected | {"team": "y"}


def test_a_property_is_not_both_removed_and_set(catalog: Catalog) -> None:
    catalog.create_namespace(("db",), {})
    with pytest.raises(InvalidOptionError, match="k cannot be both removed and set"):
        catalog.update_namespace_properties(("db",), ["k"], {"k": "v"})


def test_a_change_of_properties_keeps_permissions(catalog: Catalog, glue: Any) -> None:
    permissions = [
        {
            "Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"},
            "Permissions": ["ALL"],
        }
    ]
    given = {"Name": "db", "CreateTableDefaultPermissions": permissions}
    glue.create_database(DatabaseInput=given)
    catalog.update_namespace_properties(("db",), [], {"k": "v"})
    database = glue.get_database(Name="db")["Database"]
    assert database["CreateTableDefaultPermissions"] == permissions


def test_many_tables_and_namespaces_are_listed_in_pages(catalog: Catalog, glue: Any) -> None:
    names = [f"t{i:03d}" for i in range(120)]
    glue.create_database(DatabaseInput={"Name": "db"})
    for name in names:
        given = {"Name": name, "Parameters": {"table_type": "iceberg"}}
        glue.create_table(DatabaseName="db", TableInput=given)
    assert catalog.list_tables(("db",)) == [("db", name) for name in names]


# What it holds.


def test_a_catalog_travels_to_other_processes_and_shows_no_secret(catalog: Catalog) -> None:
    create_table(catalog)
    assert "secret" not in repr(catalog)
    assert pickle.loads(pickle.dumps(catalog)).load(TABLE) == catalog.load(TABLE)


def test_its_storage_has_none_of_its_keys(catalog: Catalog) -> None:
    assert b"glue" not in pickle.dumps(catalog.io)
    assert b"tester" not in pickle.dumps(catalog.io)


@pytest.mark.parametrize("name", ["..", ".", "../db.db/t", "a/b"])
def test_a_name_that_is_no_directory_needs_a_location(
    moto: MotoServer, tmp_path: Path, name: str
) -> None:
    further = {"warehouse": str(tmp_path), "glue.skip-name-validation": "true"}
    catalog = load_catalog("lake", moto.properties("glue") | further)
    catalog.create_namespace(("db",), {})
    with pytest.raises(InvalidOptionError, match="give the table a location"):
        catalog.new_table_location(("db", name))
