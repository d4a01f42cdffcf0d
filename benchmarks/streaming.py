"""Times streams: appends and reads compared with Java Iceberg, and changes by key.

Both sinks append the same files, one file per batch, in turns in one session; both sources then
read what was appended. The changes apply to a table of a million keys, with equality deletes; each
batch updates a tenth of the keys.

    python benchmarks/streaming.py DIRECTORY [--runs 3] [--batches 20] [--changes 100]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.streaming import StreamingQuery
from write import source, start

from icebergds import load_table, register

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_ROWS_OF_BATCH = 200_000
_KEYS = 1_000_000


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    spark = start(jar, directory / "warehouse", arguments.jvm_options)
    # The tables are re-created.
    spark.conf.set("spark.sql.catalog.java.cache-enabled", "false")
    register(spark, fast_writes=True)
    print(f"Spark {spark.version}, {arguments.batches} batches of {_ROWS_OF_BATCH} rows")
    appends(spark, directory, arguments.batches, arguments.runs, with_java=jar is not None)
    follow(spark, directory, arguments.runs, with_java=jar is not None)
    change_feed(spark, directory, arguments.changes)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--changes", type=int, default=100, help="number of batches of changes")
    parser.add_argument("--jvm-options", action="store_true")
    return parser.parse_args()


def appends(
    spark: SparkSession, directory: Path, batches: int, runs: int, *, with_java: bool
) -> None:
    """Prints rows per second and the median time of a batch."""
    feed = directory / f"feed-{batches}"
    if not (feed / "_SUCCESS").exists():
        rows = source(spark, directory, batches * _ROWS_OF_BATCH)
        rows.repartition(batches).write.mode("overwrite").parquet(str(feed))
    taken: dict[str, list[tuple[float, float]]] = {"icebergpy": [], "java": []}
    for turn in range(runs + 1):
        for name in ("icebergpy", "java") if with_java else ("icebergpy",):
            made = append_all(spark, directory, feed, name)
            if turn:  # the first turn warms up
                taken[name].append(made)
    medians = {
        name: [statistics.median(column) for column in zip(*times, strict=True)]
        for name, times in taken.items()
        if times
    }
    for name, (seconds, latency) in medians.items():
        ratio = seconds / medians["java"][0] if "java" in medians else float("nan")
        rate = batches * _ROWS_OF_BATCH / seconds
        print(
            f"append  {name:10} {rate:12,.0f} rows/s, {latency * 1000:5.0f} ms per batch "
            f"({ratio:4.2f} of Java's time)",
            flush=True,
        )


def append_all(spark: SparkSession, directory: Path, feed: Path, name: str) -> tuple[float, float]:
    """Seconds of all batches, and the median."""
    location = directory / "warehouse" / "db" / f"appended_{name}"
    checkpoint = directory / "checkpoint"
    for stale in (location, checkpoint):
        shutil.rmtree(stale, ignore_errors=True)
    rows = spark.read.parquet(str(feed))
    rows.limit(0).write.format("icebergpy").mode("append").option("create", "true").save(
        str(location)
    )
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", "1")
    writer = stream.parquet(str(feed)).writeStream.option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(availableNow=True)
    query = (
        writer.format("icebergpy").start(str(location))
        if name == "icebergpy"
        else writer.format("iceberg").toTable(f"java.db.{location.name}")
    )
    return durations(query)


def follow(spark: SparkSession, directory: Path, runs: int, *, with_java: bool) -> None:
    """Prints rows per second of streams that read all appends from the first commit on."""
    location = directory / "warehouse" / "db" / "appended_icebergpy"
    rows = sum(int(s.summary.get("added-records", 0)) for s in load_table(location).snapshots())
    taken: dict[str, list[float]] = {"icebergpy": [], "java": []}
    for turn in range(runs + 1):
        for name in ("icebergpy", "java") if with_java else ("icebergpy",):
            shutil.rmtree(directory / "checkpoint", ignore_errors=True)
            stream = (
                spark.readStream.format("icebergpy").option("stream-from", "earliest")
                if name == "icebergpy"
                else spark.readStream.format("iceberg")
            )
            query = (
                stream.load(str(location) if name == "icebergpy" else f"java.db.{location.name}")
                .writeStream.format("noop")
                .option("checkpointLocation", str(directory / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            found = sum(progress["numInputRows"] for progress in query.recentProgress)
            if found != rows:
                sys.exit(f"{name} read {found} rows of {rows}")
            if turn:  # the first turn warms up
                ends = (
                    progress["durationMs"]["triggerExecution"] for progress in query.recentProgress
                )
                taken[name].append(sum(ends) / 1000)
    medians = {name: statistics.median(times) for name, times in taken.items() if times}
    for name, seconds in medians.items():
        ratio = seconds / medians["java"] if "java" in medians else float("nan")
        print(f"follow  {name:10} {rows / seconds:12,.0f} rows/s ({ratio:4.2f} of Java's time)")


def durations(query: StreamingQuery) -> tuple[float, float]:
    query.awaitTermination()
    taken = [
        progress["durationMs"]["triggerExecution"] / 1000
        for progress in query.recentProgress
        if progress["numInputRows"]
    ]
    # The first batch also starts the workers, which later batches reuse.
    return sum(taken[1:]) * len(taken) / (len(taken) - 1), statistics.median(taken[1:])


def change_feed(spark: SparkSession, directory: Path, batches: int) -> None:
    """Prints changes per second, and the time of a count afterwards."""
    location = directory / "warehouse" / "db" / "changed_feed"
    for stale in (location, directory / "changes", directory / "checkpoint"):
        shutil.rmtree(stale, ignore_errors=True)
    rows = spark.range(_KEYS).select("id", *columns(f.lit(0)))
    rows.repartition(2).write.format("icebergpy").mode("append").option("create", "true").save(
        str(location)
    )
    for batch in range(batches):
        changes(spark, batch).coalesce(2).write.mode("append").parquet(
            str(directory / "changes" / f"batch={batch}")
        )
    stream = spark.readStream.schema("op string, id long, name string, amount double, version int")
    stream = stream.option("maxFilesPerTrigger", "2").option("recursiveFileLookup", "true")
    query = (
        stream.parquet(str(directory / "changes"))
        .writeStream.format("icebergpy")
        .option("write-operation", "delta")
        .option("row-kind-column", "op")
        .option("upsert-keys", "id")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(location))
    )
    seconds, latency = durations(query)
    count = int(_KEYS * 0.1)
    started = time.perf_counter()
    found = spark.read.format("icebergpy").option("columns", "id").load(str(location)).count()
    read = time.perf_counter() - started
    print(
        f"changes icebergpy  {batches * count / seconds:12,.0f} changes/s, "
        f"{latency * 1000:5.0f} ms per batch of {count}; the next count takes {read:.2f} s "
        f"({found} rows, {len(load_table(location).snapshots())} snapshots)",
        flush=True,
    )


def columns(version: f.Column) -> list[f.Column]:
    return [
        f.concat(f.lit("name-"), f.col("id")).alias("name"),
        (f.col("id") * 0.5).alias("amount"),
        version.cast("int").alias("version"),
    ]


def changes(spark: SparkSession, batch: int) -> DataFrame:
    """Updates of a tenth of the keys, scattered."""
    ids = spark.range(_KEYS // 10).select((f.col("id") * 10 + batch % 10).alias("id"))
    return ids.select(f.lit("+U").alias("op"), "id", *columns(f.lit(batch + 1)))


if __name__ == "__main__":
    main()
