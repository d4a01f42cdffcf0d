"""Runs statements of SQL that describe tables, and those of views, through Spark Connect."""

from __future__ import annotations

import os
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from icebergds import load_catalog, register
from icebergds.errors import IcebergError


def see(spark: SparkSession, directory: str) -> dict[str, Any]:
    """The results of statements, by their text; errors by their type."""
    os.makedirs(directory)
    conf = {
        "type": "sql",
        "uri": f"sqlite:///{directory}/catalog.db",
        "schema_version": "v1",
        "warehouse": os.path.join(directory, "lake"),
    }
    for key, value in conf.items():
        spark.conf.set(f"spark.icebergpy.catalog.views.{key}", value)
    register(spark, sql=True)
    catalog = load_catalog("views")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, name string", partition_spec="name")
    table.append(spark.createDataFrame([(1, "a"), (2, "b")], "id bigint, name string"))
    seen = {text: _result(spark, text) for text in _BEFORE}
    table.append(spark.createDataFrame([(3, "c")], "id bigint, name string"))
    seen |= {text: _result(spark, text) for text in _AFTER}
    seen["changes"] = _changes(spark)
    seen["catalog"] = _catalog(spark)
    spark.sql("USE spark_catalog")
    register(spark)
    return seen


_BEFORE = (
    "USE views.db",
    "SHOW CURRENT NAMESPACE",
    "SELECT current_catalog(), current_schema()",
    "CREATE VIEW pairs (i COMMENT 'x', n) AS SELECT id, name FROM t",
    "SELECT * FROM pairs ORDER BY i",
    "DESCRIBE pairs",
    "SHOW VIEWS LIKE 'pairs'",
    "DESCRIBE t id",
    "DESCRIBE QUERY SELECT id FROM t",
    "CREATE TEMPORARY VIEW seen (a) AS SELECT id FROM t",
    "CREATE VIEW w AS SELECT * FROM seen",
    "SHOW NAMESPACES IN nope",
    "DESCRIBE nope",
    "CACHE TABLE cached AS SELECT id FROM t WHERE id > 1",
    "SELECT * FROM cached",
    "EXPLAIN SELECT * FROM t WHERE name = 'b'",
    "CACHE TABLE t",
)
# More rows are appended between them.
_AFTER = (
    "SELECT * FROM t ORDER BY id",
    "SELECT id, _change_type, _commit_version FROM t CHANGES FROM VERSION 2",
    "SELECT a FROM seen ORDER BY a",
    "CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT 7 AS a",
    "SELECT max(a) FROM seen",
)


def _changes(spark: SparkSession) -> dict[str, Any]:
    """The changes of the last commit, as readers give them."""
    batch = spark.read.option("startingVersion", "2").changes("views.db.t")
    stream = spark.readStream.option("startingVersion", "2").changes("t")
    queried = spark.sql("SELECT * FROM STREAM t CHANGES FROM VERSION 2")
    return {
        "batch": [list(row)[:4] for row in batch.collect()],
        "stream": [stream.isStreaming, stream.columns],
        "queried": [queried.isStreaming, queried.columns],
        "named": spark.readStream.table("t").isStreaming,
    }


def _catalog(spark: SparkSession) -> dict[str, Any]:
    """What `spark.catalog` answers after `USE views.db`."""
    catalog = spark.catalog
    made = catalog.createTable("views.db.made", schema=spark.range(1).schema)
    seen: dict[str, Any] = {
        "current": [catalog.currentCatalog(), catalog.currentDatabase()],
        "databases": [each.name for each in catalog.listDatabases()],
        "exists": [catalog.databaseExists(f"views.{name}") for name in ("db", "nope")],
        "tables": [list(each) for each in catalog.listTables()],
        "temporary": catalog.getTable("seen").isTemporary,
        "columns": [list(each) for each in catalog.listColumns("t")],
        "made": made.columns,
    }
    catalog.cacheTable("t")
    seen["cached"] = [catalog.isCached("t"), catalog.uncacheTable("t"), catalog.isCached("t")]
    catalog.setCurrentCatalog("spark_catalog")
    seen["of Spark"] = [catalog.currentDatabase(), catalog.tableExists("default.t")]
    return seen


def _result(spark: SparkSession, text: str) -> Any:
    try:
        return [list(row) for row in spark.sql(text).collect()]
    except (AnalysisException, IcebergError) as error:
        return type(error).__name__
