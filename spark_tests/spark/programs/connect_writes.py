"""Writes tables through Spark Connect."""

from __future__ import annotations

import os
import threading
from typing import Any
from unittest import TestCase, mock

from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.functions import partitioning

from icebergds import IcebergError, load_catalog, load_table, register
from icebergds.catalog.address import TableAddress
from icebergds.errors import NoSuchTableError


def see(spark: SparkSession, directory: str, relative: str) -> dict[str, Any]:
    """The ids of the table after each write, and what each failure said."""

    def save(df: DataFrame, path: str, mode: str = "append", **options: str) -> None:
        df.write.format("icebergpy").mode(mode).options(**options).save(path)

    def ids(path: str, **options: str) -> list[int]:
        df = spark.read.format("icebergpy").options(**options).load(path)
        return sorted(row[0] for row in df.select("id").collect())

    register(spark, writer=False)
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
    spark.conf.set("spark.icebergpy.catalog.lake.s3.secret-access-key", "known to the server alone")
    with TestCase().assertLogs("icebergds", "WARNING") as logs:
        register(spark, fast_writes=True)
    seen["warnings"] = logs.output
    spark.conf.unset("spark.icebergpy.catalog.lake.s3.secret-access-key")
    load_catalog("lake", warehouse=warehouse).create_namespace("db")
    save(spark.range(2), "db.t", catalog="lake", create="true")
    seen["catalog"] = ids("db.t", catalog="lake")
    seen["front door"] = through_the_front_door(spark, directory)
    seen["by the server"] = where_only_the_server_reaches(spark, os.path.join(directory, "front"))
    seen["batches"] = spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch")
    return seen


def through_the_front_door(spark: SparkSession, directory: str) -> dict[str, Any]:
    """What the writers of a registered session left in tables."""
    path = os.path.join(directory, "front")
    writer = spark.range(6).selectExpr("id", "id % 2 as part").write.format("icebergpy")
    writer.partitionBy("part").sortBy("id desc").option("table-property.Owner", "me").save(path)
    spark.range(1).selectExpr("7L as a", "1L as b").write.save(
        path, format="icebergpy", mode="append", **{"merge-schema": "true"}
    )
    named = spark.range(3).selectExpr("id", "'x' as s").write.format("icebergpy")
    named.partitionBy("bucket(2, id)").saveAsTable("lake.db.named")
    spark.sql("select 'y', 'z'").selectExpr("7 as a", "'w' as b").write.format(
        "icebergpy"
    ).insertInto("lake.db.named")
    by_name = spark.range(2).selectExpr("id", "timestamp '2024-01-02 03:04:05' as at")
    by_name.writeTo("lake.db.v2").partitionedBy(
        partitioning.days("at"), partitioning.bucket(4, f.col("id"))
    ).create()
    by_name.selectExpr("id + 10 as id", "at").writeTo("lake.db.v2").overwrite(f.col("id") == 1)
    table, v2 = load_table(path), load_catalog("lake").load_table("db.v2")
    return {
        "columns": table.schema().fields[0].name + str(len(table.schema().fields)),
        "partitions": [field.name for field in table.spec().fields],
        "owner": table.properties["Owner"],
        "named": sorted(
            row.id for row in spark.read.format("icebergpy").table("lake.db.named").collect()
        ),
        "v2": sorted(
            row.id for row in spark.read.format("icebergpy").table("lake.db.v2").collect()
        ),
        "v2 partitions": [field.name for field in v2.spec().fields],
        "exists": message(lambda: writer.save(path)),
    }


def where_only_the_server_reaches(spark: SparkSession, path: str) -> dict[str, Any]:
    """Rows that the server reads and writes for a process that does not reach the table."""

    def unreachable(address: TableAddress) -> None:
        raise NoSuchTableError(f"{address.path} is out of reach")

    def load() -> DataFrame:
        return spark.read.format("icebergpy").load(path)

    with (
        mock.patch.object(TableAddress, "load", unreachable),
        mock.patch.object(TableAddress, "operations", unreachable),
    ):
        df = spark.range(50, 51).selectExpr("id", "1L as part")
        df.write.format("icebergpy").mode("append").save(path)
        return {
            "rows": sorted(row.id for row in load().where("id > 3").collect()),
            "no table": message(lambda: spark.read.format("icebergpy").load(path + "x")),
            "no table to write": message(
                lambda: df.write.format("icebergpy").mode("append").save(path + "x")
            ),
        }


def message(action: Any) -> str:
    try:
        action()
    except (AnalysisException, PythonException, IcebergError) as error:
        return str(error)
    return "no error"
