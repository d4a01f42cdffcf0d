"""Changes rows through Spark Connect, by statements and a stream."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as f

from icebergds import load_table
from icebergds.errors import IcebergError


def see(spark: SparkSession, directory: str, modes: Iterable[str]) -> dict[str, Any]:
    """Rows and counts of the statements by mode, and rows of the table that a stream filled."""
    seen: dict[str, Any] = {}
    for mode in modes:
        # Relative to this process; the server runs in a directory of its own.
        path = os.path.join(directory, mode)
        properties = {f"table-property.write.{v}.mode": mode for v in ("delete", "update", "merge")}
        people = spark.range(10).selectExpr("id", "concat('n', id) AS name")
        options = {"create": "true", "partition-by": "bucket(2, id)", "format-version": "3"}
        people.write.format("icebergpy").options(**options, **properties).mode("append").save(
            os.path.abspath(path)
        )
        table = load_table(path)
        counts = [
            table.delete("id % 5 = 4"),
            table.delete(f.col("name") == "n0"),
            table.update({"name": f.upper("name")}, f.col("id") > 6),
            table.update({"name": "NULL"}, "id = 1"),
        ]
        source = spark.createDataFrame([(2, "gone"), (3, "c"), (50, "new")], "id long, name string")
        counts.append(
            table.merge(source, f.col("target.id") == f.col("source.id"))
            .when_matched_delete("source.name = 'gone'")
            .when_matched_update({"name": f.concat("target.name", "source.name")})
            .when_not_matched_insert_all()
            .when_not_matched_by_source_delete(f.col("target.id") == 5)
            .execute()
        )
        counts.append(
            table.upsert(source.where("id = 50").union(spark.sql("SELECT 8L, 'x'")), "id")
        )
        rows = spark.read.format("icebergpy").load(os.path.abspath(path)).collect()
        seen[mode] = {
            "rows": sorted([row["id"], row["name"]] for row in rows),
            "counts": [list(astuple(count)[:4]) for count in counts],
            "unresolved": message(lambda table=table: table.delete("nope = 1")),
            "random": message(lambda table=table: table.update({"name": "'x'"}, "rand() > 0.5")),
            "twice": message(
                lambda table=table, source=source: (
                    table.merge(source.union(source), ["id"]).when_matched_update_all().execute()
                )
            ),
        }
    seen["streamed"] = streamed(spark, os.path.abspath(os.path.join(directory, "streamed")))
    return seen


def streamed(spark: SparkSession, directory: str) -> list[list[Any]]:
    """The rows of a table that a stream of changes has filled, replayed at the end."""
    table = os.path.join(directory, "t")
    people = spark.range(3).selectExpr("id", "concat('n', id) AS name")
    people.write.format("icebergpy").option("create", "true").mode("append").save(table)
    changes = [("-D", 0, None), ("+U", 1, "new"), ("+I", 7, "added")]
    feed = spark.createDataFrame(changes, "op string, id long, name string").coalesce(1)
    feed.write.parquet(os.path.join(directory, "feed"))
    for _ in range(2):
        query = (
            spark.readStream.schema(feed.schema)
            .parquet(os.path.join(directory, "feed"))
            .writeStream.format("icebergpy")
            .option("write-operation", "delta")
            .option("row-kind-column", "op")
            .option("upsert-keys", "id")
            .option("checkpointLocation", os.path.join(directory, "checkpoint"))
            .trigger(availableNow=True)
            .start(table)
        )
        query.awaitTermination()
        commits = os.path.join(directory, "checkpoint", "commits")
        for file in os.listdir(commits):
            # As if Spark had not noticed that the batch was committed.
            os.unlink(os.path.join(commits, file))
    rows = spark.read.format("icebergpy").load(table).collect()
    return sorted([row["id"], row["name"]] for row in rows)


def message(action: Any) -> str:
    try:
        action()
    except (PySparkException, IcebergError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
