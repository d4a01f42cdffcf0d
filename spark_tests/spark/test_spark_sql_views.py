"""Views of Iceberg catalogs in SQL, as Java Iceberg writes and reads them; temporary views."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from sql_sessions import in_spark, lake_session, rows

from icebergds import Table, View, load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    InvalidStatementError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedFeatureError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The table `lake.db.t` with two rows."""
    session = lake_session(spark, tmp_path_factory.mktemp("views"))
    load_catalog("lake").create_table("db.t", "id bigint COMMENT 'the key', name string")
    session.sql("INSERT INTO lake.db.t VALUES (1, 'a'), (2, NULL)")
    return session


@pytest.fixture
def lake(session: SparkSession) -> Iterator[SparkSession]:
    yield session
    in_spark(session)
    for parts in load_catalog("lake").list_views("db"):
        load_catalog("lake").drop_view(parts)
    for _, name, _ in rows(session, "SHOW VIEWS IN global_temp"):
        session.catalog.dropTempView(name)


def view(name: str) -> View:
    return load_catalog("lake").load_view(f"db.{name}")


def test_view_keeps_its_text_and_where_its_names_are_looked_for(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    lake.sql(
        "CREATE VIEW v (i COMMENT 'the i', n) COMMENT 'it''s' TBLPROPERTIES ('p' = '1') AS\n"
        "  SELECT id, name FROM t -- all"
    )
    in_spark(lake)
    assert rows(lake, "SELECT * FROM lake.db.v ORDER BY i") == [(1, "a"), (2, None)]
    made = view("v")
    version = made.current_version()
    assert version.sql_for("spark") == "SELECT id, name FROM t"
    assert (version.default_catalog, version.default_namespace) == (None, ("db",))
    assert [(field.name, field.doc) for field in made.schema().fields] == [
        ("i", "the i"),
        ("n", None),
    ]
    assert made.properties == {
        "comment": "it's",
        "p": "1",
        "create_engine_version": f"Spark {lake.version}",
        "engine_version": f"Spark {lake.version}",
        "spark.query-column-names": "id,name",
    }


def test_view_is_described_as_by_java(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    lake.sql(
        "CREATE VIEW v (i COMMENT 'the i', n) COMMENT 'it''s' TBLPROPERTIES ('p' = 'o''o') AS "
        "SELECT id, name FROM t"
    )
    location = view("v").location
    properties = (
        f"'format-version' = '1'{{0}}'location' = '{location}'{{0}}"
        "'p' = 'o\\'o'{0}'provider' = 'iceberg'"
    )
    assert rows(lake, "SHOW CREATE TABLE v") == [
        (
            "CREATE VIEW lake.db.v (\n  i COMMENT 'the i',\n  n)\nCOMMENT 'it\\'s'\n"
            f"TBLPROPERTIES (\n  {properties.format(chr(44) + chr(10) + '  ')})\n"
            "AS\nSELECT id, name FROM t\n",
        )
    ]
    assert rows(lake, "DESCRIBE EXTENDED v") == [
        ("i", "bigint", "the i"),
        ("n", "string", ""),
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Comment", "it's", ""),
        ("View Catalog and Namespace", "lake.db", ""),
        ("View Query Output Columns", "[id, name]", ""),
        ("View Properties", f"[{properties.format(', ')}]", ""),
        ("Created By", f"Spark {lake.version}", ""),
    ]
    assert rows(lake, "SHOW TBLPROPERTIES v ('p')") == [("p", "o'o")]
    assert rows(lake, "SHOW COLUMNS IN v") == [("i",), ("n",)]
    assert rows(lake, "SHOW VIEWS LIKE 'v|w'") == [("db", "v", False)]
    assert rows(lake, "SHOW TABLES") == [("db", "t", False)]


def test_existing_view_is_kept_or_replaced(lake: SparkSession) -> None:
    lake.sql("CREATE VIEW lake.db.v TBLPROPERTIES ('a' = '1') AS SELECT 1 AS x")
    with pytest.raises(AlreadyExistsError):
        lake.sql("CREATE VIEW lake.db.v AS SELECT 2 AS x")
    lake.sql("CREATE VIEW IF NOT EXISTS lake.db.v AS SELECT 2 AS x")
    assert rows(lake, "SELECT * FROM lake.db.v") == [(1,)]
    lake.sql("CREATE OR REPLACE VIEW lake.db.v TBLPROPERTIES ('b' = '2') AS SELECT '3' AS y")
    assert rows(lake, "SELECT y FROM lake.db.v") == [("3",)]
    assert len(view("v").versions()) == 2
    assert {"a": "1", "b": "2"}.items() <= view("v").properties.items()
    lake.sql("ALTER VIEW lake.db.v AS SELECT 4 AS z")
    assert rows(lake, "SELECT z FROM lake.db.v") == [(4,)]
    with pytest.raises(AlreadyExistsError):
        lake.sql("CREATE OR REPLACE VIEW lake.db.t AS SELECT 1 AS x")


def test_location_of_a_view_is_a_property_in_create(lake: SparkSession, tmp_path: Path) -> None:
    made = f"CREATE OR REPLACE VIEW lake.db.v TBLPROPERTIES ('location' = '{tmp_path}/{{}}') AS "
    for directory, value in (("a", 1), ("b", 2)):
        lake.sql(f"{made.format(directory)} SELECT {value} AS x")
        assert view("v").location == f"{tmp_path}/{directory}"
        assert "location" not in view("v").properties
        assert list(map(tuple, lake.table("lake.db.v").collect())) == [(value,)]


def test_view_reads_views_and_tables_of_spark_by_its_own_names(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE own USING parquet AS SELECT 1L AS id")
    lake.sql("CREATE VIEW lake.db.v AS SELECT own.id, t.name FROM own JOIN lake.db.t t USING (id)")
    lake.sql("CREATE VIEW lake.db.w AS WITH x AS (SELECT * FROM lake.db.v) SELECT x.id FROM x")
    assert view("v").current_version().default_catalog == "spark_catalog"
    lake.sql("CREATE TEMPORARY VIEW own AS SELECT 2L AS id")
    lake.sql("USE lake.db")
    assert rows(lake, "SELECT v.name FROM v WHERE v.id = 1") == [("a",)]
    assert rows(lake, "SELECT * FROM lake.db.w") == [(1,)]
    lake.sql("DROP TABLE spark_catalog.default.own")


def test_columns_have_the_types_that_the_view_says(lake: SparkSession) -> None:
    table = load_catalog("lake").create_table("db.typed", "a int")
    table.append(lake.sql("SELECT 1 AS a"))
    lake.sql("CREATE VIEW lake.db.v AS SELECT * FROM lake.db.typed")
    lake.sql("CREATE VIEW lake.db.w AS SELECT a + 1L AS a FROM lake.db.typed")
    view("w").replace_version("SELECT a FROM lake.db.typed")
    assert lake.sql("SELECT * FROM lake.db.w").schema.simpleString() == "struct<a:bigint>"
    with table.update_schema() as update:
        update.update_column("a", "bigint")
    with pytest.raises(InvalidStatementError, match="column a is int, but its query gives bigint"):
        lake.sql("SELECT * FROM lake.db.v")
    with table.update_schema() as update:
        update.add_column("b", "int")
    with pytest.raises(InvalidStatementError, match="1 columns, but its query gives 2"):
        lake.sql("SELECT * FROM lake.db.v")
    load_catalog("lake").drop_table("db.typed")


def test_views_that_read_each_other_are_refused(lake: SparkSession) -> None:
    lake.sql("CREATE VIEW lake.db.v AS SELECT 1 AS x")
    lake.sql("CREATE VIEW lake.db.w AS SELECT * FROM lake.db.v")
    cycle = "lake.db.v -> lake.db.w -> lake.db.v"
    with pytest.raises(InvalidStatementError, match=cycle):
        lake.sql("CREATE OR REPLACE VIEW lake.db.v AS SELECT * FROM lake.db.w")
    assert rows(lake, "SELECT * FROM lake.db.w") == [(1,)]
    view("v").replace_version("SELECT * FROM lake.db.w")
    with pytest.raises(InvalidStatementError, match=cycle):
        lake.sql("SELECT * FROM lake.db.v")


def test_views_of_what_only_the_session_has_are_refused(lake: SparkSession) -> None:
    lake.sql("CREATE TEMPORARY VIEW own AS SELECT 1 AS x")
    lake.udf.register("own_function", lambda x: x, "int")
    for query, named in {
        "SELECT * FROM own": "temporary view own",
        "SELECT (SELECT max(x) FROM own)": "temporary view own",
        "SELECT own_function(1) AS x": "temporary function own_function",
    }.items():
        with pytest.raises(InvalidStatementError, match=named):
            lake.sql(f"CREATE VIEW lake.db.v AS {query}")
    with pytest.raises(UnsupportedFeatureError, match="DataFrames"):
        lake.sql("CREATE VIEW lake.db.v AS SELECT * FROM {df}", df=lake.range(1))
    assert rows(lake, "SHOW VIEWS IN lake.db LIKE 'v'") == []


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE VIEW lake.db.v (a, b) AS SELECT 1 AS x", r"2 columns \(a, b\)"),
        ("CREATE VIEW lake.db.v AS SELECT 1 AS x, 2 AS X", "two columns"),
        ("CREATE VIEW lake.db.v (a, A) AS SELECT 1, 2", "two columns"),
        ("CREATE VIEW v AS SELECT * FROM lake.db.t", r"CREATE VIEW lake\.db\.v"),
    ],
)
def test_what_cannot_be_a_view_is_refused(lake: SparkSession, statement: str, named: str) -> None:
    with pytest.raises(InvalidStatementError, match=named):
        lake.sql(statement)


def test_view_of_what_does_not_exist_is_refused(lake: SparkSession) -> None:
    with pytest.raises(NoSuchTableError, match="nope"):
        lake.sql("CREATE VIEW lake.db.v AS SELECT * FROM lake.db.nope")
    with pytest.raises(AnalysisException, match="nope"):
        lake.sql("CREATE VIEW lake.db.v AS SELECT nope FROM lake.db.t")
    with pytest.raises(NoSuchNamespaceError):
        lake.sql("CREATE VIEW lake.nope.v AS SELECT 1 AS x")


def test_properties_and_name_of_a_view_change(lake: SparkSession) -> None:
    lake.sql("CREATE VIEW lake.db.v AS SELECT 1 AS x")
    lake.sql("ALTER VIEW lake.db.v SET TBLPROPERTIES ('a' = '1', 'comment' = 'c')")
    assert {"a": "1", "comment": "c"}.items() <= view("v").properties.items()
    lake.sql("ALTER VIEW lake.db.v UNSET TBLPROPERTIES ('a')")
    assert "a" not in view("v").properties
    with pytest.raises(InvalidStatementError, match="no property 'a'"):
        lake.sql("ALTER VIEW lake.db.v UNSET TBLPROPERTIES ('a')")
    lake.sql("ALTER VIEW lake.db.v UNSET TBLPROPERTIES IF EXISTS ('a')")
    for change in (
        "SET TBLPROPERTIES ('spark.query-column-names' = 'a')",
        "UNSET TBLPROPERTIES IF EXISTS ('format-version')",
    ):
        with pytest.raises(InvalidStatementError, match="is reserved"):
            lake.sql(f"ALTER VIEW lake.db.v {change}")
    with pytest.raises(InvalidStatementError, match=r"RENAME TO lake\."):
        lake.sql("ALTER VIEW lake.db.v RENAME TO w")
    lake.sql("ALTER VIEW lake.db.v RENAME TO lake.db.w")
    assert rows(lake, "SHOW VIEWS IN lake.db LIKE '*'") == [("db", "w", False)]
    with pytest.raises(NoSuchViewError):
        lake.sql("ALTER VIEW lake.db.v SET TBLPROPERTIES ('a' = '1')")
    with pytest.raises(UnsupportedFeatureError, match="SCHEMA BINDING"):
        lake.sql("ALTER VIEW lake.db.w WITH SCHEMA EVOLUTION")


def test_views_are_dropped_and_tables_are_not(lake: SparkSession) -> None:
    lake.sql("CREATE VIEW lake.db.v AS SELECT 1 AS x")
    lake.sql("DROP VIEW lake.db.v")
    with pytest.raises(NoSuchViewError):
        lake.sql("DROP VIEW lake.db.v")
    lake.sql("DROP VIEW IF EXISTS lake.db.v")
    for statement in ("DROP VIEW lake.db.t", "ALTER VIEW lake.db.t RENAME TO lake.db.u"):
        with pytest.raises(InvalidStatementError, match="is a table"):
            lake.sql(statement)
    assert rows(lake, "SELECT count(*) FROM lake.db.t") == [(2,)]


@pytest.fixture
def grows(lake: SparkSession) -> Iterator[Table]:
    """A table of one row, and a temporary view of it."""
    table = load_catalog("lake").create_table("db.grows", "id bigint, name string")
    table.append(lake.range(1).selectExpr("id", "'a' AS name"))
    lake.sql("CREATE TEMP VIEW seen (a COMMENT 'x', b) AS SELECT * FROM lake.db.grows")
    yield table
    lake.catalog.dropTempView("seen")
    load_catalog("lake").drop_table("db.grows")


def test_temporary_view_reads_the_newest_rows(lake: SparkSession, grows: Table) -> None:
    lake.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW seen_by_all AS TABLE lake.db.grows")
    lake.sql("CREATE TEMP VIEW seen_again AS SELECT s.a + 1 AS next FROM seen s")
    lake.sql("INSERT INTO lake.db.grows VALUES (1, 'b'), (2, 'c')")
    assert rows(lake, "SELECT seen.a FROM seen WHERE b > 'a' ORDER BY a") == [(1,), (2,)]
    assert rows(lake, "SELECT max(id) FROM global_temp.seen_by_all") == [(2,)]
    assert rows(lake, "SELECT sum(next) FROM seen_again") == [(6,)]
    assert lake.table("seen").count() == 3
    assert lake.read.table("seen").count() == 1
    lake.sql("INSERT INTO lake.db.grows SELECT a + 10, b FROM seen")
    assert rows(lake, "SELECT count(*) FROM seen") == [(6,)]
    with pytest.raises(AnalysisException, match="already exists"):
        lake.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM lake.db.grows")
    lake.sql("DROP VIEW global_temp.seen_by_all")
    lake.sql("DROP VIEW seen_again")


def test_temporary_view_that_spark_replaced_is_the_new_one(
    lake: SparkSession, grows: Table
) -> None:
    lake.read.table("seen").where("a > 0").createOrReplaceTempView("seen")
    assert rows(lake, "SELECT count(*) FROM seen") == [(0,)]
    lake.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT id FROM lake.db.grows")
    lake.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT id + 1 AS id FROM seen")
    lake.sql("INSERT INTO lake.db.grows VALUES (1, 'b')")
    assert rows(lake, "SELECT id FROM seen") == [(1,)]
    lake.sql("DROP VIEW seen")
    with pytest.raises(AnalysisException, match="seen"):
        lake.sql("SELECT * FROM seen")


def test_temporary_view_keeps_its_columns(lake: SparkSession, grows: Table) -> None:
    lake.sql("ALTER TABLE lake.db.grows ADD COLUMN first int FIRST")
    assert rows(lake, "SELECT * FROM seen") == [(0, "a")]
    lake.sql("ALTER TABLE lake.db.grows DROP COLUMN name")
    with pytest.raises(InvalidStatementError, match=r"temporary view seen: .* 0 columns name"):
        lake.sql("SELECT a FROM seen")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW lake.db.v SELECT 1",
        "CREATE VIEW lake.db.v () AS SELECT 1 AS x",
        "CREATE OR REPLACE VIEW IF NOT EXISTS lake.db.v AS SELECT 1 AS x",
        "ALTER VIEW lake.db.v SET TBLPROPERTIES ('location' = '/x')",
        "CREATE VIEW lake.db.v COMMENT 'a' COMMENT 'b' AS SELECT 1 AS x",
        "CREATE TEMPORARY VIEW v TBLPROPERTIES ('a' = '1') AS SELECT * FROM lake.db.t",
        "ALTER VIEW lake.db.v SET PROPERTIES ('a' = '1')",
    ],
)
def test_malformed_statement_has_the_error_of_spark(lake: SparkSession, statement: str) -> None:
    with pytest.raises(ParseException):
        lake.sql(statement)


@pytest.mark.parametrize("created", ["VIEW lake.db.by_day", "TEMPORARY VIEW by_day"])
def test_a_condition_on_a_view_leaves_files_out(lake: SparkSession, created: str) -> None:
    days = "lake.db.days"
    lake.sql(f"CREATE OR REPLACE TABLE {days} (id int, ts timestamp) PARTITIONED BY (days(ts))")
    lake.sql(
        f"INSERT INTO {days} SELECT id, timestamp'2026-01-01 12:00:00' + make_dt_interval(id % 4) "
        "FROM (SELECT CAST(id AS INT) AS id FROM range(8))"
    )
    lake.sql(f"CREATE {created} AS SELECT date(ts) AS day, count(*) AS n FROM {days} GROUP BY 1")
    query = f"SELECT * FROM {created.split()[-1]} WHERE day = '2026-01-02'"
    assert rows(lake, query) == [(date(2026, 1, 2), 2)]
    [(text,)] = rows(lake, f"EXPLAIN {query}")
    assert "files      1 of 4 kept" in text
