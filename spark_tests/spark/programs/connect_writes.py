"""Writes tables through Spark Connect."""

from __future__ import annotations

import os
import threading
from typing import Any

from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from icebergds import load_catalog, load_table, register


def see(spark: SparkSession, directory: str, relative: str) -> dict[str, Any]:
    """The ids of the table after each write, and what each failure said."""

    def save(df: DataFrame, path: str, mode: str = "append", **options: str) -> None:
        df.write.format("icebergpy").mode(mode).options(**options).save(path)

    def ids(path: str, **options: str) -> list[int]:
        df = spark.read.format("icebergpy").options(**options).load(path)
        return sorted(row[0] for row in df.select("id").collect())

    path = os.path.join(directory, "t")
    layout = {"create": "true", "partition-by": "bucket(2, id)"}
    save(spark.range(3), path, **layout)
    seen: dict[str, Any] = {
        "unknown column": message(lambda: save(spark.range(1).selectExpr("id AS idd"), path)),
        "null": message(lambda: save(spark.sql("SELECT 'x' AS id"), path)),
    }
    save(spark.range(3, 4), path)
    spark.sql(f"CREATE TEMPORARY VIEW written USING icebergpy OPTIONS (path '{path}')")
    spark.sql("INSERT INTO written VALUES (4)")
    seen["appended"] = ids(path)
    thread = threading.Thread(target=lambda: save(spark.range(5, 6), path))
    thread.start()
    thread.join()
    # Workers of a Connect server run in a directory of their own.
    load_table(relative).append(spark.range(6, 7))
    seen["appended again"] = ids(path)
    load_table(path).overwrite(spark.range(9, 10))
    seen["overwritten"] = ids(path)

    warehouse = os.path.join(directory, "lake")
    spark.conf.set("spark.icebergpy.catalog.lake.warehouse", warehouse)
    register(spark, fast_writes=True)
    load_catalog("lake", warehouse=warehouse).create_namespace("db")
    save(spark.range(2), "db.t", catalog="lake", create="true")
    seen["catalog"] = ids("db.t", catalog="lake")
    seen["batches"] = spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch")
    return seen


def message(action: Any) -> str:
    try:
        action()
    except (AnalysisException, PythonException) as error:
        return str(error)
    return "no error"
