"""One table bucket of S3 Tables that is a catalog of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid

import pytest
from java_process import JavaProcess
from moto_server import MotoServer
from oracles.java_environment import s3_tables_jars
from shared_catalog import ROWS, Lake, SharedCatalog

pytestmark = pytest.mark.interop


@pytest.fixture
def lake(java_in_aws: JavaProcess, moto: MotoServer) -> Lake:
    if isinstance(missing := s3_tables_jars(), str):
        pytest.skip(missing)
    properties = moto.s3_tables_properties()
    lake = Lake(f"lake_{uuid.uuid4().hex}", java_in_aws, properties, keeps_files=False)
    lake.open_in_java(
        {
            "catalog-impl": "software.amazon.s3tables.iceberg.S3TablesCatalog",
            "warehouse": properties["warehouse"],
            # The other is not in the bundle of AWS.
            "http-client.type": "urlconnection",
            "s3tables.endpoint": moto.endpoint,
            "s3.endpoint": moto.endpoint,
            "s3.path-style-access": "true",
        }
    )
    lake.ours().create_namespace(lake.database)
    return lake


class TestS3TablesCatalog(SharedCatalog):
    pass


def test_namespaces_are_shared(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE {c}.theirs")
    lake.ours().create_namespace("ours")
    assert lake.ours().list_namespaces() == [("db",), ("ours",), ("theirs",)]
    assert sorted(lake.sql("SHOW NAMESPACES IN {c}")) == [["db"], ["ours"], ["theirs"]]
    lake.ours().drop_namespace("theirs")
    lake.sql("DROP NAMESPACE {c}.ours")
    assert lake.ours().list_namespaces() == [("db",)]


def test_tables_of_both_are_where_s3_tables_puts_them(lake: Lake, moto: MotoServer) -> None:
    lake.sql("CREATE TABLE {db}.theirs (id BIGINT, s STRING) USING iceberg")
    lake.ours().create_table(lake.table("ours"), ROWS)
    for name in ("theirs", "ours"):
        table = lake.ours().load_table(lake.table(name))
        found = moto.client("s3tables").get_table_metadata_location(
            tableBucketARN=lake.properties["warehouse"], namespace=lake.database, name=name
        )
        assert table.location() == found["warehouseLocation"].rstrip("/")
        assert table.metadata_location == found["metadataLocation"]
