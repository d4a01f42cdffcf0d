"""Times the first row that a program reads: icebergpy, Spark's own Parquet reader, Java Iceberg.

Each run is a program of its own, from before it imports PySpark until it has one row of a table of
10 M rows. Programs take turns; the medians are compared. `read` is what is left after the session
has started, and `again` a second read of another row.

    python benchmarks/make_tables.py DIRECTORY
    python benchmarks/first_row.py DIRECTORY [--runs 5]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
JAR = "ICEBERGDS_ICEBERG_JAR"
PARTS = ("all", "read", "again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--reader", help="read once, in this process")
    arguments = parser.parse_args()
    if arguments.reader is not None:
        print(json.dumps(read(arguments.reader, arguments.directory)))
        return
    readers = ["parquet", "icebergpy", *(["java"] if JAR in os.environ else [])]
    taken: dict[str, list[list[float]]] = {reader: [] for reader in readers}
    for _ in range(arguments.runs):
        for reader in readers:
            command = [sys.executable, __file__, str(arguments.directory), "--reader", reader]
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            taken[reader].append(json.loads(done.stdout.splitlines()[-1]))
    for at, part in enumerate(PARTS):
        found = {name: statistics.median(run[at] for run in runs) for name, runs in taken.items()}
        texts = [f"{n} {s:6.2f} s ({s / found['parquet']:4.2f})" for n, s in found.items()]
        print(f"{part:6} " + "  ".join(texts))


def read(reader: str, directory: Path) -> list[float]:
    """Seconds of each of `PARTS`."""
    index = json.loads((directory / "index.json").read_text())
    base = index["tables"]["base"]
    begun = time.perf_counter()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    if reader == "java":
        builder = (
            builder.config("spark.jars", os.environ[JAR])
            .config("spark.sql.catalog.default_iceberg", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.default_iceberg.type", "hadoop")
            .config("spark.sql.catalog.default_iceberg.warehouse", "/tmp")
        )
    spark = builder.getOrCreate()
    if reader == "icebergpy":
        from icebergds import register

        register(spark)
    started = time.perf_counter()

    def first(condition: str) -> None:
        match reader:
            case "parquet":
                frame = spark.read.parquet(*base["data_files"])
            case "icebergpy":
                frame = spark.read.format("icebergpy").load(base["location"])
            case _:
                frame = spark.read.format("iceberg").load(base["location"])
        assert frame.where(condition).head() is not None

    first("id >= 0")
    rows = time.perf_counter()
    first("id >= 1")
    return [rows - begun, rows - started, time.perf_counter() - rows]


if __name__ == "__main__":
    main()
