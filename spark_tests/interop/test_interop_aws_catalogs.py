"""One Data Catalog of Glue, or table of DynamoDB, that is a catalog of icebergds and of Java."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from java_process import JavaProcess
from moto_server import REGION, MotoServer
from shared_catalog import Lake, SharedCatalog

pytestmark = pytest.mark.interop

_JAVA = {
    "glue": "org.apache.iceberg.aws.glue.GlueCatalog",
    "dynamodb": "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog",
}


@pytest.fixture(params=list(_JAVA))
def lake(
    request: pytest.FixtureRequest, java_in_aws: JavaProcess, moto: MotoServer, tmp_path: Path
) -> Lake:
    kind = str(request.param)
    name = f"lake_{uuid.uuid4().hex}"
    properties = moto.properties(kind) | {"warehouse": str(tmp_path / "warehouse")}
    lake = Lake(name, java_in_aws, properties)
    lake.open_in_java(
        {
            "catalog-impl": _JAVA[kind],
            "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            "client.region": REGION,
            f"{kind}.endpoint": moto.endpoint,
            "warehouse": properties["warehouse"],
        }
    )
    lake.ours().create_namespace("db")
    return lake


class TestCatalogsInAws(SharedCatalog):
    pass


def test_namespaces_are_shared(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE {c}.theirs WITH DBPROPERTIES ('made_by' = 'java')")
    lake.ours().create_namespace("ours", {"made_by": "us"})
    assert lake.ours().list_namespaces() == [("db",), ("ours",), ("theirs",)]
    assert sorted(lake.sql("SHOW NAMESPACES IN {c}")) == [["db"], ["ours"], ["theirs"]]
    assert lake.ours().load_namespace_properties("theirs")["made_by"] == "java"
    lake.sql("ALTER NAMESPACE {c}.ours SET DBPROPERTIES ('k' = 'v')")
    found = lake.ours().load_namespace_properties("ours")
    assert (found["made_by"], found["k"]) == ("us", "v")
    lake.ours().update_namespace_properties("theirs", updates={"k": "w"})
    described = dict(lake.sql("DESCRIBE NAMESPACE EXTENDED {c}.theirs"))
    assert "(k,w)" in described["Properties"]
    lake.ours().drop_namespace("theirs")
    lake.sql("DROP NAMESPACE {c}.ours")
    assert lake.ours().list_namespaces() == [("db",)]


def test_glue_has_the_same_of_a_table_whoever_made_it(lake: Lake, moto: MotoServer) -> None:
    if lake.properties["type"] != "glue":
        pytest.skip("this is about Glue")
    columns = "id BIGINT COMMENT 'key', m MAP<STRING, STRUCT<a: DECIMAL(9, 2), t: TIMESTAMP>>"
    lake.sql(f"CREATE TABLE {{c}}.db.theirs ({columns}) USING iceberg COMMENT 'events'")
    ours = lake.ours().create_table("db.ours", columns, properties={"comment": "events"})
    lake.sql("ALTER TABLE {c}.db.theirs RENAME COLUMN id TO number")
    with ours.update_schema() as update:
        update.rename_column("id", "number")
    both = [_entry(moto, name) for name in ("theirs", "ours")]
    assert both[0] == both[1]


def _entry(moto: MotoServer, name: str) -> dict[str, Any]:
    """What Glue has of a table, without what differs between any two."""
    table = moto.client("glue").get_table(DatabaseName="db", Name=name)["Table"]
    table["Parameters"] = sorted(table["Parameters"])
    del table["StorageDescriptor"]["Location"]
    for key in ("Name", "CreateTime", "UpdateTime"):
        del table[key]
    return dict(table)
