"""One database that is a catalog of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from java_process import JavaProcess
from mariadb_server import MariaDbServer
from oracles.java_environment import jdbc_driver
from postgres_server import PostgresServer
from shared_catalog import ROWS, Lake, SharedCatalog, rows

import icebergds

pytestmark = pytest.mark.interop


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
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
    if request.param == "mariadb":
        maria: MariaDbServer = request.getfixturevalue("mariadb")
        properties = maria.jdbc_properties(maria.new_database())
    name = f"lake_{uuid.uuid4().hex}"
    return Lake(name, java_process, {**properties, "warehouse": str(tmp_path / "warehouse")})


@pytest.fixture(params=["ours", "java_v0", "java_v1"])
def lake(request: pytest.FixtureRequest, unopened: Lake) -> Lake:
    """A catalog in database tables that icebergds made, or Java in either version."""
    if request.param == "ours":
        unopened.ours().create_namespace("db")
        _open(unopened)
    else:
        version = {"jdbc.schema-version": "V1"} if request.param == "java_v1" else {}
        _open(unopened, **version)
        unopened.sql("CREATE NAMESPACE {c}.db")
    return unopened


def _open(lake: Lake, **more: str) -> None:
    """Makes the catalog known to Java, which makes its database tables when it is used."""
    jdbc = "org.apache.iceberg.jdbc.JdbcCatalog"
    lake.open_in_java({"catalog-impl": jdbc, **lake.properties, **more})


class TestJdbcCatalog(SharedCatalog):
    pass


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


@pytest.fixture
def typed(unopened: Lake) -> Lake:
    """A catalog in database tables of Java in version 1, with the namespace `db`."""
    _open(unopened, **{"jdbc.schema-version": "V1"})
    unopened.sql("CREATE NAMESPACE {c}.db")
    return unopened


def test_a_view_of_java_is_no_table(typed: Lake) -> None:
    typed.sql("CREATE VIEW {c}.db.v AS SELECT 1 AS one")
    assert typed.ours().list_tables("db") == []
    assert not typed.ours().table_exists("db.v")
    with pytest.raises(icebergds.errors.AlreadyExistsError, match="as a table or view"):
        typed.ours().create_table("db.v", ROWS)


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
    typed.ours().create_table("db.t", ROWS).append(rows({1: "a", 2: "b"}))
    view = typed.ours().create_view("db.v", ROWS, "SELECT id, s FROM t WHERE id > 1")
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
