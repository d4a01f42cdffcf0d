"""Statements that show what there is, and those of namespaces, as Java Iceberg answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from sql_sessions import in_spark, lake_session, rows

from icebergds import load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    InvalidOptionError,
    InvalidStatementError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.types import LongType, NestedField, StringType

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Tables `lake.db.t`, of two rows, and `lake.db.u`, of none."""
    session = lake_session(spark, tmp_path_factory.mktemp("descriptions"))
    catalog = load_catalog("lake")
    catalog.create_table(
        "db.t",
        "id bigint NOT NULL COMMENT 'the key', name string, day date, s struct<a:int,`b c`:string>",
        partition_spec="day, bucket(4, id)",
        sort_order="id desc, name",
        properties={"comment": "it's one", "x": "y", "owner": "us"},
        identifier_fields="id",
    )
    catalog.create_table(
        "db.u", "id bigint, p string", partition_spec="p", properties={"format-version": "3"}
    )
    session.sql(
        "INSERT INTO lake.db.t VALUES (1, 'a', DATE'2024-01-01', NULL), "
        "(2, 'b', DATE'2024-01-02', NULL)"
    )
    return session


@pytest.fixture
def lake(session: SparkSession) -> Iterator[SparkSession]:
    yield session
    in_spark(session)
    session.sql("CLEAR CACHE")


def location(table: str) -> str:
    return load_catalog("lake").load_table(table).location()


def columns(session: SparkSession, statement: str) -> list[tuple[str, str, bool]]:
    schema = session.sql(statement).schema
    return [(field.name, field.dataType.simpleString(), field.nullable) for field in schema]


def test_use_chooses_a_catalog_and_a_namespace_for_what_follows(lake: SparkSession) -> None:
    lake.sql("USE lake")
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [("lake", "")]
    assert rows(lake, "SHOW NAMESPACES") == [("db",)]
    lake.sql("USE NAMESPACE db")
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [("lake", "db")]
    assert rows(lake, "SELECT count(*) FROM t") == [(2,)]
    assert rows(lake, "SHOW TABLES") == [("db", "t", False), ("db", "u", False)]
    with pytest.raises(NoSuchNamespaceError, match="nope"):
        lake.sql("USE nope")
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [("lake", "db")]
    lake.sql("USE spark_catalog.default")
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [("spark_catalog", "default")]
    lake.sql("SET CATALOG 'lake'")
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [("lake", "")]
    lake.sql("SET CATALOG spark_catalog")
    assert rows(lake, "SHOW CURRENT SCHEMA") == [("spark_catalog", "default")]


def test_functions_of_the_session_see_what_use_has_chosen(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    seen = lake.sql("SELECT current_catalog(), current_database(), concat(current_schema(), '!')")
    assert list(map(tuple, seen.collect())) == [("lake", "db", "db!")]
    assert seen.columns[:2] == ["current_catalog()", "current_schema()"]
    grouped = "SELECT count(*) FROM t GROUP BY current_catalog() HAVING current_schema() = 'db'"
    assert rows(lake, grouped) == [(2,)]


def test_unknown_catalog_names_the_nearest(lake: SparkSession) -> None:
    for statement in ("USE lak.db", "SET CATALOG lak"):
        with pytest.raises(InvalidStatementError, match="did you mean lake"):
            lake.sql(statement)


def test_catalogs_are_those_of_spark_and_ours(lake: SparkSession) -> None:
    assert {("lake",), ("spark_catalog",)} <= set(rows(lake, "SHOW CATALOGS"))
    assert rows(lake, "SHOW CATALOGS LIKE 'la*'") == [("lake",)]
    assert columns(lake, "SHOW CATALOGS") == [("catalog", "string", False)]


def test_namespaces_are_created_changed_and_dropped(lake: SparkSession) -> None:
    lake.sql("CREATE SCHEMA lake.n COMMENT 'it''s' WITH DBPROPERTIES ('a' = '1', b.c = 2)")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.n COMMENT 'other'")
    with pytest.raises(AlreadyExistsError):
        lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("ALTER NAMESPACE lake.n SET PROPERTIES ('d' = '4')")
    lake.sql("ALTER DATABASE lake.n UNSET PROPERTIES ('a')")
    lake.sql("ALTER NAMESPACE lake.n SET LOCATION '/x'")
    assert rows(lake, "DESCRIBE NAMESPACE EXTENDED lake.n") == [
        ("Catalog Name", "lake"),
        ("Namespace Name", "n"),
        ("Comment", "it's"),
        ("Location", "/x"),
        ("Properties", "((b.c,2), (d,4))"),
    ]
    lake.sql("COMMENT ON NAMESPACE lake.n IS 'new'")
    assert rows(lake, "DESC DATABASE lake.n")[2:] == [("Comment", "new"), ("Location", "/x")]
    lake.sql("COMMENT ON SCHEMA lake.n IS NULL")
    assert rows(lake, "DESC DATABASE lake.n")[2] == ("Comment", "")
    lake.sql("CREATE NAMESPACE lake.n.sub")
    assert rows(lake, "SHOW NAMESPACES IN lake.n") == [("n.sub",)]
    assert rows(lake, "SHOW DATABASES FROM lake LIKE 'd*|x'") == [("db",)]
    for statement in ("DROP NAMESPACE lake.n", "DROP NAMESPACE lake.n CASCADE"):
        with pytest.raises(NamespaceNotEmptyError):
            lake.sql(statement)
    lake.sql("DROP NAMESPACE lake.n.sub")
    lake.sql("DROP SCHEMA lake.n RESTRICT")
    with pytest.raises(NoSuchNamespaceError):
        lake.sql("DROP NAMESPACE lake.n")
    lake.sql("DROP NAMESPACE IF EXISTS lake.n")
    with pytest.raises(NoSuchNamespaceError):
        lake.sql("SHOW TABLES IN lake.n")


def test_statements_of_namespaces_want_more_than_a_catalog(lake: SparkSession) -> None:
    for statement in ("CREATE NAMESPACE lake", "DROP NAMESPACE lake", "DESCRIBE NAMESPACE lake"):
        with pytest.raises(InvalidStatementError, match=r"such as lake\.db"):
            lake.sql(statement)


def test_odd_names_are_shown_in_backticks(lake: SparkSession) -> None:
    lake.sql("CREATE NAMESPACE lake.`a-b`")
    assert rows(lake, "SHOW NAMESPACES IN lake LIKE '*a-b*'") == [("`a-b`",)]
    load_catalog("lake").create_table(("a-b", "t 1"), "`x y` int")
    assert rows(lake, "SHOW TABLES IN lake.`a-b`") == [("`a-b`", "t 1", False)]
    [(text,)] = rows(lake, "SHOW CREATE TABLE lake.`a-b`.`t 1`")
    assert text.startswith("CREATE TABLE lake.`a-b`.`t 1` (\n  `x y` INT)\n")
    load_catalog("lake").drop_table(("a-b", "t 1"))
    lake.sql("DROP NAMESPACE lake.`a-b`")


def test_tables_are_listed_by_pattern(lake: SparkSession) -> None:
    assert rows(lake, "SHOW TABLES IN lake.db LIKE 'T|x*'") == [("db", "t", False)]
    assert columns(lake, "SHOW TABLES FROM lake.db 'x'") == [
        ("namespace", "string", False),
        ("tableName", "string", False),
        ("isTemporary", "boolean", False),
    ]
    [(*named, information)] = rows(lake, "SHOW TABLE EXTENDED IN lake.db LIKE 'u'")
    assert named == ["db", "u", False]
    assert information.startswith("Catalog: lake\nNamespace: db\nTable: u\nType: MANAGED\n")
    assert "Schema: root\n |-- id: long (nullable = true)\n" in information


def test_columns_of_tables_and_metadata_tables(lake: SparkSession) -> None:
    expected = [("id",), ("p",)]
    assert rows(lake, "SHOW COLUMNS IN lake.db.u") == expected
    assert rows(lake, "SHOW COLUMNS FROM u FROM lake.db") == expected
    assert rows(lake, "SHOW COLUMNS IN lake.db.t.refs")[0] == ("name",)
    with pytest.raises(InvalidStatementError, match="two namespaces"):
        lake.sql("SHOW COLUMNS IN lake.db.u IN lake.other")


def test_definition_of_a_table(lake: SparkSession) -> None:
    snapshot = load_catalog("lake").load_table("db.t").current_snapshot()
    assert snapshot is not None
    [(text,)] = rows(lake, "SHOW CREATE TABLE lake.db.t")
    assert text == (
        "CREATE TABLE lake.db.t (\n"
        "  id BIGINT NOT NULL COMMENT 'the key',\n"
        "  name STRING,\n"
        "  day DATE,\n"
        "  s STRUCT<a: INT, `b c`: STRING>)\n"
        "USING iceberg\n"
        "PARTITIONED BY (day, bucket(4, id))\n"
        "COMMENT 'it\\'s one'\n"
        f"LOCATION '{location('db.t')}'\n"
        "TBLPROPERTIES (\n"
        f"  'current-snapshot-id' = '{snapshot.snapshot_id}',\n"
        "  'format' = 'iceberg/parquet',\n"
        "  'format-version' = '2',\n"
        "  'identifier-fields' = '[id]',\n"
        "  'sort-order' = 'id DESC NULLS LAST, name ASC NULLS FIRST',\n"
        "  'write.parquet.compression-codec' = 'zstd',\n"
        "  'write.upsert.mode' = 'auto',\n"
        "  'x' = 'y')\n"
    )


def test_properties_of_a_table(lake: SparkSession) -> None:
    assert rows(lake, "SHOW TBLPROPERTIES lake.db.u") == [
        ("current-snapshot-id", "none"),
        ("format", "iceberg/parquet"),
        ("format-version", "3"),
        ("write.parquet.compression-codec", "zstd"),
        ("write.upsert.mode", "auto"),
    ]
    assert rows(lake, "SHOW TBLPROPERTIES lake.db.t ('x')") == [("x", "y")]
    missing = "Table lake.db.t does not have property: no.x"
    assert rows(lake, "SHOW TBLPROPERTIES lake.db.t (no.x)") == [("no.x", missing)]


def test_description_of_a_table(lake: SparkSession) -> None:
    assert rows(lake, "DESCRIBE lake.db.t") == [
        ("id", "bigint", "the key"),
        ("name", "string", None),
        ("day", "date", None),
        ("s", "struct<a:int,b c:string>", None),
        ("", "", ""),
        ("# Partitioning", "", ""),
        ("Part 0", "day", ""),
        ("Part 1", "bucket(4, id)", ""),
    ]
    assert columns(lake, "DESC TABLE lake.db.t") == [
        ("col_name", "string", False),
        ("data_type", "string", False),
        ("comment", "string", True),
    ]
    assert rows(lake, "DESC FORMATTED lake.db.u") == [
        ("id", "bigint", None),
        ("p", "string", None),
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("p", "string", None),
        ("", "", ""),
        ("# Metadata Columns", "", ""),
        ("_spec_id", "int", ""),
        ("_partition", "struct<p:string>", ""),
        ("_file", "string", ""),
        ("_pos", "bigint", ""),
        ("_deleted", "boolean", ""),
        ("_row_id", "bigint", ""),
        ("_last_updated_sequence_number", "bigint", ""),
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", "lake.db.u", ""),
        ("Type", "MANAGED", ""),
        ("Location", location("db.u"), ""),
        ("Provider", "iceberg", ""),
        ("Table_type", "EXTERNAL", ""),
        (
            "Table Properties",
            "[current-snapshot-id=none,format=iceberg/parquet,format-version=3,"
            "write.parquet.compression-codec=zstd,write.upsert.mode=auto]",
            "",
        ),
        ("Statistics", "0 bytes, 0 rows", None),
    ]
    details = rows(lake, "DESCRIBE EXTENDED lake.db.t")
    assert ("Comment", "it's one", "") in details
    assert ("Owner", "us", "") in details
    assert ("Statistics", "112 bytes, 2 rows", None) in details


def test_description_of_a_column(lake: SparkSession) -> None:
    assert rows(lake, "DESC lake.db.t ID") == [
        ("col_name", "ID"),
        ("data_type", "bigint"),
        ("comment", "the key"),
    ]
    assert rows(lake, "DESC EXTENDED lake.db.t day")[2] == ("comment", "NULL")
    with pytest.raises(InvalidStatementError, match=r"no column nam; did you mean name\?"):
        lake.sql("DESC lake.db.t nam")
    with pytest.raises(InvalidStatementError, match="describe s"):
        lake.sql("DESC lake.db.t s.a")


def test_description_of_a_query_is_that_of_spark(lake: SparkSession) -> None:
    expected = [("x", "bigint", None)]
    assert rows(lake, "DESCRIBE QUERY SELECT id + 1 AS x FROM lake.db.t") == expected
    assert rows(lake, "DESCRIBE SELECT id + 1 AS x FROM lake.db.t") == expected


def test_defaults_are_shown_as_literals(lake: SparkSession) -> None:
    from icebergds import Schema

    fields = (
        NestedField(1, "a", LongType(), initial_default=5, write_default=5),
        NestedField(2, "b", StringType(), initial_default="it's", write_default="it's"),
    )
    load_catalog("lake").create_table(
        "db.defaults", Schema(fields), properties={"format-version": "3"}
    )
    [(text,)] = rows(lake, "SHOW CREATE TABLE lake.db.defaults")
    assert "(\n  a BIGINT DEFAULT 5L,\n  b STRING DEFAULT 'it\\'s')" in text
    assert ("a", "bigint", "5L") in rows(lake, "DESCRIBE EXTENDED lake.db.defaults")
    load_catalog("lake").drop_table("db.defaults")


def test_cached_rows_are_read_until_the_table_changes(lake: SparkSession) -> None:
    table = load_catalog("lake").create_table("db.c", "id bigint")
    table.append(lake.range(3))
    lake.sql("CACHE TABLE lake.db.c")
    plan = "EXPLAIN SELECT id FROM lake.db.c WHERE id > 0"
    assert "InMemoryTableScan" in rows(lake, plan)[0][0]
    assert rows(lake, "SELECT count(*) FROM lake.db.c") == [(3,)]
    table.append(lake.range(1))
    assert "InMemoryTableScan" not in rows(lake, plan)[0][0]
    assert rows(lake, "SELECT count(*) FROM lake.db.c") == [(4,)]
    lake.sql("CACHE LAZY TABLE lake.db.c OPTIONS ('storageLevel' 'DISK_ONLY')")
    assert "StorageLevel(disk, 1 replicas)" in rows(lake, plan)[0][0]
    lake.sql("UNCACHE TABLE lake.db.c")
    assert "InMemoryTableScan" not in rows(lake, plan)[0][0]
    lake.sql("UNCACHE TABLE IF EXISTS lake.db.nope")
    with pytest.raises(InvalidStatementError, match="did you mean DISK_ONLY"):
        lake.sql("CACHE TABLE lake.db.c OPTIONS ('storageLevel' = 'DISC_ONLY')")
    lake.sql("REFRESH TABLE lake.db.c")
    load_catalog("lake").drop_table("db.c")
    with pytest.raises(NoSuchTableError):
        lake.sql("REFRESH TABLE lake.db.c")


def test_result_of_a_query_is_cached_as_a_temporary_view(lake: SparkSession) -> None:
    lake.sql("CACHE TABLE cached AS SELECT id FROM lake.db.t WHERE id > 1")
    assert rows(lake, "SELECT * FROM cached") == [(2,)]
    assert lake.catalog.isCached("cached")
    lake.sql("UNCACHE TABLE cached")
    assert not lake.catalog.isCached("cached")
    lake.sql("DROP VIEW cached")


def test_analyze_estimates_distinct_values(lake: SparkSession) -> None:
    lake.sql("ANALYZE TABLE lake.db.t COMPUTE STATISTICS NOSCAN")
    assert not load_catalog("lake").load_table("db.t").statistics_files()
    lake.sql("ANALYZE TABLE lake.db.t COMPUTE STATISTICS FOR COLUMNS name")
    [file] = load_catalog("lake").load_table("db.t").statistics_files()
    assert [(blob.fields, blob.properties["ndv"]) for blob in file.blob_metadata] == [((2,), "2")]
    with pytest.raises(InvalidOptionError, match="did you mean name"):
        lake.sql("ANALYZE TABLE lake.db.t COMPUTE STATISTICS FOR COLUMNS nam")
    lake.sql("ANALYZE TABLES IN lake.db COMPUTE STATISTICS")
    [file] = load_catalog("lake").load_table("db.t").statistics_files()
    assert len(file.blob_metadata) == 3


def test_explain_shows_what_scans_read_and_skip(lake: SparkSession) -> None:
    [(text,)] = rows(lake, "EXPLAIN SELECT name FROM lake.db.t WHERE day = DATE'2024-01-02'")
    assert text.startswith("== Physical Plan ==\n")
    assert "table      lake.db.t\n" in text
    assert "files      1 of 2 kept" in text
    [(text,)] = rows(lake, "EXPLAIN EXTENDED SELECT count(*) FROM lake.db.t.snapshots")
    assert text.startswith("== Parsed Logical Plan ==\n")
    assert "metadata table snapshots of lake.db.t" in text
    assert rows(lake, "EXPLAIN SELECT 1")[0][0].startswith("== Physical Plan ==\n")


def test_explain_of_a_change_shows_the_query_that_finds_its_rows(lake: SparkSession) -> None:
    queries = {
        "DELETE FROM lake.db.t x WHERE x.id = 1": "SELECT * FROM lake.db.t x WHERE x.id = 1",
        "UPDATE lake.db.t SET name = 'x' WHERE id = 1": "SELECT * FROM lake.db.t WHERE id = 1",
        "INSERT INTO lake.db.t (id) SELECT id FROM lake.db.u": "SELECT id FROM lake.db.u",
        "MERGE INTO lake.db.t x USING lake.db.u ON x.id = u.id WHEN MATCHED THEN DELETE": (
            "SELECT * FROM lake.db.t x JOIN lake.db.u ON x.id = u.id"
        ),
    }
    for statement, query in queries.items():
        [(text,)] = rows(lake, f"EXPLAIN {statement}")
        assert text.startswith(f"== Query of the Statement ==\n{query}\n\n== Physical Plan ==")
        assert "== Iceberg Scan ==" in text
    assert rows(lake, "SELECT count(*) FROM lake.db.t") == [(2,)]


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("SHOW PARTITIONS lake.db.t", "lake.db.t.partitions"),
        ("DESCRIBE HISTORY lake.db.t", "lake.db.t.history"),
        ("DESC lake.db.t PARTITION (day = '2024-01-01')", "lake.db.t.partitions"),
        ("DESC EXTENDED lake.db.t AS JSON", "AS JSON"),
        ("MSCK REPAIR TABLE lake.db.t", "add_files"),
        ("LOAD DATA INPATH '/x' INTO TABLE lake.db.t", "add_files"),
        ("ANALYZE TABLE lake.db.t PARTITION (day) COMPUTE STATISTICS", "PARTITION"),
        ("SHOW TABLE EXTENDED IN lake.db LIKE 't' PARTITION (day = '1')", "PARTITION"),
        ("CACHE TABLE lake.db.t.files", "temporary view"),
    ],
)
def test_what_iceberg_lacks_is_refused_by_name(
    lake: SparkSession, statement: str, hint: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=hint):
        lake.sql(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "USE",
        "SHOW TABLES IN lake.db LIKE",
        "CREATE NAMESPACE lake.x COMMENT",
        "CREATE NAMESPACE lake.x WITH DBPROPERTIES ('location' = '/x')",
        "ALTER NAMESPACE lake.db SET DBPROPERTIES",
        "ANALYZE TABLE lake.db.t COMPUTE",
    ],
)
def test_malformed_statement_has_the_error_of_spark(lake: SparkSession, statement: str) -> None:
    with pytest.raises(ParseException):
        lake.sql(statement)


def test_statements_of_tables_of_spark_go_on_to_spark(lake: SparkSession) -> None:
    lake.sql("CREATE TEMPORARY VIEW own AS SELECT 1 AS one")
    assert rows(lake, "SHOW COLUMNS IN own") == [("one",)]
    assert rows(lake, "DESCRIBE own") == [("one", "int", None)]
    lake.sql("USE lake.db")
    assert rows(lake, "DESCRIBE own") == [("one", "int", None)]
    assert ("", "own", True) in rows(lake, "SHOW TABLES IN spark_catalog.default")
    assert ("", "own", True) in rows(lake, "SHOW VIEWS")
    lake.sql("DROP VIEW own")
    with pytest.raises(IcebergError):
        lake.sql("DESCRIBE own")
