"""Tables of the format in Spark's own catalog, which could not be read: refused at creation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icebergds import register
from icebergds.errors import InvalidOptionError
from icebergds.spark.session_verbs import creates_session_table

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (a int) USING icebergpy",
        "create or replace table db.x using ICEBERGPY as select 1",
        "/* mine */ CREATE EXTERNAL TABLE x (a int) USING `icebergpy` LOCATION '/x'",
        "REPLACE TABLE x (a int) USING icebergpy",
    ],
)
def test_statements_that_create_such_a_table_are_known(statement: str) -> None:
    assert creates_session_table(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMPORARY VIEW v USING icebergpy OPTIONS (path '/x')",
        "CREATE TABLE x (a int COMMENT 'USING icebergpy') USING parquet",
        "SELECT 'CREATE TABLE x USING icebergpy'",
        "CREATE VIEW v AS SELECT 'USING icebergpy'",
        "CREATE TABLE icebergpy (a int) USING parquet",
        "not SQL: 'icebergpy",
    ],
)
def test_other_statements_are_left_to_spark(statement: str) -> None:
    assert not creates_session_table(statement)


WAYS: dict[str, Callable[[SparkSession, Path], object]] = {
    "sql": lambda spark, path: spark.sql("CREATE TABLE left_over (id long) USING icebergpy"),
    "save": lambda spark, path: (
        spark.range(1).write.format("icebergpy").option("path", str(path)).saveAsTable("left_over")
    ),
    "save with format": lambda spark, path: spark.range(1).write.saveAsTable(
        "left_over", format="icebergpy", path=str(path)
    ),
    "catalog": lambda spark, path: spark.catalog.createTable(
        "left_over", source="icebergpy", schema=spark.range(1).schema
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_name_is_left_in_the_session_catalog(
    spark: SparkSession, tmp_path: Path, way: Callable[[SparkSession, Path], object]
) -> None:
    register(spark, writer=False)
    with pytest.raises(InvalidOptionError, match="create a temporary view"):
        way(spark, tmp_path / "t")
    assert not spark.catalog.tableExists("left_over")
    assert not (tmp_path / "t").exists()


def test_tables_of_other_formats_are_created_as_before(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    writer = spark.range(2).write.format("icebergpy").format("parquet")
    writer.option("path", str(tmp_path / "p")).saveAsTable("of_parquet")
    try:
        assert spark.sql("SELECT * FROM {t} WHERE id > 0", t=spark.table("of_parquet")).count() == 1
    finally:
        spark.sql("DROP TABLE of_parquet")
