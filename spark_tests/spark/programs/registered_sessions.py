"""Registers sessions and unregisters them; prints what it saw as a line of JSON.

registered_sessions.py classic|connect DIRECTORY
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import icebergds
from icebergds.spark.patches import OWNERS

_CATALOG = "spark.icebergpy.catalog.lake.warehouse"


def main(kind: str, directory: str) -> None:
    spark = _builder(kind).getOrCreate()
    seen: dict[str, Any] = {"kind": type(spark).__module__}
    before = state(kind, spark)
    icebergds.register(spark)
    seen["changed"] = differences(before, state(kind, spark))
    icebergds.unregister(spark)
    icebergds.unregister(spark)
    seen["left"] = differences(before, state(kind, spark))
    spark.conf.set(_CATALOG, f"{directory}/lake")
    seen["orders"] = orders(kind, spark, directory)
    spark.conf.unset(_CATALOG)
    seen["left by several"] = differences(before, state(kind, spark))
    if kind == "classic":
        spark.conf.set(_CATALOG, f"{directory}/lake")
        icebergds.register(spark, sql=True)
        seen["objects"] = other_objects(spark, directory)
        icebergds.unregister(spark)
    print(json.dumps(seen), flush=True)
    spark.stop()


def _builder(kind: str) -> SparkSession.Builder:
    builder: SparkSession.Builder = SparkSession.builder
    builder = builder.master("local[2]") if kind == "classic" else builder.remote("local[2]")
    return builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")


def state(kind: str, spark: SparkSession) -> dict[str, Any]:
    """All attributes of what registration changes, and the settings of a session."""
    found: dict[str, Any] = {}
    for places in OWNERS.values():
        for place in places[slice(1) if kind == "classic" else slice(1, 2)]:
            for name, value in vars(resolve_name(place)).items():
                found[f"{place}.{name}"] = value
    return found | dict(spark.conf.getAll.items())


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    names = before.keys() | after.keys()
    missing = object()
    return sorted(
        name
        for name in names
        if (one := before.get(name, missing)) is not (other := after.get(name, missing))
        # Settings are texts, of which Spark gives other objects.
        and not (isinstance(one, str) and one == other)
        # What ABCs and type checkers of the interpreter keep in classes.
        and not name.rpartition(".")[2].startswith(("_abc_", "__"))
    )


def orders(kind: str, spark: SparkSession, directory: str) -> list[str]:
    """What registered sessions know of a table, while others are registered and unregistered."""
    seen = []
    other = spark.newSession() if kind == "classic" else None
    icebergds.register(spark, sql=True)
    spark.sql("CREATE TABLE lake.db.t (id bigint)")
    if other is not None:
        seen.append(f"other: {read(other)}")
        icebergds.register(other, sql=True)
        other.conf.set(_CATALOG, f"{directory}/lake")
        seen.append(f"other, registered: {read(other)}")
        icebergds.unregister(other)
        seen.append(f"other, unregistered: {read(other)}")
        icebergds.register(other)
        icebergds.unregister(spark)
        icebergds.register(spark, sql=True)
    seen.append(f"registered: {read(spark)}")
    icebergds.unregister(spark)
    seen.append(f"unregistered: {read(spark)}")
    if other is not None:
        icebergds.unregister(other)
    return seen


def read(spark: SparkSession) -> str:
    try:
        return f"{len(spark.sql('SELECT * FROM lake.db.t').collect())} rows"
    except (PySparkException, icebergds.IcebergError) as error:
        return type(error).__name__


def other_objects(spark: SparkSession, directory: str) -> dict[str, Any]:
    """What knows the table `lake.db.t` by name."""
    from pyspark.sql import SQLContext

    same = SparkSession(spark.sparkContext, spark._jsparkSession)
    with ThreadPoolExecutor(1) as threads:
        found = {
            "same session": read(same),
            "its catalog": same.catalog.tableExists("lake.db.t"),
            "active": read(SparkSession.active()),
            "thread": threads.submit(read, spark).result(),
            "SQLContext": len(SQLContext(spark.sparkContext, same).table("lake.db.t").collect()),
            "new session": new_session(spark),
        }
    spark.sql("USE lake.db")
    found["current"] = same.catalog.currentDatabase()
    found["batch"] = batch(spark, Path(directory))
    spark.sql("USE spark_catalog")
    return found


def new_session(spark: SparkSession) -> str:
    new = spark.newSession()
    new.range(0).writeTo("lake.db.t").append()
    found = read(new)
    icebergds.unregister(new)
    return found


def batch(spark: SparkSession, directory: Path) -> list[Any]:
    """What the session of a batch of a stream knows."""
    found: list[Any] = []

    def see(rows: DataFrame, _: int) -> None:
        session = rows.sparkSession
        rows.createOrReplaceTempView("batch")
        session.sql("INSERT INTO t SELECT id FROM batch")
        rows.writeTo("lake.db.t").append()
        found.append(len(session.table("lake.db.t").collect()))
        found.append(session.catalog.tableExists("lake.db.t"))

    (directory / "in").mkdir()
    (directory / "in" / "a.json").write_text('{"id": 7}\n')
    query = spark.readStream.schema("id bigint").json(str(directory / "in")).writeStream
    query = query.foreachBatch(see).option("checkpointLocation", str(directory / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
