"""One database that is a catalog of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from java_process import JavaProcess
from oracles.java_environment import jdbc_driver
from postgres_server import PostgresServer

import icebergds
from icebergds.errors import NoSuchTableError

pytestmark = pytest.mark.interop

_ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])


@dataclass(frozen=True)
class Lake:
    """A catalog of one name and one database in both."""

    name: str
    java: JavaProcess
    properties: dict[str, str]

    def ours(self) -> icebergds.Catalog:
        return icebergds.load_catalog(self.name, **self.properties)

    def sql(self, statement: str) -> list[list[Any]]:
        """Runs a statement in Java, in which {c} is the catalog."""
        return list(self.java.ask("sql", statement=statement.replace("{c}", self.name)))

    def open_in_java(self, **more: str) -> None:
        """Makes the catalog known to Spark, which makes its database tables when it is used."""
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            ".cache-enabled": "false",
            **{f".{key}": value for key, value in {**self.properties, **more}.items()},
        }
        for key, value in settings.items():
            self.sql(f"SET `spark.sql.catalog.{{c}}{key}`=`{value}`")

    def both_read(self, identifier: str, expected: dict[int, str]) -> None:
        """Both have the rows of a table."""
        java = dict(self.sql(f"SELECT id, s FROM {{c}}.{identifier}"))
        ours = self.ours().load_table(identifier).scan().to_arrow()
        assert java == expected
        assert dict(zip(ours["id"].to_pylist(), ours["s"].to_pylist(), strict=True)) == expected


@pytest.fixture(params=["sqlite", "postgresql"])
def unopened(
    request: pytest.FixtureRequest, java_process: JavaProcess, tmp_path: Path
) -> Iterator[Lake]:
    """A new database, in which nobody has made tables."""
    driver = jdbc_driver(request.param)
    if isinstance(driver, str):
        pytest.skip(driver)
    properties = {"uri": f"jdbc:sqlite:{tmp_path}/lake.db"}
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        uri = f"jdbc:postgresql://127.0.0.1:{server.port}/{server.new_database()}"
        properties = {"uri": uri, "jdbc.user": "tester"}
    name = f"lake_{uuid.uuid4().hex}"
    return Lake(name, java_process, {**properties, "warehouse": str(tmp_path / "warehouse")})


@pytest.fixture(params=["ours", "java_v0", "java_v1"])
def lake(request: pytest.FixtureRequest, unopened: Lake) -> Lake:
    """A catalog in database tables that icebergds made, or Java in either version."""
    if request.param == "ours":
        unopened.ours().create_namespace("db")
        unopened.open_in_java()
    else:
        version = {"jdbc.schema-version": "V1"} if request.param == "java_v1" else {}
        unopened.open_in_java(**version)
        unopened.sql("CREATE NAMESPACE {c}.db")
    return unopened


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
    lake.sql("CREATE NAMESPACE {c}.db.below")
    lake.ours().create_namespace("ours", {"made_by": "us"})
    assert lake.ours().list_namespaces() == [("db",), ("ours",), ("theirs",)]
    assert sorted(lake.sql("SHOW NAMESPACES IN {c}")) == [["db"], ["ours"], ["theirs"]]
    assert lake.ours().list_namespaces("db") == [("db", "below")]
    assert lake.ours().load_namespace_properties("theirs")["made_by"] == "java"
    lake.sql("ALTER NAMESPACE {c}.ours SET DBPROPERTIES ('k' = 'v')")
    assert lake.ours().load_namespace_properties("ours") == {"made_by": "us", "k": "v"}
    lake.ours().update_namespace_properties("theirs", updates={"k": "w"})
    described = dict(lake.sql("DESCRIBE NAMESPACE EXTENDED {c}.theirs"))
    assert "(k,w)" in described["Properties"]
    lake.ours().drop_namespace("theirs")
    lake.sql("DROP NAMESPACE {c}.ours")
    assert lake.sql("SHOW NAMESPACES IN {c}") == [["db"]]
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


@pytest.fixture
def typed(unopened: Lake) -> Lake:
    """A catalog in database tables of Java in version 1, with the namespace `db`."""
    unopened.open_in_java(**{"jdbc.schema-version": "V1"})
    unopened.sql("CREATE NAMESPACE {c}.db")
    return unopened


def test_a_view_of_java_is_no_table(typed: Lake) -> None:
    typed.sql("CREATE VIEW {c}.db.v AS SELECT 1 AS one")
    assert typed.ours().list_tables("db") == []
    assert not typed.ours().table_exists("db.v")
    with pytest.raises(icebergds.errors.AlreadyExistsError, match="as a table or view"):
        typed.ours().create_table("db.v", _ROWS)


def test_a_view_of_java_is_read_and_replaced(typed: Lake) -> None:
    typed.sql("CREATE VIEW {c}.db.v (one COMMENT 'first') COMMENT 'made by Java' AS SELECT 1 AS a")
    view = typed.ours().load_view("db.v")
    assert view.sql_for("spark") == "SELECT 1 AS a"
    assert [(f.name, f.doc) for f in view.schema().fields] == [("one", "first")]
    assert view.properties["comment"] == "made by Java"
    view.replace_version("SELECT 2 AS a")
    assert typed.sql("SELECT * FROM {c}.db.v") == [[2]]
    typed.sql("CREATE OR REPLACE VIEW {c}.db.v AS SELECT 3 AS a, 'x' AS b")
    assert view.refresh().sql_for("spark") == "SELECT 3 AS a, 'x' AS b"
    assert len(view.versions()) == 3
    typed.sql("ALTER VIEW {c}.db.v SET TBLPROPERTIES ('k' = 'v')")
    assert view.refresh().properties["k"] == "v"


def test_a_view_of_ours_is_queried_by_java(typed: Lake) -> None:
    typed.ours().create_table("db.t", _ROWS).append(_rows({1: "a", 2: "b"}))
    view = typed.ours().create_view("db.v", _ROWS, "SELECT id, s FROM t WHERE id > 1")
    assert typed.sql("SELECT * FROM {c}.db.v") == [[2, "b"]]
    assert [row[1] for row in typed.sql("SHOW VIEWS IN {c}.db")] == ["v"]
    typed.sql("ALTER VIEW {c}.db.v RENAME TO {c}.db.w")
    assert typed.ours().list_views("db") == [("db", "w")]
    typed.ours().rename_view("db.w", "db.v").set_properties(comment="ours")
    described = {row[0]: row[1] for row in typed.sql("DESCRIBE EXTENDED {c}.db.v")}
    assert described["Comment"] == "ours"
    assert view.refresh().uuid == typed.ours().load_view("db.v").uuid
    typed.sql("DROP VIEW {c}.db.v")
    assert not typed.ours().view_exists("db.v")


def _rows(rows: dict[int, str]) -> pa.Table:
    return pa.table({"id": list(rows), "s": list(rows.values())}, _ROWS)
