"""Defines tables with SQL through Spark Connect."""

from __future__ import annotations

from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from icebergds import load_catalog, register, sql
from icebergds.errors import IcebergError


def see(spark: SparkSession, warehouse: str) -> dict[str, Any]:
    """The definition of a table after each kind of statement, and errors."""
    spark.conf.set("spark.icebergpy.catalog.defined.warehouse", warehouse)
    register(spark)
    catalog = load_catalog("defined", warehouse=warehouse)
    catalog.create_namespace("db")
    seen: dict[str, Any] = {}
    created = sql(
        spark,
        "CREATE TABLE defined.db.t (id bigint, s string DEFAULT :text, ts timestamp "
        "DEFAULT timestamp '2024-01-01 00:00:00+00:00') PARTITIONED BY (days(ts)) "
        "TBLPROPERTIES ('format-version' = '3')",
        {"text": "it's"},
    )
    seen["result"] = [created.columns, created.collect()]
    table = catalog.load_table("db.t")
    seen["defaults"] = [field.write_default for field in table.schema().fields]
    sql(spark, "CREATE OR REPLACE TABLE defined.db.t AS SELECT id, 'x' AS s FROM range(3)")
    sql(spark, "ALTER TABLE defined.db.t ADD COLUMN n int DEFAULT 1 + 1")
    sql(spark, "ALTER TABLE defined.db.t CREATE TAG done")
    sql(spark, "ALTER TABLE defined.db.t WRITE ORDERED BY id DESC")
    rows = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    seen["rows"] = [list(row.values()) for row in rows]
    seen["references"] = sorted(table.refs())
    seen["order"] = [str(field.direction) for field in table.sort_order().fields]
    seen["errors"] = [
        _error(spark, f"ALTER TABLE defined.db.t {text}")
        for text in ("ADD COLUMN", "CREATE BRANCH", "ADD PARTITION (id = 1)")
    ]
    sql(spark, "DROP TABLE defined.db.t PURGE")
    seen["left"] = [list(name) for name in catalog.list_tables("db")]
    return seen


def _error(spark: SparkSession, text: str) -> str:
    try:
        sql(spark, text)
    except (IcebergError, ParseException) as error:
        return type(error).__name__
    return "none"
