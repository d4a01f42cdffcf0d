"""One Data Catalog of Glue, or table of DynamoDB, that is a catalog of icebergds and of Java."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from java_process import JavaProcess, java_process
from moto_server import REGION, MotoServer
from oracles.java_environment import JavaEnvironment, aws_bundle

import icebergds
from icebergds.errors import NoSuchTableError

pytestmark = pytest.mark.interop

_ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])
_JAVA = {
    "glue": "org.apache.iceberg.aws.glue.GlueCatalog",
    "dynamodb": "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog",
}


@pytest.fixture(scope="module")
def java_in_aws(
    java: JavaEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JavaProcess]:
    """Java Iceberg with credentials of AWS."""
    if isinstance(missing := aws_bundle(), str):
        pytest.skip(missing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "tester")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        with java_process(java, tmp_path_factory.mktemp("java")) as process:
            yield process


@dataclass(frozen=True)
class Lake:
    """A catalog in both."""

    name: str
    java: JavaProcess
    properties: dict[str, str]

    def ours(self) -> icebergds.Catalog:
        return icebergds.load_catalog(self.name, **self.properties)

    def sql(self, statement: str) -> list[list[Any]]:
        """Runs a statement in Java, in which {c} is the catalog."""
        return list(self.java.ask("sql", statement=statement.replace("{c}", self.name)))

    def both_read(self, identifier: str, expected: dict[int, str]) -> None:
        """Both have the rows of a table."""
        java = dict(self.sql(f"SELECT id, s FROM {{c}}.{identifier}"))
        ours = self.ours().load_table(identifier).scan().to_arrow()
        assert java == expected
        assert dict(zip(ours["id"].to_pylist(), ours["s"].to_pylist(), strict=True)) == expected


@pytest.fixture(params=list(_JAVA))
def lake(
    request: pytest.FixtureRequest, java_in_aws: JavaProcess, moto: MotoServer, tmp_path: Path
) -> Lake:
    kind = str(request.param)
    name = f"lake_{uuid.uuid4().hex}"
    properties = moto.properties(kind) | {"warehouse": str(tmp_path / "warehouse")}
    lake = Lake(name, java_in_aws, properties)
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".catalog-impl": _JAVA[kind],
        ".io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        ".cache-enabled": "false",
        ".client.region": REGION,
        f".{kind}.endpoint": moto.endpoint,
        ".warehouse": properties["warehouse"],
    }
    for key, value in settings.items():
        lake.sql(f"SET `spark.sql.catalog.{{c}}{key}`=`{value}`")
    lake.ours().create_namespace("db")
    return lake


def test_both_write_to_a_table_that_java_made(lake: Lake) -> None:
    lake.sql("CREATE TABLE {c}.db.t (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s)")
    assert lake.ours().list_tables("db") == [("db", "t")]
    _write_in_turn(lake, lake.ours().load_table("db.t"))


def test_both_write_to_a_table_that_we_made(lake: Lake) -> None:
    table = lake.ours().create_table("db.t", _ROWS, partition_spec="s")
    assert lake.sql("SHOW TABLES IN {c}.db") == [["db", "t", False]]
    _write_in_turn(lake, table)


def _write_in_turn(lake: Lake, table: icebergds.Table) -> None:
    table.append(_rows({1: "a", 2: "b"}))
    lake.both_read("db.t", {1: "a", 2: "b"})
    lake.sql("INSERT INTO {c}.db.t VALUES (3, 'a'), (4, 'c')")
    lake.both_read("db.t", {1: "a", 2: "b", 3: "a", 4: "c"})
    # Of a state that Java has replaced since.
    table.append(_rows({5: "b"}))
    lake.both_read("db.t", {1: "a", 2: "b", 3: "a", 4: "c", 5: "b"})
    lake.sql("DELETE FROM {c}.db.t WHERE s = 'b'")
    lake.sql("ALTER TABLE {c}.db.t ADD COLUMN v INT")
    table.refresh().overwrite(_rows({6: "d"}), "s = 'c'")
    lake.both_read("db.t", {1: "a", 3: "a", 6: "d"})
    logged = [entry.metadata_file for entry in table.refresh().metadata.metadata_log]
    assert len(set(logged)) == len(logged) == 6


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


def test_tables_are_renamed_and_dropped_for_both(lake: Lake) -> None:
    lake.ours().create_namespace("other")
    lake.sql("CREATE TABLE {c}.db.theirs (id BIGINT, s STRING) USING iceberg")
    lake.ours().create_table("db.ours", _ROWS).append(_rows({1: "a"}))
    lake.sql("ALTER TABLE {c}.db.ours RENAME TO other.by_java")
    lake.ours().rename_table("db.theirs", "db.by_us").append(_rows({2: "b"}))
    lake.both_read("other.by_java", {1: "a"})
    lake.both_read("db.by_us", {2: "b"})
    lake.sql("DROP TABLE {c}.db.by_us")
    with pytest.raises(NoSuchTableError, match="by_us"):
        lake.ours().load_table("db.by_us")
    lake.ours().drop_table("other.by_java")
    assert lake.sql("SHOW TABLES IN {c}.other") == lake.sql("SHOW TABLES IN {c}.db") == []


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


def _rows(rows: dict[int, str]) -> pa.Table:
    return pa.table({"id": list(rows), "s": list(rows.values())}, _ROWS)
