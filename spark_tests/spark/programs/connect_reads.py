"""Reads a table through Spark Connect.

Nothing is registered for the loads: Spark finds the format by itself.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from icebergds import load_table, register


def see(spark: SparkSession, table: str, relative: str) -> dict[str, Any]:
    """The ids that each read found, and what each failure said; the time zone is UTC."""

    def load(path: str = table, **options: str) -> DataFrame:
        return spark.read.format("icebergpy").options(**options).load(path)

    spark.sql(f"CREATE TEMPORARY VIEW v USING icebergpy OPTIONS (path '{table}', filter 'id > 2')")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    once = load()
    return {
        "union of filters": ids(once.where("id = 1").union(once.where("id = 5"))),
        **ids_of_each(
            {
                "all": once,
                "first snapshot": load(versionAsOf="1001"),
                "option filter": load(filter="name = 'b' or id = 5"),
                "view": spark.table("v"),
                "scan": load_table(table).scan(filter="at < '1970-01-01 00:00:04'").to_df(spark),
                # Workers of a Connect server run in a directory of their own.
                "scan of a relative path": load_table(relative).scan(columns=["id"]).to_df(spark),
            }
        ),
        "native scan": native_scan(spark, table),
        "missing table": message(lambda: load("/nowhere").schema),
        "missing column": message(lambda: load(columns="nmae").schema),
        "bad filter": message(lambda: load(filter="nmae > 1").collect()),
    }


def native_scan(spark: SparkSession, table: str) -> dict[str, Any]:
    """Ids of the first snapshot, whose files have no deletes, and who read them."""
    register(spark, reader=False)
    loaded = load_table(table)
    df = loaded.scan(snapshot_id=1001).to_df(spark)
    seen = {
        "by spark": len(df.inputFiles()),
        "first snapshot": ids(df),
        "current": ids(loaded.scan().to_df(spark)),
    }
    spark.conf.unset("spark.icebergpy.native-scans")
    return seen


def ids(df: DataFrame) -> list[int]:
    return sorted(row[0] for row in df.select("id").collect())


def ids_of_each(frames: dict[str, DataFrame]) -> dict[str, list[int]]:
    named = [df.select("id", lit(name)) for name, df in frames.items()]
    rows = reduce(DataFrame.union, named).collect()
    return {name: sorted(row[0] for row in rows if row[1] == name) for name in frames}


def message(action: Any) -> str:
    try:
        action()
    except (AnalysisException, PythonException) as error:
        return str(error)
    return "no error"
