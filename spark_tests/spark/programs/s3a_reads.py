"""Loads tables of S3 by properties in a cluster that has S3A; prints what it saw as a line of JSON.

    s3a_reads.py LOCATION PROPERTIES OTHER_PROPERTIES JARS

Properties are JSON and lead to one storage. Of Spark's own settings of S3A none leads there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds import load_table, register

_NOWHERE = {
    "endpoint": "http://127.0.0.1:1",
    "access.key": "another",
    "secret.key": "another",
    "path.style.access": "false",
    "attempts.maximum": "1",
    "retry.limit": "1",
}


def main(location: str, properties: str, other_properties: str, jars: str) -> None:
    bucket = location.split("/")[2]
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.jars", ",".join(os.path.join(jars, name) for name in os.listdir(jars)))
    )
    for name, value in _NOWHERE.items():
        builder = builder.config(f"spark.hadoop.fs.s3a.{name}", value)
        builder = builder.config(f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}", value)
    spark = builder.getOrCreate()
    register(spark)
    given, other = json.loads(properties), json.loads(other_properties)

    def load(name: str, options: dict[str, str] = given) -> DataFrame:
        return spark.read.format("icebergpy").options(**options).load(f"{location}/{name}")

    def seen(name: str) -> dict[str, Any]:
        rows = load(name)
        return {"rows": listed(rows), "schemes": schemes(rows)}

    people = load("people")
    seen_rows = {name: seen(name) for name in ("people", "deleted", "keyed", "small", "grown")}
    print(
        json.dumps(
            {
                **seen_rows,
                "filtered": listed(people.where("id > 2").select("id")),
                "joined": listed(people.join(load("deleted"), "id").select("id")),
                "in turns": [schemes(load("people", each)) for each in (given, other, given)],
                "explained": str(
                    load_table(f"{location}/people", properties=given).scan().plan_summary(spark)
                ),
                "refreshed": refreshed(spark, people),
                "not kept": not_kept(spark, lambda: load("people")),
                "plans": people._jdf.queryExecution().toString(),
                "changed": changed(spark, f"{location}/changed", given),
            }
        ),
        flush=True,
    )
    spark.stop()


def listed(rows: DataFrame) -> list[list[Any]]:
    return sorted(map(list, rows.collect()))


def schemes(rows: DataFrame) -> list[str]:
    """Those of the files that Spark itself reads."""
    return sorted({path.partition(":")[0] for path in rows.inputFiles()})


def refreshed(spark: SparkSession, rows: DataFrame) -> list[list[Any]]:
    """The rows after Spark has looked for the files again."""
    rows.createOrReplaceTempView("people")
    spark.catalog.refreshTable("people")
    return listed(spark.table("people"))


def not_kept(spark: SparkSession, load: Callable[[], DataFrame]) -> list[list[Any]]:
    """The rows where Spark keeps no list of files."""
    spark.conf.set("spark.sql.hive.filesourcePartitionFileCacheSize", "0")
    return listed(load())


def changed(spark: SparkSession, location: str, properties: dict[str, str]) -> list[list[Any]]:
    """The rows after those of one name were changed by Spark."""
    table = load_table(location, properties=properties)
    table.update(spark=spark, set={"name": "'x'"}, where="id = 1")
    return listed(spark.read.format("icebergpy").options(**properties).load(location))


if __name__ == "__main__":
    main(*sys.argv[1:])
