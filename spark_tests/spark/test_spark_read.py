"""Reading through the format's name: DataFrames, views, joins, odd tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.tables import TableBuilder
from pyspark.sql import SparkSession
from spark_reads import ids, load, message_of, session_conf
from spark_tables import LIVE_PEOPLE, PEOPLE, people

from icebergds.spark.patches import own
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people(tmp_path_factory.mktemp("read") / "people").location


def test_rows_without_the_deleted_ones(spark: SparkSession, table: Path) -> None:
    assert ids(load(spark, table)) == LIVE_PEOPLE


def test_the_name_of_the_format_has_no_case(spark: SparkSession, table: Path) -> None:
    assert spark.read.format("IcebergPy").load(str(table)).columns == ["id", "name", "at"]


def test_the_table_may_be_named_by_an_option(spark: SparkSession, table: Path) -> None:
    assert (
        load(spark, table).schema
        == spark.read.format("icebergpy").options(path=table).load().schema
    )


def test_a_location_may_be_a_uri_or_end_in_a_slash(spark: SparkSession, table: Path) -> None:
    union = load(spark, f"file://{table}").union(load(spark, f"{table}/"))
    assert ids(union) == sorted(LIVE_PEOPLE * 2)


def test_a_metadata_file_is_that_state_of_the_table(spark: SparkSession, table: Path) -> None:
    before = load(spark, table / "metadata" / "v2.metadata.json")
    assert ids(before) == list(range(10))


def test_one_dataframe_is_used_again_and_again(spark: SparkSession, table: Path) -> None:
    df = load(spark, table)
    assert df.count() == 8
    assert ids(df.where("name = 'z' and id < 8")) == [6, 7]
    assert df.limit(3).count() == 3
    assert df.agg({"id": "sum"}).collect() == [(42,)]
    assert ids(df) == LIVE_PEOPLE


def test_self_join_and_union_of_one_dataframe(spark: SparkSession, table: Path) -> None:
    df = load(spark, table)
    pairs = df.alias("a").join(df.alias("b"), "name").where("a.id < b.id")
    assert pairs.count() == 6
    assert ids(df.where("id > 7").union(df.where("id < 3"))) == [1, 2, 8, 9]


def test_projections_and_expressions(spark: SparkSession, table: Path) -> None:
    df = load(spark, table).selectExpr("upper(name) AS n", "id + 1 AS next").where("next < 4")
    assert sorted(df.collect()) == [("B", 2), ("C", 3)]


def test_temporary_view_with_options(spark: SparkSession, table: Path, pushdown_conf: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING icebergpy OPTIONS (path '{table}', "
        "filter \"name = 'z'\", columns 'id, _pos', `split-size` '1000')"
    )
    total = spark.sql("SELECT sum(id), sum(_pos) FROM v WHERE id > 6 OR id < 0").collect()
    assert total == [(24, 6)]
    assert ids(spark.sql("SELECT id FROM v")) == [6, 7, 8, 9]


def test_the_columns_of_a_temporary_view_choose_columns(spark: SparkSession, table: Path) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW few (name STRING, id BIGINT NOT NULL) "
        f"USING icebergpy OPTIONS (path '{table}')"
    )
    assert spark.sql("SELECT * FROM few WHERE id = 5").collect() == [("f", 5)]


def test_a_view_of_a_dataframe_joins_with_itself(
    spark: SparkSession, table: Path, pushdown_conf: str
) -> None:
    load(spark, table).createOrReplaceTempView("people")
    found = spark.sql(
        "SELECT a.id, b.id FROM people a JOIN people b ON a.id + 1 = b.id "
        "WHERE a.name = 'b' AND b.name = 'c'"
    )
    assert found.collect() == [(1, 2)]


def test_tables_of_the_session_catalog_are_refused_with_advice(
    spark: SparkSession, table: Path
) -> None:
    """Also in a session that is not registered."""
    statement = f"CREATE TABLE stored USING icebergpy OPTIONS (path '{table}')"
    message = message_of(lambda: own(spark, "sql")(statement))
    assert "InvalidOptionError" in message
    assert "CREATE TEMPORARY VIEW" in message


def test_a_table_without_snapshots_has_columns_and_no_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = load(spark, TableBuilder(tmp_path / "new", PEOPLE).location)
    assert df.columns == ["id", "name", "at"]
    assert df.collect() == []


def test_a_snapshot_without_files_and_a_file_without_rows_are_empty(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path / "empty", PEOPLE)
    table.commit()
    empty_file = TableBuilder(tmp_path / "file", PEOPLE)
    empty_file.commit(empty_file.data_file([]))
    both = load(spark, table.location).union(load(spark, empty_file.location))
    assert both.collect() == []
    assert both.count() == 0


def test_a_table_without_columns_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    df = load(spark, TableBuilder(tmp_path / "bare", Schema(())).location)
    assert (df.columns, df.count()) == ([], 0)


def test_the_partition_of_an_unpartitioned_table_is_an_empty_struct(
    spark: SparkSession, table: Path
) -> None:
    df = load(spark, table, columns="id, _partition")
    assert df.schema["_partition"].dataType.simpleString() == "struct<>"
    assert sorted(df.where("id < 3").collect()) == [(1, ()), (2, ())]


def test_names_are_found_in_any_case_and_keep_the_case_of_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = Schema((NestedField(1, "Id", LONG), NestedField(2, "fullName", STRING)))
    table = TableBuilder(tmp_path / "cased", schema)
    table.commit(table.data_file([(1, "Ada"), (2, "Bob")]))
    df = load(spark, table.location, columns="FULLNAME, id", filter="FullName = 'Ada'")
    assert df.columns == ["fullName", "Id"]
    assert df.select("ID", "fullname").collect() == [(1, "Ada")]


def test_columns_that_differ_by_case_only(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "a", LONG), NestedField(2, "A", STRING)))
    table = TableBuilder(tmp_path / "twins", schema)
    table.commit(table.data_file([(1, "x")]))
    assert load(spark, table.location, columns="A").collect() == [("x",)]
    with session_conf(spark, "spark.sql.caseSensitive", "true"):
        assert load(spark, table.location).select("A", "a").collect() == [("x", 1)]
