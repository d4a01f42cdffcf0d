"""Tables and namespaces of a DynamoDB catalog as DynamoDB has them, shared with PyIceberg."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from aws_tables import TABLE, create_table, metadata_files, set_property
from faulty_proxy import FaultyProxy, Spoil
from moto_server import REGION, MotoServer

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidMetadataError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
)


@pytest.fixture
def properties(moto: MotoServer, tmp_path: Path) -> dict[str, str]:
    return moto.properties("dynamodb") | {"warehouse": str(tmp_path)}


@pytest.fixture
def catalog(properties: dict[str, str]) -> Catalog:
    return load_catalog("lake", properties)


@pytest.fixture
def dynamodb(moto: MotoServer) -> Any:
    return moto.client("dynamodb")


def items(dynamodb: Any, table: str = "iceberg") -> dict[tuple[str, str], dict[str, Any]]:
    """The items of the catalog's table by their keys."""
    found = dynamodb.scan(TableName=table)["Items"]
    return {(item["identifier"]["S"], item["namespace"]["S"]): item for item in found}


# The table in DynamoDB.


def test_the_table_is_created_at_the_first_use(catalog: Catalog, dynamodb: Any) -> None:
    assert dynamodb.list_tables()["TableNames"] == []
    assert catalog.list_namespaces() == []
    table = dynamodb.describe_table(TableName="iceberg")["Table"]
    keys = [{"AttributeName": "identifier", "KeyType": "HASH"}]
    keys.append({"AttributeName": "namespace", "KeyType": "RANGE"})
    assert table["KeySchema"] == keys
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "namespace-identifier"
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["namespace", "identifier"]


@pytest.mark.parametrize("name", ["dynamodb.table-name", "table-name"])
def test_the_table_may_have_another_name(
    properties: dict[str, str], dynamodb: Any, name: str
) -> None:
    load_catalog("lake", properties | {name: "mine"}).create_namespace(("db",), {})
    assert dynamodb.list_tables()["TableNames"] == ["mine"]


# Items.


def test_a_table_is_an_item_as_java_iceberg_writes_it(catalog: Catalog, dynamodb: Any) -> None:
    created = create_table(catalog)
    item = items(dynamodb)["db.t", "db"]
    assert item.keys() == {
        "identifier",
        "namespace",
        "v",
        "created_at",
        "updated_at",
        "p.table_type",
        "p.metadata_location",
    }
    assert item["p.table_type"] == {"S": "ICEBERG"}
    assert item["p.metadata_location"] == {"S": created.metadata_location}
    assert item["created_at"] == item["updated_at"]
    assert int(item["created_at"]["N"]) > 1_700_000_000_000


def test_a_commit_gives_the_item_a_new_version(catalog: Catalog, dynamodb: Any) -> None:
    created = create_table(catalog)
    before = items(dynamodb)["db.t", "db"]
    committed = set_property(catalog)
    after = items(dynamodb)["db.t", "db"]
    assert after["v"] != before["v"]
    assert after["created_at"] == before["created_at"]
    assert after["p.metadata_location"] == {"S": committed.metadata_location}
    assert after["p.previous_metadata_location"] == {"S": created.metadata_location}


def test_a_namespace_is_an_item_with_its_properties(catalog: Catalog, dynamodb: Any) -> None:
    catalog.create_namespace(("a", "b"), {"k": "v"})
    item = items(dynamodb)["NAMESPACE", "a.b"]
    assert item["p.k"] == {"S": "v"}
    catalog.update_namespace_properties(("a", "b"), ["k", "missing"], {"a.b": "w", "size": "1"})
    changed = items(dynamodb)["NAMESPACE", "a.b"]
    assert changed["v"] != item["v"]
    assert catalog.namespace_properties(("a", "b")) == {"a.b": "w", "size": "1"}


def test_a_rename_keeps_what_the_item_says(catalog: Catalog, dynamodb: Any) -> None:
    create_table(catalog)
    committed = set_property(catalog)
    catalog.create_namespace(("other",), {})
    catalog.rename(TABLE, ("other", "u"))
    item = items(dynamodb)["other.u", "other"]
    assert item["p.metadata_location"] == {"S": committed.metadata_location}
    assert ("db.t", "db") not in items(dynamodb)


# Locations and names.


@pytest.mark.parametrize("name", ["default_location", "location"])
def test_a_table_is_in_the_location_of_its_namespace(catalog: Catalog, name: str) -> None:
    catalog.create_namespace(("db",), {name: "s3://b/own/"})
    assert catalog.new_table_location(TABLE) == "s3://b/own/t"


def test_a_table_is_in_the_warehouse_as_those_of_hive_are(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace(("db", "raw"), {})
    assert catalog.new_table_location(("db", "raw", "t")) == f"{tmp_path}/db.raw.db/t"


@pytest.mark.parametrize("identifier", [("t",), ("a.b", "t"), ("a", "t.u"), ("", "t"), ("a", "")])
def test_identifiers_that_could_not_be_told_apart_are_refused(
    catalog: Catalog, identifier: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidOptionError, match="not an identifier in DynamoDB"):
        catalog.load(identifier)


def test_a_missing_table_or_namespace_is_named_with_a_similar_one(catalog: Catalog) -> None:
    create_table(catalog)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.tt .*did you mean db\.t\?"):
        catalog.load(("db", "tt"))
    with pytest.raises(NoSuchTableError, match=r"no namespace dbs; did you mean db\?"):
        catalog.load(("dbs", "t"))


def test_a_namespace_exists_for_what_is_below_it(catalog: Catalog) -> None:
    catalog.create_namespace(("a", "b"), {})
    assert catalog.list_namespaces() == [("a",)]
    assert catalog.list_namespaces(("a",)) == [("a", "b")]
    assert catalog.namespace_properties(("a",)) == {}
    with pytest.raises(NoSuchNamespaceError, match="create_namespace"):
        catalog.check_creation(("a", "t"), "")
    catalog.create_namespace(("a",), {"owner": "me"})
    assert catalog.namespace_properties(("a",)) == {"owner": "me"}


def test_a_namespace_with_a_namespace_is_not_dropped(catalog: Catalog) -> None:
    catalog.create_namespace(("a",), {})
    catalog.create_namespace(("a", "b"), {})
    catalog.create_namespace(("ab",), {})
    with pytest.raises(NamespaceNotEmptyError, match=r"contains a\.b"):
        catalog.drop_namespace(("a",))
    assert catalog.list_namespaces() == [("a",), ("ab",)]


# Failures.


@pytest.fixture
def once(moto: MotoServer, properties: dict[str, str], proxy: FaultyProxy) -> Catalog:
    """The catalog by way of the proxy; it sends each request once."""
    given = properties | {"dynamodb.endpoint": proxy.endpoint, "dynamodb.max-retries": "0"}
    return load_catalog("lake", given)


def test_a_commit_that_may_still_land_is_unknown_and_keeps_its_file(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    created = create_table(catalog)
    proxy.spoil("UpdateItem", Spoil.CUT_BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.t: it is unknown .*00001-"):
        set_property(once)
    assert len(metadata_files(created)) == 2


def test_a_commit_that_others_overtook_is_a_conflict(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    created = create_table(catalog)
    proxy.spoil("GetItem", None, None, then=lambda: set_property(catalog, "other"))
    with pytest.raises(CommitConflictError):
        set_property(once)
    assert len(metadata_files(created)) == 2


def test_a_table_that_is_committed_to_meanwhile_is_dropped_as_it_is_last(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil("GetItem", None, then=lambda: set_property(catalog))
    last = once.drop(TABLE)
    assert last is not None
    assert last.metadata.properties["k"] == "v"


def test_a_table_that_is_committed_to_meanwhile_is_not_renamed(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil("GetItem", None, None, None, then=lambda: set_property(catalog))
    with pytest.raises(CommitConflictError, match="not renamed"):
        once.rename(TABLE, ("db", "u"))
    assert catalog.list_tables(("db",)) == [TABLE]


# What it holds.


def test_a_catalog_travels_to_other_processes_and_shows_no_secret(catalog: Catalog) -> None:
    create_table(catalog)
    assert "secret" not in repr(catalog)
    assert pickle.loads(pickle.dumps(catalog)).load(TABLE) == catalog.load(TABLE)
    assert b"tester" not in pickle.dumps(catalog.io)


# PyIceberg's catalog, which has no commits.


@pytest.fixture
def theirs(moto: MotoServer, tmp_path: Path) -> Any:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    from pyiceberg.catalog.dynamodb import DynamoDbCatalog

    client = boto3.client(
        "dynamodb",
        region_name=REGION,
        endpoint_url=moto.endpoint,
        aws_access_key_id="tester",
        aws_secret_access_key="secret",
    )
    return DynamoDbCatalog("lake", client, warehouse=f"file://{tmp_path}")


@pytest.mark.interop
def test_pyiceberg_reads_what_we_wrote(catalog: Catalog, theirs: Any) -> None:
    created = create_table(catalog, {"mine": "1"})
    catalog.update_namespace_properties(("db",), [], {"k": "v"})
    assert theirs.list_namespaces() == [("db",)]
    assert theirs.load_namespace_properties("db") == {"k": "v"}
    assert theirs.list_tables("db") == [TABLE]
    table = theirs.load_table("db.t")
    assert table.metadata_location == created.metadata_location
    committed = set_property(catalog)
    assert theirs.load_table("db.t").metadata_location == committed.metadata_location
    theirs.rename_table("db.t", "db.u")
    assert catalog.load(("db", "u")).metadata == committed.metadata


@pytest.mark.interop
def test_we_commit_to_what_pyiceberg_wrote(catalog: Catalog, theirs: Any) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    theirs.create_namespace("db", {"k": "v"})
    table = theirs.create_table("db.t", Schema(NestedField(1, "id", LongType())))
    assert catalog.list_tables(("db",)) == [TABLE]
    assert catalog.namespace_properties(("db",)) == {"k": "v"}
    assert catalog.load(TABLE).metadata_location == table.metadata_location
    committed = set_property(catalog)
    assert theirs.load_table("db.t").metadata_location == committed.metadata_location
    theirs.drop_table("db.t")
    assert catalog.list_tables(("db",)) == []


def test_a_table_without_a_version_is_not_dropped(catalog: Catalog, dynamodb: Any) -> None:
    create_table(catalog)
    key = {"identifier": {"S": "db.t"}, "namespace": {"S": "db"}}
    dynamodb.update_item(TableName="iceberg", Key=key, UpdateExpression="REMOVE v")
    with pytest.raises(
        InvalidMetadataError, match=r"lake\.db\.t was not dropped: .* no attribute v"
    ):
        catalog.drop(TABLE)
    assert ("db.t", "db") in items(dynamodb)
