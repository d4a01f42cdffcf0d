"""Tables and namespaces of an S3 Tables catalog as S3 Tables has them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from aws_tables import TABLE, create_table, set_property
from faulty_proxy import FaultyProxy, Refusal, Spoil
from moto_server import MotoServer

import icebergds
from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.s3tables.catalog import S3TablesCatalog
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidMetadataError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.spec.updates.table_updates import UpgradeFormatVersion
from icebergds.testing.catalog_steps import new_table


@pytest.fixture
def properties(moto: MotoServer) -> dict[str, str]:
    return moto.s3_tables_properties()


@pytest.fixture
def catalog(properties: dict[str, str]) -> Catalog:
    return load_catalog("lake", properties)


@pytest.fixture
def entry(moto: MotoServer, properties: dict[str, str]) -> Any:
    """Asks S3 Tables where the metadata of a table is."""

    def ask(namespace: str = "db", name: str = "t") -> dict[str, Any]:
        found: dict[str, Any] = moto.client("s3tables").get_table_metadata_location(
            tableBucketARN=properties["warehouse"], namespace=namespace, name=name
        )
        return found

    return ask


def test_a_table_is_where_s3_tables_puts_it(catalog: Catalog, entry: Any) -> None:
    created = create_table(catalog)
    assert created.metadata.location == entry()["warehouseLocation"].rstrip("/")
    assert created.metadata_location == entry()["metadataLocation"]
    assert created.metadata_location.startswith(f"{created.metadata.location}/metadata/00000-")


def test_a_commit_changes_the_version_token(catalog: Catalog, entry: Any) -> None:
    create_table(catalog)
    before = entry()
    committed = set_property(catalog)
    assert entry()["metadataLocation"] == committed.metadata_location
    assert entry()["versionToken"] != before["versionToken"]


def test_a_table_at_another_place_is_refused(catalog: Catalog) -> None:
    catalog.create_namespace(("db",), {})
    with pytest.raises(InvalidOptionError, match=r"lake\.db\.t cannot be at s3://b/t"):
        catalog.check_creation(TABLE, "s3://b/t")
    other = new_table(catalog, ("db", "other"))
    with pytest.raises(InvalidOptionError, match="S3 Tables chooses the locations"):
        catalog.create(TABLE, other)
    assert catalog.list_tables(("db",)) == [("db", "other")]


def test_a_creation_that_fails_leaves_no_table(catalog: Catalog) -> None:
    catalog.create_namespace(("db",), {})
    with pytest.raises(InvalidMetadataError):
        catalog.create(TABLE, [*new_table(catalog, TABLE), UpgradeFormatVersion(1)])
    assert catalog.list_tables(("db",)) == []


def test_a_table_without_metadata_does_not_exist_and_can_be_created(catalog: Catalog) -> None:
    catalog.create_namespace(("db",), {})
    location = catalog.new_table_location(TABLE)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.t does not exist"):
        catalog.load(TABLE)
    assert create_table(catalog).metadata.location == location


def test_tables_are_only_dropped_with_their_files(properties: dict[str, str]) -> None:
    catalog = icebergds.load_catalog("lake", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    with pytest.raises(UnsupportedFeatureError, match=r"lake\.db\.t was not dropped.*purge_table"):
        catalog.drop_table("db.t")
    assert catalog.load_table("db.t").location() == table.location()
    catalog.purge_table("db.t")
    assert catalog.list_tables("db") == []


def test_tables_are_not_registered(catalog: Catalog) -> None:
    created = create_table(catalog)
    with pytest.raises(UnsupportedFeatureError, match="cannot register s3:"):
        catalog.register(("db", "u"), created.metadata_location)


def test_a_table_is_renamed_where_it_is(catalog: Catalog, entry: Any) -> None:
    created = create_table(catalog)
    catalog.create_namespace(("other",), {})
    catalog.rename(TABLE, ("other", "u"))
    assert entry("other", "u")["metadataLocation"] == created.metadata_location
    create_table(catalog)
    with pytest.raises(AlreadyExistsError, match=r"lake\.other\.u exists"):
        catalog.rename(TABLE, ("other", "u"))


def test_namespaces_have_one_level_and_no_properties(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedFeatureError, match="no properties, such as location"):
        catalog.create_namespace(("db",), {"location": "s3://b"})
    with pytest.raises(UnsupportedFeatureError, match=r"namespaces in namespaces, such as a\.b"):
        catalog.create_namespace(("a", "b"), {})
    assert catalog.list_namespaces() == []


def test_a_namespace_with_tables_is_not_dropped(catalog: Catalog) -> None:
    create_table(catalog)
    with pytest.raises(NamespaceNotEmptyError, match="contains the table t"):
        catalog.drop_namespace(("db",))


@pytest.mark.parametrize("name", ["Events", "_a", "a-b", "a b", "x" * 256, ""])
def test_names_that_s3_tables_does_not_allow_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidOptionError, match="cannot be a name in S3 Tables"):
        catalog.create_namespace((name,), {})


def test_a_missing_table_or_namespace_is_named_with_a_similar_one(catalog: Catalog) -> None:
    create_table(catalog)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.tt .*did you mean db\.t\?"):
        catalog.load(("db", "tt"))
    with pytest.raises(NoSuchTableError, match=r"no namespace dbs; did you mean db\?"):
        catalog.load(("dbs", "t"))


# The warehouse.


@pytest.mark.parametrize("warehouse", ["", "s3://bucket", "arn:aws:s3:::bucket"])
def test_the_warehouse_is_a_table_bucket(properties: dict[str, str], warehouse: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected the ARN of a table bucket"):
        load_catalog("lake", properties | {"warehouse": warehouse})


def test_the_region_is_that_of_the_warehouse(properties: dict[str, str]) -> None:
    del properties["s3tables.region"]
    catalog: Any = load_catalog("lake", properties)
    assert catalog.entries.client.settings.region == "us-east-1"


# Failures.


@pytest.fixture
def once(properties: dict[str, str], proxy: FaultyProxy) -> Catalog:
    """The catalog by way of the proxy; it sends each request once."""
    given = properties | {"s3tables.endpoint": proxy.endpoint, "s3tables.max-retries": "0"}
    return load_catalog("lake", given)


def test_a_commit_that_may_still_land_is_unknown(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil("PUT metadata-location", Spoil.CUT_BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.t: it is unknown .*00001-"):
        set_property(once)


def test_a_commit_that_others_overtook_is_a_conflict(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil("GET metadata-location", None, None, then=lambda: set_property(catalog, "other"))
    with pytest.raises(CommitConflictError):
        set_property(once)
    properties = catalog.load(TABLE).metadata.properties
    assert "other" in properties
    assert "k" not in properties


def test_of_two_that_create_a_table_one_wins(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    catalog.create_namespace(("db",), {})
    updates = new_table(catalog, TABLE)
    winner = []
    proxy.spoil(
        "GET metadata-location",
        *[None] * 3,
        then=lambda: winner.append(catalog.create(TABLE, updates)),
    )
    with pytest.raises(AlreadyExistsError):
        once.create(TABLE, updates)
    assert catalog.load(TABLE) == winner[0]


def test_a_table_that_s3_tables_does_not_delete_is_given_up(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    assert isinstance(once, S3TablesCatalog)
    proxy.spoil("DELETE /tables", *[Refusal(409, "ConflictException", "busy")] * 100)
    with pytest.raises(CommitConflictError, match=r"db\.t was not dropped: .*busy"):
        once.purge(TABLE)
    proxy.spoil("")
    assert catalog.list_tables(("db",)) == [TABLE]


# What it holds.


def test_a_catalog_travels_to_other_processes_and_shows_no_secret(catalog: Catalog) -> None:
    create_table(catalog)
    assert "secret" not in repr(catalog)
    assert pickle.loads(pickle.dumps(catalog)).load(TABLE) == catalog.load(TABLE)
    assert b"s3tables" not in pickle.dumps(catalog.io)
