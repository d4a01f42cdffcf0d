"""Loads remote tables by properties in a cluster that has a client of Hadoop for their storage.

    remote_reads.py LOCATION PROPERTIES OTHER_PROPERTIES JARS SETTINGS THROUGH

The location is that of a new catalog. Prints what it saw as a line of JSON. Properties are JSON,
and all lead to one storage; so are the settings of the client in Spark, none of which leads there.
Spark is reached through "connect", or it is "classic" and a cluster.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from remote_tables import create_tables

from icebergds import load_table, register


def main(
    location: str,
    properties: str,
    other_properties: str,
    jars: str,
    settings: str,
    through: str,
) -> None:
    builder: Any = SparkSession.builder
    if through == "connect":
        builder = builder.remote("local[2]")
    else:
        builder = builder.master("local-cluster[2,1,1024]")
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.jars", ",".join(os.path.join(jars, name) for name in os.listdir(jars)))
    )
    for name, value in json.loads(settings).items():
        builder = builder.config(f"spark.hadoop.{name}", value)
    spark = builder.getOrCreate()
    register(spark)
    given, other = json.loads(properties), json.loads(other_properties)
    create_tables(location, given)
    location = f"{location}/db"

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
                "through": through,
                **seen_rows,
                "filtered": listed(people.where("id > 2").select("id")),
                "joined": listed(people.join(load("deleted"), "id").select("id")),
                "in turns": [schemes(load("deleted", each)) for each in (given, other, given)],
                "explained": str(
                    load_table(f"{location}/people", properties=given).scan().plan_summary(spark)
                ),
                "refreshed": refreshed(spark, people),
                "not kept": not_kept(spark, lambda: load("people")),
                "plans": explained(load("deleted")),
                "changed": changed(spark, f"{location}/changed", given),
            }
        ),
        flush=True,
    )
    spark.stop()


def listed(rows: DataFrame) -> list[list[Any]]:
    return sorted(map(list, rows.collect()))


def explained(rows: DataFrame) -> str:
    """All plans of rows, as they are shown to users."""
    shown = io.StringIO()
    with redirect_stdout(shown):
        rows.explain(extended=True)
    return shown.getvalue()


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
