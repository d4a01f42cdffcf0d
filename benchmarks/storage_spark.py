"""Times reads and appends by Spark on S3 whose answers come late: icebergpy and Java Iceberg.

Java Iceberg uses its S3FileIO, and a JDBC catalog in which the tables are registered. Both go
through the same proxy to a server on this machine, which answers each request 30 ms later.

    python benchmarks/storage_spark.py [--runs 3] [--milliseconds 30] [--rows 850000]

Needs ICEBERGDS_ICEBERG_JAR, ICEBERGDS_AWS_JAR (Java Iceberg's bundle of AWS) and
ICEBERGDS_JDBC_DRIVERS, a folder with the driver of SQLite.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from slow_storage import SlowStorage, slow_storage
from storage import FILES, SMALL_FILES, catalog_at, fill

from icebergds import register

sys.path.append(str(Path(__file__).parents[1] / "spark_tests"))
from s3_server import s3_server, storage_properties

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_READERS = ("icebergpy", "java")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--milliseconds", type=int, default=30)
    parser.add_argument("--rows", type=int, default=850_000, help="of each of the large files")
    arguments = parser.parse_args()
    with s3_server() as server, tempfile.TemporaryDirectory() as directory:
        location = server.new_location()
        fill(location, server, arguments.rows)
        # The one port serves requests side by side, the other lets commits be exclusive.
        with (
            slow_storage(server.racing_port, arguments.milliseconds / 1000) as reads,
            slow_storage(server.atomic_port, arguments.milliseconds / 1000) as commits,
        ):
            ports = {"": reads.port, "_commits": commits.port}
            spark = start(ports, location, Path(directory))
            for suffix, table in (("", "large"), ("", "small"), ("_commits", "small")):
                register_in_java(spark, f"java{suffix}", location, server.racing_port, table)
            for what, work in work_of(spark).items():
                storage = commits if what.startswith("append") else reads
                report(what, storage, work, arguments.runs)
            spark.stop()


def start(ports: dict[str, int], location: str, directory: Path) -> SparkSession:
    """A session with catalogs `java` and `ours`, for each suffix with its port."""
    drivers = sorted(Path(os.environ["ICEBERGDS_JDBC_DRIVERS"]).glob("sqlite-jdbc-*.jar"))
    jars = [os.environ["ICEBERGDS_ICEBERG_JAR"], os.environ["ICEBERGDS_AWS_JAR"], str(drivers[0])]
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.jars", ",".join(jars))
    )
    for suffix, port in ports.items():
        properties = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{directory}/catalog{suffix}.db",
            "warehouse": location,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": "us-east-1",
            "cache-enabled": "false",
            **storage_properties(port),
        }
        name = f"spark.sql.catalog.java{suffix}"
        builder = builder.config(name, "org.apache.iceberg.spark.SparkCatalog")
        for key, value in properties.items():
            builder = builder.config(f"{name}.{key}", value)
        for key, value in {"warehouse": location, **storage_properties(port)}.items():
            builder = builder.config(f"spark.icebergpy.catalog.ours{suffix}.{key}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def register_in_java(
    spark: SparkSession, catalog: str, location: str, port: int, table: str
) -> None:
    metadata = catalog_at(location, port, "near").load_table(f"db.{table}").metadata_location
    spark.sql(f"CALL {catalog}.system.register_table('db.{table}', '{metadata}')")


def work_of(spark: SparkSession) -> dict[str, dict[str, Callable[[], object]]]:
    """What is timed, by each of `_READERS`."""
    row = spark.createDataFrame([(1, 0.5, 2, "text")], "id long, a double, b long, s string")

    def loaded(reader: str, table: str) -> DataFrame:
        if reader == "java":
            return spark.table(f"java.db.{table}")
        return spark.read.format("icebergpy").option("catalog", "ours").load(f"db.{table}")

    def one_column(reader: str, table: str) -> Callable[[], object]:
        return lambda: loaded(reader, table).agg(f.sum("a")).collect()

    def all_columns(reader: str) -> Callable[[], object]:
        sums = [f.sum("a"), f.sum("b"), f.max("s"), f.max("id")]
        return lambda: loaded(reader, "large").agg(*sums).collect()

    def append(reader: str) -> Callable[[], object]:
        if reader == "java":
            return lambda: row.writeTo("java_commits.db.small").append()
        return lambda: row.writeTo("ours_commits.db.small").append()

    return {
        f"one column of {FILES} files": {name: one_column(name, "large") for name in _READERS},
        f"all columns of {FILES} files": {name: all_columns(name) for name in _READERS},
        f"{SMALL_FILES} small files": {name: one_column(name, "small") for name in _READERS},
        "append of a row": {name: append(name) for name in _READERS},
    }


def report(
    what: str, storage: SlowStorage, work: dict[str, Callable[[], object]], runs: int
) -> None:
    taken: dict[str, list[float]] = {name: [] for name in work}
    asked: dict[str, int] = {}
    for turn in range(runs + 1):
        for name, do in work.items():
            storage.reset()
            started = time.perf_counter()
            do()
            # The first run connects.
            if turn:
                taken[name].append(time.perf_counter() - started)
            asked[name] = sum(storage.requests.values())
    medians = {name: statistics.median(times) for name, times in taken.items()}
    parts = [f"{name} {medians[name]:5.2f} s, {asked[name]} requests" for name in work]
    ratio = medians["icebergpy"] / medians["java"]
    print(f"{what:28} {'  '.join(parts)}  ({ratio:4.2f})", flush=True)


if __name__ == "__main__":
    main()
