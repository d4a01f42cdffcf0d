"""Times upserts into a table of 10 M rows of 8 columns: `auto`, equality deletes, Java's MERGE.

Ours and Java Iceberg change the same table in turns in one session, and roll it back after each
run. `auto` deletes the older rows by position at the commit, `equality deletes` leaves them to
readers. Java Iceberg has only MERGE for this. Then the table is read before and after batches
without maintenance between them, and a stream of batches runs beside a reader.

    python benchmarks/changes_by_key.py DIRECTORY [--runs 3] [--rows 10000000] [--cases clustered]

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
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from row_changes import java_merge, roll_back
from write import source, start

from icebergds import load_table, register

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_MODES = {"auto": "auto", "equality deletes": "equality-deletes"}
_WARM_UPS = 2
_BATCHES = 50
_OF_STREAM = 2_000


def main() -> None:
    arguments = parse_arguments()
    jar, directory = os.environ.get("ICEBERGDS_ICEBERG_JAR"), arguments.directory.resolve()
    spark = start(jar, directory / "warehouse", arguments.jvm_options)
    spark.conf.set("spark.sql.catalog.java.cache-enabled", "false")
    register(spark)
    location = directory / "warehouse" / "db" / "changed"
    rows = source(spark, directory, arguments.rows)
    base = make_table(rows, location, arguments.format_version)
    print(
        f"Spark {spark.version}, {arguments.rows} rows, version {arguments.format_version}, "
        f"median of {arguments.runs} runs; seconds"
    )
    chosen = arguments.cases.split(",")
    count = arguments.rows // 1000
    for name, keys in (
        (
            f"{count} clustered keys",
            f.col("id").between(arguments.rows // 2, arguments.rows // 2 + count - 1),
        ),
        (f"{count} random keys", f.pmod(f.xxhash64("id"), f.lit(1000)) == 7),
        (f"{count * 100} random keys", f.pmod(f.xxhash64("id"), f.lit(10)) == 7),
    ):
        if any(each in name for each in chosen):
            changes = changed_rows(spark, rows.where(keys), directory / name.replace(" ", "-"))
            print(of_upsert(spark, name, changes, location, base, arguments.runs, jar), flush=True)
    if any(each in "batches" for each in chosen):
        for mode in _MODES:
            of_batches(spark, rows, location, base, mode, count)
    if any(each in "stream" for each in chosen):
        for mode in _MODES:
            of_stream(spark, location, base, mode, arguments)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=200, help="of the stream")
    parser.add_argument("--cases", default="", help="parts of case names, separated by commas")
    parser.add_argument("--format-version", type=int, default=3)
    parser.add_argument("--jvm-options", action="store_true")
    return parser.parse_args()


def make_table(rows: DataFrame, location: Path, format_version: int) -> int:
    """Creates the table in eight files of ascending ids; returns its snapshot id."""
    shutil.rmtree(location, ignore_errors=True)
    merging = {"write.merge.mode": "merge-on-read", "write.merge.isolation-level": "snapshot"}
    given = {f"table-property.{name}": value for name, value in merging.items()}
    rows.repartitionByRange(8, "id").sortWithinPartitions("id").write.format("icebergpy").mode(
        "append"
    ).options(**{"create": "true", "format-version": str(format_version)}, **given).save(
        str(location)
    )
    snapshot = load_table(location).current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def changed_rows(spark: SparkSession, rows: DataFrame, path: Path) -> DataFrame:
    """The rows with another quantity, kept as Parquet files."""
    if not (path / "_SUCCESS").exists():
        changed = rows.withColumn("quantity", f.lit(-1)).repartition(2)
        changed.write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def of_upsert(
    spark: SparkSession,
    name: str,
    changes: DataFrame,
    location: Path,
    base: int,
    runs: int,
    jar: str | None,
) -> str:
    """The medians of an upsert in each way, which must leave the same rows."""

    def upsert(mode: str) -> None:
        load_table(location).upsert(changes, ["id"], options={"write.upsert.mode": mode})

    ways: dict[str, Callable[[], object]] = {
        shown: partial(upsert, mode) for shown, mode in _MODES.items()
    }
    if jar is not None:
        ways["java"] = lambda: java_merge(spark, changes)
    taken: dict[str, list[float]] = {way: [] for way in ways}
    results = set()
    for turn in range(-_WARM_UPS, runs):
        for way, run in ways.items():
            started = time.perf_counter()
            run()
            if turn >= 0:
                taken[way].append(time.perf_counter() - started)
            results.add(aggregate(spark, location))
            roll_back(location, base)
    if len(results) != 1:
        sys.exit(f"{name}: results differ: {results}")
    medians = {way: statistics.median(times) for way, times in taken.items()}
    ratio = f"  ({medians['auto'] / medians['java']:4.2f} of Java's)" if jar is not None else ""
    shown = "  ".join(f"{way} {seconds:6.2f}" for way, seconds in medians.items())
    return f"upsert of {name:22} {shown}{ratio}"


def aggregate(spark: SparkSession, location: Path) -> tuple[object, ...]:
    read = spark.read.format("icebergpy").load(str(location))
    return tuple(read.agg(f.count("*"), f.sum("quantity"), f.sum("id")).first() or ())


def of_batches(
    spark: SparkSession, rows: DataFrame, location: Path, base: int, mode: str, count: int
) -> None:
    """Reads before and after many upserts of random keys."""
    before = timed_reads(spark, location)
    table = load_table(location)
    for batch in range(_BATCHES):
        keys = f.pmod(f.xxhash64("id"), f.lit(1000)) == batch
        changes = rows.where(keys).withColumn("quantity", f.lit(-batch)).limit(count)
        table.upsert(changes, ["id"], options={"write.upsert.mode": _MODES[mode]})
    after = timed_reads(spark, location)
    for what, seconds in after.items():
        print(
            f"{what} after {_BATCHES} batches, {mode:16} {seconds:6.2f}, before "
            f"{before[what]:6.2f}  ({seconds / before[what]:4.2f})",
            flush=True,
        )
    roll_back(location, base)


def timed_reads(spark: SparkSession, location: Path) -> dict[str, float]:
    """Seconds of a full scan, and of one column of one day; medians of three."""

    def full() -> object:
        read = spark.read.format("icebergpy").load(str(location))
        return read.agg(*(f.max(name) for name in read.columns)).first()

    def one_day() -> object:
        read = spark.read.format("icebergpy").load(str(location))
        return read.where("day = date'2023-12-01'").agg(f.sum("quantity")).first()

    found = {}
    for what, read in (("full scan", full), ("one column of one day", one_day)):
        times = []
        for turn in range(4):
            started = time.perf_counter()
            read()
            if turn:
                times.append(time.perf_counter() - started)
        found[what] = statistics.median(times)
    return found


def of_stream(
    spark: SparkSession, location: Path, base: int, mode: str, arguments: argparse.Namespace
) -> None:
    """Batches a minute of a stream of upserts, and reads beside it."""
    feed, checkpoint = (
        location.with_name("feed"),
        location.with_name(f"checkpoint-{time.time_ns()}"),
    )
    feed_of_upserts(spark, feed, arguments)
    plain = timed_reads(spark, location)["full scan"]
    files = spark.readStream.schema(spark.read.parquet(str(feed)).schema)
    query = (
        files.option("maxFilesPerTrigger", 1)
        .parquet(str(feed))
        .writeStream.format("icebergpy")
        .options(
            **{
                "write-operation": "upsert",
                "upsert-keys": "id",
                "upsert-order-by": "quantity",
                "write.upsert.mode": _MODES[mode],
            }
        )
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(location))
    )
    started, reads = time.perf_counter(), []
    while query.isActive:
        began = time.perf_counter()
        aggregate(spark, location)
        reads.append(time.perf_counter() - began)
    query.awaitTermination()
    minutes = (time.perf_counter() - started) / 60
    after = timed_reads(spark, location)["full scan"]
    print(
        f"stream of {arguments.batches} batches, {mode:16} {arguments.batches / minutes:6.1f} "
        f"batches a minute beside reads of {statistics.median(reads):.2f}, the last ones "
        f"{statistics.median(reads[-5:]):.2f}; full scan after {after:.2f}, before {plain:.2f}",
        flush=True,
    )
    roll_back(location, base)


def feed_of_upserts(spark: SparkSession, feed: Path, arguments: argparse.Namespace) -> None:
    """A file of rows for each batch."""
    if (feed / "_SUCCESS").exists():
        return
    rows = source(spark, arguments.directory.resolve(), arguments.rows)
    step = max(1, arguments.rows // (arguments.batches * _OF_STREAM))
    chosen = rows.where(f.pmod(f.xxhash64("id", f.lit(3)), f.lit(step)) == 0)
    batch = f.pmod(f.xxhash64("id", f.lit(5)), f.lit(arguments.batches)).cast("int")
    chosen.repartitionByRange(arguments.batches, batch).write.parquet(str(feed))


if __name__ == "__main__":
    main()
