"""Times queries of metadata tables in Spark: `files`, `entries` and `partitions`.

    python benchmarks/metadata_tables.py DIRECTORY [--files 100000 1000000] [--runs 3]
        [--cases files,entries,partitions]

A load is part of each time. `plain` reads all columns, as Spark tells a Python data source none;
`columns` names those of the query. All take turns in one session, on the same tables, whose data
files do not exist; the medians are compared. Seconds depend on the machine, ratios much less.

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from maintenance_manifests import create_table
from pyspark.sql import DataFrame, SparkSession, functions as f
from small_files import described, expect, measure
from write import start

from icebergds import register

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_PER_MANIFEST = 10_000
_COLUMNS = 8
_PER_DAY = 1_000


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    spark = start(
        jar,
        directory / "java",
        False,
        **{
            "spark.sql.catalog.default_iceberg": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.default_iceberg.type": "hadoop",
            "spark.sql.catalog.default_iceberg.warehouse": "/tmp",
        },
    )
    register(spark)
    print(f"Spark {spark.version}, median of {arguments.runs} runs after the first")
    for files in arguments.files:
        location = directory / str(files)
        if not (location / "metadata" / "version-hint.text").exists():
            manifests = files // _PER_MANIFEST
            create_table(str(location), manifests, files, _COLUMNS, files_per_day=_PER_DAY)
        for name, works in queries(spark, str(location), files, jar is not None).items():
            if any(text in name for text in arguments.cases.split(",")):
                taken = measure(works, arguments.runs)
                print(described(f"{files:9,} {name}", taken), flush=True)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, nargs="*", default=[10**5, 10**6])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="", help="parts of names, separated by commas")
    return parser.parse_args()


def queries(
    spark: SparkSession, location: str, files: int, with_java: bool
) -> dict[str, dict[str, Callable[[], None]]]:
    def both(kind: str, columns: str, ask: Callable[[DataFrame], int], wanted: int) -> dict:
        def ours(**options: str) -> Callable[[], None]:
            reader = spark.read.format("icebergpy").options(**options)
            return lambda: expect(ask(reader.load(f"{location}#{kind}")), wanted)

        works = {"plain": ours(), "columns": ours(columns=columns)}
        if with_java:
            java = spark.read.format("iceberg")
            works["java"] = lambda: expect(ask(java.load(f"{location}#{kind}")), wanted)
        return works

    def summed(*columns: str) -> Callable[[DataFrame], int]:
        sums = [f.sum(column) for column in columns]
        return lambda df: df.agg(f.count("*"), *sums).first()[0]

    return {
        "files": both(
            "files",
            "record_count,file_size_in_bytes",
            summed("record_count", "file_size_in_bytes"),
            files,
        ),
        "files by bounds": both(
            "files",
            "readable_metrics.ts.lower_bound",
            lambda df: df.select(f.count("readable_metrics.ts.lower_bound")).first()[0],
            files,
        ),
        "entries": both(
            "entries",
            "status,data_file.record_count",
            lambda df: (
                df.where("status < 2").agg(f.sum("data_file.record_count"), f.count("*")).first()[1]
            ),
            files,
        ),
        "partitions": both(
            "partitions",
            "file_count",
            lambda df: df.agg(f.sum("file_count")).first()[0],
            files,
        ),
    }


if __name__ == "__main__":
    main()
