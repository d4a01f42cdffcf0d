"""Times reads of 10 M rows of 8 columns: icebergpy, Spark's own Parquet reader, Java Iceberg.

`icebergpy` is read in a registered session, `plain` by the data source alone, all columns or those
of its option `columns`. `ready` is a Python source that reads nothing: its batches are ready.

All readers run in turns in one session, on the same files; the medians are compared. Seconds depend
on the machine, ratios much less.

    python benchmarks/make_tables.py DIRECTORY
    python benchmarks/read.py DIRECTORY [--runs 5] [--cases all,one] [--jvm-options]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from ready_batches import ready_batches

from icebergds import register

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
JVM_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


def main() -> None:
    arguments = parse_arguments()
    index = json.loads((arguments.directory / "index.json").read_text())
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    spark = start(jar, arguments.jvm_options)
    print(
        f"Spark {spark.version}, median of {arguments.runs} runs, JVM options: "
        f"{'on' if arguments.jvm_options else 'off'}"
    )
    results: dict[str, dict[str, float]] = {}
    plain = spark.newSession()
    register(plain, reader=False, writer=False, native_scans=False)
    sessions = spark, plain
    warm_up = readers_for(sessions, index, "base", None, with_java=jar is not None)
    measure(warm_up, None, runs=2)
    for name, columns, table in cases(index, arguments.cases):
        readers = readers_for(sessions, index, table, columns, with_java=jar is not None)
        results[name] = measure(readers, columns, arguments.runs)
        print(describe(name, results[name], results), flush=True)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="")
    parser.add_argument("--jvm-options", action="store_true")
    return parser.parse_args()


def start(jar: str | None, jvm_options: bool) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if jar is not None:
        builder = (
            builder.config("spark.jars", jar)
            .config("spark.sql.catalog.default_iceberg", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.default_iceberg.type", "hadoop")
            .config("spark.sql.catalog.default_iceberg.warehouse", "/tmp")
            # Otherwise it answers max() from bounds in manifests, without reading rows.
            .config("spark.sql.iceberg.aggregate-push-down.enabled", "false")
        )
    if jvm_options:
        builder = builder.config("spark.driver.extraJavaOptions", JVM_OPTIONS).config(
            "spark.python.unix.domain.socket.enabled", "true"
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def cases(index: dict, wanted: str) -> list[tuple[str, list[str] | None, str]]:
    """Name, columns (None for all) and table of each case."""
    one = [index["columns"][0]]
    found = [("all columns", None, "base"), ("one column", one, "base")]
    for table in index["tables"]:
        if table != "base":
            found += [(table, None, table), (f"{table}, one column", one, table)]
    chosen = [text for text in wanted.split(",") if text]
    return [c for c in found if not chosen or any(text in c[0] for text in chosen)]


def readers_for(
    sessions: tuple[SparkSession, SparkSession],
    index: dict,
    table: str,
    columns: list[str] | None,
    with_java: bool,
) -> dict[str, Callable[[], DataFrame]]:
    """Loads of a table by each reader, the plain one in the second session."""
    spark, other = sessions
    location = index["tables"][table]["location"]

    def plain() -> DataFrame:
        reader = other.read.format("icebergpy")
        if columns is not None:
            reader = reader.option("columns", ",".join(columns))
        return reader.load(location)

    files = index["tables"]["base"]["data_files"]
    rows = spark.read.parquet(*files).count()
    named = columns or index["columns"]
    readers = {
        "parquet": lambda: spark.read.parquet(*files),
        "icebergpy": lambda: spark.read.format("icebergpy").load(location),
        "plain": plain,
        "ready": ready_batches(spark, files[0], named, rows),
    }
    if with_java:
        readers["java"] = lambda: spark.read.format("iceberg").load(location)
    return readers


def measure(
    readers: dict[str, Callable[[], DataFrame]], columns: list[str] | None, runs: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in readers}
    for turn in range(runs + 1):
        for name, read in readers.items():
            started = time.perf_counter()
            frame = read()
            frame.agg(*[f.max(c) for c in columns or frame.columns], f.count("*")).collect()
            if turn:  # the first turn warms up
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(taken) for name, taken in times.items()}


def describe(name: str, times: dict[str, float], results: dict[str, dict[str, float]]) -> str:
    native = times["parquet"]
    parts = [f"{reader} {taken:6.2f} s ({taken / native:4.2f})" for reader, taken in times.items()]
    base = results.get("all columns", {}).get("icebergpy")
    against = f"  {times['icebergpy'] / base:4.2f} of all columns" if base else ""
    return f"{name:45} " + "  ".join(parts) + against


if __name__ == "__main__":
    main()
