"""Calls procedures and functions in SQL through Spark Connect."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds import load_catalog, register
from icebergds.errors import InvalidStatementError


def see(spark: SparkSession, directory: str) -> dict[str, Any]:
    """What procedures return, what functions compute, and what errors say."""
    spark.conf.set("spark.icebergpy.catalog.calls.warehouse", directory)
    register(spark, sql=True)
    catalog = load_catalog("calls", warehouse=directory)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, at timestamp")
    rows = spark.range(2).selectExpr("id", "timestamp_seconds(id * 86400 - 1) AS at")
    for _ in range(2):
        table.append(rows)
    older = table.metadata.snapshots[0].snapshot_id
    seen: dict[str, Any] = {}
    moved = spark.sql(f"CALL calls.system.rollback_to_snapshot('db.t', 0 + {older})").collect()
    seen["moved"] = [[row.current_snapshot_id == older for row in moved]]
    listed = spark.sql("CALL calls.system.ancestors_of(table => ?)", args=["calls.db.t"])
    seen["ancestors"] = listed.columns, listed.count()
    query = "SELECT 9L AS id, now() AS at"
    done = spark.sql(f"CALL calls.system.upsert('db.t', '{query}', array('id'))").collect()
    seen["upserted"] = done[0].upserted_rows_count
    [[view]] = spark.sql("CALL calls.system.create_changelog_view('db.t')").collect()
    seen["changes"] = spark.sql(f"SELECT count(*) FROM {view}").collect()[0][0]
    seen["procedures"] = spark.sql("SHOW PROCEDURES IN calls.system").count()
    [computed] = spark.sql(
        "SELECT calls.system.days(at), calls.system.bucket(16, id), calls.system.truncate(10, -1L) "
        "FROM calls.db.t WHERE id = 0"
    ).collect()
    seen["computed"] = list(map(str, computed))
    for name, text in {
        "type": "CALL calls.system.ancestors_of('db.t', 1.5)",
        "unknown": "CALL calls.system.ancestor_of('db.t')",
        "syntax": "CALL calls.system.ancestors_of 'db.t'",
    }.items():
        try:
            spark.sql(text)
        except (InvalidStatementError, PySparkException) as error:
            seen[name] = f"{type(error).__name__}: {error}"
    spark.catalog.dropTempView("t_changes")
    register(spark)
    return seen
