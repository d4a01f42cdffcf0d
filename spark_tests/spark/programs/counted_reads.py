"""Reads a table in steps, each of which `read_log` counts the reads of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from read_log import step

from icebergds import Catalog, load_table, register

_SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])


def see(
    spark: SparkSession, catalog: Catalog, properties: Mapping[str, str], directory: str
) -> dict[str, Any]:
    """How many rows each step read, and `metadata`, the file that describes the table.

    Args:
        properties: of the catalog.
        directory: where checkpoints of streams are.
    """
    catalog.create_table("db.t", _SCHEMA, properties={"write.delete.mode": "merge-on-read"})
    options = {"catalog": catalog.name} | {
        f"catalog.{key}": value for key, value in properties.items()
    }
    loaded = load_table("db.t", catalog=catalog.name, properties=properties)
    # A manifest and a file a commit; the last one deletes a row of the second file.
    for part in range(4):
        rows = spark.range(part * 10, part * 10 + 10).selectExpr("id", f"{part} AS part")
        loaded.append(rows)
    loaded.delete("id = 15")
    seen: dict[str, Any] = {"metadata": loaded.metadata_location}

    def load(**further: str) -> DataFrame:
        return spark.read.format("icebergpy").options(**options, **further).load("db.t")

    def counted(name: str, action: Callable[[], Any]) -> None:
        with step(f"{catalog.name}: {name}"):
            seen[name] = action()

    counted("load", lambda: load().count())
    counted("load with a schema", lambda: user_schema(spark, options).count())
    counted("filtered load", lambda: load(filter="part = 2").count())
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    counted("load with pushdown", lambda: load(pushdown="true").where("part = 2").count())
    counted("load once, planned twice", lambda: twice(load()))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    counted("change feed", lambda: load(**{"read-change-feed": "true"}).count())
    counted("load once, read twice", lambda: twice(load()))
    with step(f"{catalog.name}: load_table"):
        table = load_table("db.t", catalog=catalog.name, properties=properties)
    counted("scan in Arrow", lambda: table.scan().to_arrow().num_rows)
    counted("scan", lambda: table.scan().to_df(spark).count())
    counted("filtered scan", lambda: table.scan("part = 2").to_df(spark).count())
    counted("changes", lambda: table.changes().to_df(spark).count())
    register(spark, reader=False)
    counted("native scan", lambda: table.scan().to_df(spark).count())
    spark.conf.set("spark.icebergpy.native-scans", "false")
    for limited in (False, True):
        limits = {"streaming-max-files-per-micro-batch": "2"} if limited else {}
        df = spark.readStream.format("icebergpy").options(**options, **limits).load("db.t")
        name = "limited stream" if limited else "stream"
        counted(name, lambda df=df, name=name: stream(df, f"{directory}/{catalog.name} {name}"))
    return seen


def user_schema(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    reader = spark.read.schema("id bigint").format("icebergpy")
    return reader.options(**options).load("db.t")


def twice(df: DataFrame) -> list[int]:
    return [df.count(), df.where("id < 5").count()]


def stream(df: DataFrame, checkpoint: str) -> list[int]:
    """How many rows each batch of a query had."""
    query = (
        df.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [p["numInputRows"] for p in query.recentProgress]
