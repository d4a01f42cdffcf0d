"""Times what has little data: reads of 2,000 small files, and appends of 10 rows.

    python benchmarks/small_files.py DIRECTORY [--runs 5] [--cases count,partition,append]

A load of the table is part of each time. All take turns in one session, on the same files; the
medians are compared. Seconds depend on the machine, ratios much less.

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
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f
from write import start

from icebergds import Table, load_catalog, register

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
FILES = 2_000
ROWS = 2_000  # of each file
PARTITIONS = 50
_SCHEMA = "id bigint, part int, amount double, name string"


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    shutil.rmtree(directory / "appended", ignore_errors=True)
    spark = start(
        jar,
        directory / "appended" / "java",
        False,
        **{
            "spark.sql.catalog.default_iceberg": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.default_iceberg.type": "hadoop",
            "spark.sql.catalog.default_iceberg.warehouse": "/tmp",
            # Otherwise it answers count() from metadata, as icebergpy's own count() does.
            "spark.sql.iceberg.aggregate-push-down.enabled": "false",
        },
    )
    register(spark)
    table = filled(spark, directory)
    cases = {**reads(spark, table, jar is not None), **appends(spark, directory, jar is not None)}
    print(f"Spark {spark.version}, median of {arguments.runs} runs after the first")
    for name, works in cases.items():
        if any(text in name for text in arguments.cases.split(",")):
            taken = measure(works, arguments.runs)
            print(described(name, taken), flush=True)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cases", default="", help="parts of names, separated by commas")
    return parser.parse_args()


def filled(spark: SparkSession, directory: Path) -> Table:
    """The table of small files, made once a directory; each partition has as many files."""
    catalog = load_catalog("small", warehouse=str(directory / f"files-{FILES}"))
    if ("db",) not in catalog.list_namespaces():
        catalog.create_namespace("db")
        table = catalog.create_table("db.small", _SCHEMA, partition_spec="part")
        rows = spark.range(0, FILES * ROWS, 1, FILES).select(
            "id",
            f.expr(f"cast(id div {ROWS} % {PARTITIONS} as int)").alias("part"),
            f.expr("id / 7").alias("amount"),
            f.expr("concat('name ', id)").alias("name"),
        )
        table.append(rows, options={"distribution-mode": "none"})
    table = catalog.load_table("db.small")
    files = list(table.scan().plan_files())
    assert len(files) == FILES, len(files)
    return table


def reads(spark: SparkSession, table: Table, with_java: bool) -> dict[str, dict[str, Callable]]:
    location = table.location()
    files = [task.file.file_path for task in table.scan().plan_files()]
    loads: dict[str, Callable[[], DataFrame]] = {
        "parquet": lambda: spark.read.parquet(*files),
        "icebergpy": lambda: spark.read.format("icebergpy").load(location),
    }
    if with_java:
        loads["java"] = lambda: spark.read.format("iceberg").load(location)

    def counted(load: Callable[[], DataFrame]) -> Callable[[], None]:
        return lambda: expect(load().agg(f.count("*"), f.sum("amount")).first()[0], FILES * ROWS)

    def one_partition(load: Callable[[], DataFrame]) -> Callable[[], None]:
        wanted = FILES * ROWS // PARTITIONS
        return lambda: expect(
            load().where("part = 7").agg(f.count("*"), f.sum("amount")).first()[0], wanted
        )

    return {
        "count and sum": {name: counted(load) for name, load in loads.items()},
        "one partition of 50": {name: one_partition(load) for name, load in loads.items()},
    }


def appends(
    spark: SparkSession, directory: Path, with_java: bool
) -> dict[str, dict[str, Callable]]:
    """Appends of 10 rows, each way to a table of its own."""
    rows = pa.table({"id": pa.array(range(10)), "name": [f"name {i}" for i in range(10)]})
    df = spark.createDataFrame(rows.to_pandas(), "id bigint, name string").coalesce(1)
    catalog = load_catalog("appended", warehouse=str(directory / "appended" / "ours"))
    catalog.create_namespace("db")
    by_writer, by_frame, by_arrow = (
        catalog.create_table(f"db.{name}", "id bigint, name string")
        for name in ("writer", "frame", "arrow")
    )
    works = {
        "df.write": lambda: df.write.format("icebergpy").mode("append").save(by_writer.location()),
        "table.append(df)": lambda: by_frame.append(df),
        "table.append(arrow)": lambda: by_arrow.append(rows),
    }
    if with_java:
        spark.sql("CREATE TABLE java.db.appended (id bigint, name string) USING iceberg")
        works["java"] = lambda: df.writeTo("java.db.appended").append()
    return {"append of 10 rows": works}


def expect(found: int, wanted: int) -> None:
    if found != wanted:
        sys.exit(f"found {found} rows, expected {wanted}")


def measure(works: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(runs + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if turn:  # the first turn warms up
                taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in taken.items()}


def described(name: str, times: dict[str, float]) -> str:
    base = times.get("java", next(iter(times.values())))
    parts = [f"{reader} {taken:6.2f} s ({taken / base:4.2f})" for reader, taken in times.items()]
    return f"{name:20} " + "  ".join(parts)


if __name__ == "__main__":
    main()
