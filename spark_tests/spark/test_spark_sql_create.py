"""CREATE, REPLACE and DROP TABLE, and COMMENT ON, on tables of our catalogs."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from icebergds import Catalog, Table, load_catalog, register
from icebergds.errors import (
    AlreadyExistsError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.statements.names.scope import CurrentNamespace, set_current_namespace

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def lake(front: SparkSession, tmp_path: Path) -> Catalog:
    """The catalog `lake` of the session, with the namespace `db`."""
    properties = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": str(tmp_path / "lake")}
    for name, value in properties.items():
        front.conf.set(f"spark.icebergpy.catalog.lake.{name}", value)
    register(front, sql=True)
    catalog = load_catalog("lake", **properties)
    catalog.create_namespace("db")
    return catalog


def columns(table: Table) -> list[str]:
    return [
        f"{field.field_id} {field.name} {field.field_type}{' !' if field.required else ''}"
        for field in table.refresh().schema().fields
    ]


def terms(table: Table) -> list[tuple[str, str]]:
    return [(field.name, str(field.transform)) for field in table.refresh().spec().fields]


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_a_table_is_created_as_it_is_written(front: SparkSession, lake: Catalog) -> None:
    result = front.sql("""
        CREATE TABLE lake.db.t (
            id bigint NOT NULL COMMENT 'it''s the key',
            m map<string, array<struct<x: int COMMENT 'q', y: decimal(9, 2)>>>,
            ts timestamp,
            `a b` string)
        USING iceberg
        PARTITIONED BY (bucket(16, ID), days(ts), truncate(`a b`, 4))
        COMMENT 'a table'
        TBLPROPERTIES ('write.format.default' = 'orc', read.split.target-size = 1000)""")
    assert (result.columns, result.collect()) == ([], [])
    table = lake.load_table("db.t")
    assert columns(table) == [
        "1 id long !",
        "2 m map<string, list<struct<8: x: int, 9: y: decimal(9, 2)>>>",
        "3 ts timestamptz",
        "4 a b string",
    ]
    assert table.schema().fields[0].doc == "it's the key"
    assert table.schema().fields_by_id[8].doc == "q"
    assert terms(table) == [
        ("id_bucket", "bucket[16]"),
        ("ts_day", "day"),
        ("a b_trunc", "truncate[4]"),
    ]
    expected = {
        "comment": "a table",
        "write.format.default": "orc",
        "read.split.target-size": "1000",
    }
    assert expected.items() <= table.properties.items()
    (user,) = front.sql("SELECT current_user()").collect()
    assert table.properties["owner"] == user[0]


@pytest.mark.parametrize(
    ("term", "name", "transform"),
    [
        ("c", "c", "identity"),
        ("identity(c)", "c", "identity"),
        ("bucket(16, id)", "id_bucket", "bucket[16]"),
        ("BUCKET(16, id)", "id_bucket", "bucket[16]"),
        ("truncate(c, 10)", "c_trunc", "truncate[10]"),
        ("truncate(10, c)", "c_trunc", "truncate[10]"),
        ("year(ts)", "ts_year", "year"),
        ("years(ts)", "ts_year", "year"),
        ("month(ts)", "ts_month", "month"),
        ("months(ts)", "ts_month", "month"),
        ("day(ts)", "ts_day", "day"),
        ("days(ts)", "ts_day", "day"),
        ("date(ts)", "ts_day", "day"),
        ("hour(ts)", "ts_hour", "hour"),
        ("hours(ts)", "ts_hour", "hour"),
        ("date_hour(ts)", "ts_hour", "hour"),
        ("st.x", "st.x", "identity"),
    ],
)
def test_transforms_are_spelt_as_in_java_iceberg(
    front: SparkSession, lake: Catalog, term: str, name: str, transform: str
) -> None:
    front.sql(
        "CREATE TABLE lake.db.t (id bigint, c string, ts timestamp, st struct<x: int>) "
        f"PARTITIONED BY ({term})"
    )
    assert terms(lake.load_table("db.t")) == [(name, transform)]


def test_partition_columns_with_types_are_added(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.t (id int) PARTITIONED BY (p string, q date)")
    table = lake.load_table("db.t")
    assert columns(table) == ["1 id int", "2 p string", "3 q date"]
    assert terms(table) == [("p", "identity"), ("q", "identity")]


def test_defaults_are_values_of_the_columns(front: SparkSession, lake: Catalog) -> None:
    front.sql(
        """
        CREATE TABLE lake.db.t (
            id bigint, i int DEFAULT 1 + :one NOT NULL,
            s string DEFAULT 'a' || 'b' COMMENT :comment,
            ts timestamp DEFAULT timestamp '2024-01-01 00:00:00', d decimal(5, 2) DEFAULT 1.5,
            day date DEFAULT '2020-01-01', b binary DEFAULT X'01', n string DEFAULT NULL,
            local timestamp_ntz DEFAULT timestamp_ntz '2024-01-01 00:00:00', f float DEFAULT 0.1)
        TBLPROPERTIES ('format-version' = 3)""",
        {"one": 1, "comment": "it's"},
    )
    table = lake.load_table("db.t")
    table.append(pa.table({"id": [1]}))
    (row,) = front.table("lake.db.t").collect()
    assert row.asDict() == {
        "id": 1,
        "i": 2,
        "s": "ab",
        "ts": row.ts,
        "d": Decimal("1.50"),
        "day": datetime(2020, 1, 1).date(),
        "b": b"\x01",
        "n": None,
        "local": datetime(2024, 1, 1),
        "f": pytest.approx(0.1),
    }
    assert row.ts.astimezone(UTC) == datetime(2024, 1, 1, tzinfo=UTC)
    assert table.schema().fields[2].doc == "it's"


def test_defaults_need_format_version_3(front: SparkSession, lake: Catalog) -> None:
    with pytest.raises(InvalidMetadataError, match="upgrade the table to version 3"):
        front.sql("CREATE TABLE lake.db.t (id bigint DEFAULT 5)")


@pytest.mark.parametrize(
    "default", ["current_timestamp()", "now()", "(SELECT 1)", "rand()", "uuid()"]
)
def test_defaults_that_change_are_refused(front: SparkSession, lake: Catalog, default: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="column c: the default"):
        front.sql(f"CREATE TABLE lake.db.t (c string DEFAULT {default})")


def test_an_existing_table_is_left(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
    front.sql("CREATE TABLE IF NOT EXISTS lake.db.t (other string)")
    front.sql("CREATE TABLE IF NOT EXISTS lake.db.t AS SELECT 2 AS id")
    front.sql("CREATE TABLE IF NOT EXISTS lake.db.t LIKE lake.db.t")
    for statement in ("(id int)", "AS SELECT 3 AS id", "LIKE lake.db.t"):
        with pytest.raises(AlreadyExistsError, match=r"lake\.db\.t"):
            front.sql(f"CREATE TABLE lake.db.t {statement}")
    table = lake.load_table("db.t")
    assert ids(table) == [1]
    assert len(table.snapshots()) == 1


def test_a_table_is_created_with_the_rows_of_a_query(front: SparkSession, lake: Catalog) -> None:
    front.sql("""
        CREATE TABLE lake.db.t USING iceberg PARTITIONED BY (truncate(1, s)) COMMENT 'c'
        TBLPROPERTIES ('Own' = 'x', 'format-version' = '3')
        AS SELECT id, concat('s', id) AS s FROM range(3)""")
    front.sql("CREATE TABLE lake.db.u AS (SELECT t.id FROM lake.db.t WHERE s <> 's1')")
    table = lake.load_table("db.t")
    assert columns(table) == ["1 id long", "2 s string"]
    assert terms(table) == [("s_trunc", "truncate[1]")]
    assert {"comment": "c", "Own": "x"}.items() <= table.properties.items()
    assert table.metadata.format_version == 3
    assert ids(table) == [0, 1, 2]
    assert ids(lake.load_table("db.u")) == [0, 2]


def test_a_query_that_fails_creates_no_table(front: SparkSession, lake: Catalog) -> None:
    with pytest.raises(AnalysisException, match="nope"):
        front.sql("CREATE TABLE lake.db.t AS SELECT nope")
    with pytest.raises(NoSuchTableError):
        front.sql("CREATE TABLE lake.db.t AS SELECT * FROM lake.db.gone")
    assert lake.list_tables("db") == []


def test_a_replaced_table_keeps_its_history(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE OR REPLACE TABLE lake.db.t PARTITIONED BY (id) AS SELECT 1 AS id, 'a' AS s")
    front.sql("ALTER TABLE lake.db.t CREATE TAG first")
    front.sql(
        "CREATE OR REPLACE TABLE lake.db.t TBLPROPERTIES ('p' = 'q') "
        "AS SELECT id + 1 AS id, true AS b FROM lake.db.t"
    )
    table = lake.load_table("db.t")
    assert ids(table) == [2]
    assert columns(table) == ["1 id int", "3 b boolean"]
    assert terms(table) == []
    assert table.properties["p"] == "q"
    assert len(table.snapshots()) == 2
    assert front.sql("SELECT id, s FROM lake.db.t.tag_first").collect() == [(1, "a")]
    front.sql("REPLACE TABLE lake.db.t AS SELECT 7 AS id")
    assert ids(table) == [7]
    assert len(table.snapshots()) == 3


def test_a_table_is_replaced_by_a_definition_in_one_commit(
    front: SparkSession, lake: Catalog
) -> None:
    front.sql("CREATE TABLE lake.db.t AS SELECT 1L AS id, 'a' AS s, 1 AS gone")
    table = lake.load_table("db.t")
    files = len(table.metadata.metadata_log)
    front.sql(
        "REPLACE TABLE lake.db.t (s string COMMENT 'c', id bigint NOT NULL) PARTITIONED BY (id) "
        "TBLPROPERTIES ('p' = 'q')"
    )
    assert columns(table) == ["2 s string", "1 id long !"]
    assert terms(table) == [("id", "identity")]
    assert ids(table) == []
    assert table.properties["p"] == "q"
    assert (len(table.snapshots()), table.current_snapshot()) == (1, None)
    assert len(table.metadata.metadata_log) == files + 1
    front.sql("CREATE OR REPLACE TABLE lake.db.u (a int)")
    assert columns(lake.load_table("db.u")) == ["1 a int"]


def test_definitions_that_replace_a_table_wait_for_each_other(
    front: SparkSession, lake: Catalog
) -> None:
    front.sql("CREATE TABLE lake.db.t (id int)")
    failed: list[Exception] = []

    def replace(name: str) -> None:
        try:
            front.sql(f"REPLACE TABLE lake.db.t (id int, {name} string)")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=replace, args=(f"c{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = lake.load_table("db.t")
    assert failed == []
    assert len(table.metadata.metadata_log) == 4
    assert columns(table)[0] == "1 id int"
    assert len(columns(table)) == 2


def test_only_an_existing_table_is_replaced(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.events (id int)")
    for statement in ("(id int)", "AS SELECT 1 AS id"):
        with pytest.raises(NoSuchTableError, match=r"did you mean db\.events"):
            front.sql(f"REPLACE TABLE lake.db.event {statement}")
    assert lake.list_tables("db") == [("db", "events")]


def test_a_table_is_created_like_another(front: SparkSession, lake: Catalog) -> None:
    front.sql("""
        CREATE TABLE lake.db.t (id bigint NOT NULL COMMENT 'c', s string DEFAULT 'x')
        PARTITIONED BY (bucket(4, id)) COMMENT 'of t'
        TBLPROPERTIES ('format-version' = '3', 'p' = 'q')""")
    front.sql("ALTER TABLE lake.db.t WRITE LOCALLY ORDERED BY s DESC")
    front.sql("ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id")
    front.sql("CREATE TABLE lake.db.u LIKE lake.db.t TBLPROPERTIES ('r' = 's')")
    table, like = lake.load_table("db.t"), lake.load_table("db.u")
    assert like.schema().fields == table.schema().fields
    assert like.schema().identifier_field_ids == (1,)
    assert like.spec() == table.spec()
    assert like.sort_order() == table.sort_order()
    assert like.metadata.format_version == 3
    assert like.properties["r"] == "s"
    assert not {"p", "comment"} & like.properties.keys()


def test_a_table_is_created_like_one_of_spark(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TEMPORARY VIEW sales AS SELECT 1 AS id, 'x' AS s")
    front.sql("CREATE TABLE lake.db.t LIKE sales USING iceberg")
    assert columns(lake.load_table("db.t")) == ["1 id int", "2 s string"]
    front.sql("""
        CREATE TABLE parted (id BIGINT NOT NULL COMMENT 'key', c CHAR(3), s STRUCT<x: INT>,
                             `a day` DATE) USING parquet PARTITIONED BY (`a day`)""")
    try:
        front.sql("CREATE VIEW spark_catalog.default.shown AS SELECT id AS n, c FROM parted")
        front.sql("CREATE TABLE lake.db.p LIKE parted USING icebergpy TBLPROPERTIES ('a' = 'b')")
        front.sql("CREATE TABLE lake.db.v LIKE spark_catalog.default.shown")
    finally:
        front.sql("DROP VIEW IF EXISTS spark_catalog.default.shown")
        front.sql("DROP TABLE parted")
    parted = lake.load_table("db.p")
    assert columns(parted)[:2] == ["1 id long", "2 c string"]
    assert [field.doc for field in parted.schema().fields] == ["key", None, None, None]
    assert [field.name for field in parted.spec().fields] == ["a day"]
    assert parted.properties["a"] == "b"
    assert columns(lake.load_table("db.v")) == ["1 n long", "2 c string"]
    with pytest.raises(UnsupportedFeatureError, match="like one of Iceberg"):
        front.sql("CREATE TABLE local LIKE lake.db.t")


def test_a_table_is_created_like_a_view(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.t (id bigint NOT NULL, s string)")
    front.sql("CREATE TEMPORARY VIEW seen AS SELECT s, id + 1 AS next FROM lake.db.t")
    front.sql("CREATE TABLE lake.db.u LIKE seen")
    assert columns(lake.load_table("db.u")) == ["1 s string", "2 next long"]
    front.sql("CREATE VIEW lake.db.v (a COMMENT 'c', b) AS SELECT id, s FROM lake.db.t")
    front.sql("CREATE TABLE IF NOT EXISTS lake.db.w LIKE lake.db.v TBLPROPERTIES ('p' = 'q')")
    like = lake.load_table("db.w")
    assert columns(like) == ["1 a long", "2 b string"]
    assert like.schema().fields[0].doc == "c"
    assert like.properties["p"] == "q"
    with pytest.raises(NoSuchTableError, match=r"db\.nothing"):
        front.sql("CREATE TABLE lake.db.x LIKE lake.db.nothing")


def test_tables_of_spark_are_created_by_spark(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
    front.sql("CREATE TABLE copied USING parquet AS SELECT * FROM lake.db.t")
    try:
        assert front.sql("SELECT id FROM spark_catalog.default.copied").collect() == [(1,)]
    finally:
        front.sql("DROP TABLE copied")
    assert not front.catalog.tableExists("copied")


def test_names_are_of_the_current_namespace(front: SparkSession, lake: Catalog) -> None:
    set_current_namespace(front, CurrentNamespace("lake", ("db",)))
    front.sql("CREATE TABLE t (id int)")
    front.sql("ALTER TABLE t ADD COLUMN s string")
    front.sql("COMMENT ON COLUMN t.s IS 'c'")
    front.sql("CREATE TABLE u LIKE db.t")
    front.sql("ALTER TABLE u RENAME TO v")
    front.sql("DROP TABLE t")
    assert lake.list_tables("db") == [("db", "v")]
    assert lake.load_table("db.v").schema().fields[1].doc == "c"


def test_names_may_be_parameters(front: SparkSession, lake: Catalog) -> None:
    for statement in (
        "CREATE TABLE IDENTIFIER(:name) (id int)",
        "ALTER TABLE IDENTIFIER(:name) ADD COLUMN s string",
        "COMMENT ON TABLE IDENTIFIER('lake.' || 'db.t') IS 'c'",
    ):
        front.sql(statement, {"name": "lake.db.t"})
    table = lake.load_table("db.t")
    assert columns(table) == ["1 id int", "2 s string"]
    assert table.properties["comment"] == "c"


def test_dropped_tables_keep_their_files_unless_purged(
    front: SparkSession, lake: Catalog, tmp_path: Path
) -> None:
    for name in ("kept", "purged"):
        front.sql(f"CREATE TABLE lake.db.{name} AS SELECT 1 AS id")
    front.sql("DROP TABLE lake.db.kept")
    front.sql("DROP TABLE lake.db.purged PURGE")
    front.sql("DROP TABLE IF EXISTS lake.db.kept PURGE")
    front.sql("DROP TABLE IF EXISTS lake.nowhere.kept")
    assert lake.list_tables("db") == []
    left = {path.relative_to(tmp_path / "lake").parts[1] for path in tmp_path.rglob("*.parquet")}
    assert left == {"kept"}
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.kept"):
        front.sql("DROP TABLE lake.db.kept")


def test_comments_are_set_and_removed(front: SparkSession, lake: Catalog) -> None:
    front.sql("CREATE TABLE lake.db.t (id int, st struct<x: int>)")
    front.sql("COMMENT ON TABLE lake.db.t IS 'of the table'")
    front.sql("COMMENT ON COLUMN lake.db.t.id IS 'of the column'")
    front.sql("COMMENT ON COLUMN lake.db.t.st.x IS 'of the field'")
    table = lake.load_table("db.t")
    assert table.properties["comment"] == "of the table"
    assert [table.schema().fields_by_id[i].doc for i in (1, 3)] == ["of the column", "of the field"]
    front.sql("COMMENT ON TABLE lake.db.t IS NULL")
    front.sql("COMMENT ON COLUMN lake.db.t.id IS NULL")
    table.refresh()
    assert table.properties["comment"] == ""
    assert table.schema().fields[0].doc is None
    with pytest.raises(InvalidOptionError, match="there is no column 'it'"):
        front.sql("COMMENT ON COLUMN lake.db.t.it IS 'x'")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.u"):
        front.sql("COMMENT ON COLUMN lake.db.u.id IS 'x'")


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("CREATE TABLE lake.db.t (id int", "end of input"),
        ("CREATE TABLE lake.db.t (id int) LOCATION", "end of input"),
        ("CREATE TABLE lake.db.t (id int nonsense)", "'nonsense'"),
        ("DROP TABLE lake.db.t nonsense", "'nonsense'"),
        ("COMMENT ON TABLE lake.db.t 'x'", "''x''"),
        ("CREATE TABLE lake.db.t (id int) TBLPROPERTIES ('provider' = 'x')", "reserved"),
        ("CREATE TABLE lake.db.t (id int) AS SELECT 1", "Schema may not be specified"),
    ],
)
def test_spark_says_what_is_malformed(
    front: SparkSession, lake: Catalog, statement: str, place: str
) -> None:
    with pytest.raises(ParseException, match=place):
        front.sql(statement)
    assert lake.list_tables("db") == []


def test_what_does_not_fit_creates_nothing(front: SparkSession, lake: Catalog) -> None:
    for statement, named in (
        ("(id int) PARTITIONED BY (it)", "it does not exist"),
        ("(id int) PARTITIONED BY (days(id))", "day does not apply"),
        ("(id int) PARTITIONED BY (zorder(id, id))", "cannot be parsed"),
        ("(id intt)", "did you mean int"),
        ("(id int) TBLPROPERTIES ('write.format.default' = 'csv')", "csv"),
        ("TBLPROPERTIES ('format-version' = '9') AS SELECT 1 AS id", "'9': expected 1, 2 or 3"),
    ):
        with pytest.raises(InvalidOptionError, match=named):
            front.sql(f"CREATE TABLE lake.db.t {statement}")
    assert lake.list_tables("db") == []
