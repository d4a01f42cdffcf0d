"""Counts and times what is done with tables of a REST catalog: icebergpy and Java Iceberg.

The server is Java Iceberg's reference server on this machine. Appends of ten rows and batches of
streams take turns in one Spark session; the medians are compared. Then the same go through proxies
that count requests, to the catalog and to S3, and answer each one later.

    python benchmarks/catalogs.py [--runs 7] [--tables 50] [--milliseconds 30]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR and, for S3, ICEBERGDS_AWS_JAR.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from slow_storage import SlowStorage, slow_storage
from small_files import described, measure

import icebergds

sys.path.append(str(Path(__file__).parents[1] / "spark_tests"))
from rest_server import RestServer, rest_server
from s3_server import S3Server, s3_server, storage_properties

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
Work = Callable[[], object]
_ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "s": [str(i) for i in range(10)]})


@dataclass(frozen=True)
class Place:
    """A catalog, as both see it.

    Attributes:
        catalog: the proxy of the server of catalogs, if there is one.
        storage: that of S3.
    """

    name: str
    properties: dict[str, str]
    catalog: SlowStorage | None = None
    storage: SlowStorage | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--milliseconds", type=int, default=30)
    arguments = parser.parse_args()
    jars = [os.environ.get(f"ICEBERGDS_{name}_JAR") for name in ("ICEBERG", "AWS")]
    with rest_server() as rest, s3_server() as s3, far(rest, s3, arguments.milliseconds) as away:
        near = Place("near", {"uri": rest.uri(rest.new_catalog())})
        spark = start([jar for jar in jars if jar], near, away)
        print(f"Spark {spark.version}, medians of {arguments.runs} runs after the first")
        print("on this machine, files on the local disk:")
        for name, works in works_on(spark, near, jars[0] is not None).items():
            print(described(name, measure(works, arguments.runs)), flush=True)
        load_many(near, arguments.tables, arguments.runs)
        print(f"each request to the catalog and to S3 takes {arguments.milliseconds} ms more:")
        for name, works in works_on(spark, away, all(jars)).items():
            for who, work in works.items():
                print(f"{name:20} {who}: {counted(work, away, arguments.runs)}", flush=True)
        spark.stop()


@contextmanager
def far(rest: RestServer, s3: S3Server, milliseconds: int) -> Iterator[Place]:
    """A catalog whose tables are in S3, both by way of proxies."""
    seconds = milliseconds / 1000
    with slow_storage(rest.port, seconds) as catalog, slow_storage(s3.atomic_port, seconds) as far:
        behind = {
            **storage_properties(s3.atomic_port),
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": "us-east-1",
            "warehouse": s3.new_location(),
        }
        uri = rest.uri(rest.new_catalog(**behind), catalog.port)
        yield Place("far", {"uri": uri, **storage_properties(far.port)}, catalog, far)


def start(jars: list[str], *places: Place) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    for place in places:
        prefix = f"spark.sql.catalog.java_{place.name}"
        builder = builder.config(prefix, "org.apache.iceberg.spark.SparkCatalog")
        java = {**place.properties, "type": "rest", "client.region": "us-east-1"}
        if place.storage is not None:
            java["io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        for key, value in java.items():
            builder = builder.config(f"{prefix}.{key}", value)
        for key, value in place.properties.items():
            builder = builder.config(f"spark.icebergpy.catalog.{place.name}.{key}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    icebergds.register(spark)
    return spark


def works_on(spark: SparkSession, place: Place, with_java: bool) -> dict[str, dict[str, Work]]:
    """What is timed, by its name and by who does it."""
    catalog = icebergds.load_catalog(place.name)
    catalog.create_namespace("db")
    for name in ("ours", "alone", "java", "streamed", "streamed_java"):
        catalog.create_table(f"db.{name}", "id bigint, s string")
    rows = spark.createDataFrame(_ROWS).coalesce(1)
    table = catalog.load_table("db.alone")
    works: dict[str, dict[str, Work]] = {
        "load a table": {"ours": lambda: catalog.load_table("db.ours")},
        "append 10 rows": {
            "ours": lambda: (
                rows.write.format("icebergpy").mode("append").saveAsTable(f"{place.name}.db.ours")
            ),
            "without Spark": lambda: table.append(_ROWS),
        },
        "batch of a stream": {"ours": lambda: stream(spark, place, "icebergpy", "db.streamed")},
    }
    if with_java:
        java = f"java_{place.name}.db"
        works["append 10 rows"]["java"] = lambda: rows.writeTo(f"{java}.java").append()
        works["batch of a stream"]["java"] = lambda: stream(
            spark, place, "iceberg", f"{java}.streamed_java"
        )
        loaded = spark._jvm.org.apache.iceberg.spark.Spark3Util
        works["load a table"]["java"] = lambda: loaded.loadIcebergTable(
            spark._jsparkSession, f"{java}.java"
        ).refresh()
    return works


def stream(spark: SparkSession, place: Place, source: str, table: str) -> None:
    """A query of one batch."""
    with tempfile.TemporaryDirectory() as directory:
        rows: DataFrame = (
            spark.readStream.format("rate-micro-batch")
            .options(rowsPerBatch=10, numPartitions=1)
            .load()
            .selectExpr("value as id", "cast(value as string) as s")
        )
        writer = rows.writeStream.format(source).option("checkpointLocation", directory)
        if source == "icebergpy":
            query = writer.option("catalog", place.name).trigger(once=True).start(table)
        else:
            query = writer.trigger(once=True).toTable(table)
        query.awaitTermination()


def load_many(place: Place, tables: int, runs: int) -> None:
    catalog = icebergds.load_catalog(place.name)
    names = [f"db.many{i}" for i in range(tables)]
    for name in names:
        catalog.create_table(name, "id bigint, s string")

    def one_by_one() -> None:
        for name in names:
            catalog.load_table(name)

    def side_by_side() -> None:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(catalog.load_table, names))

    times = measure({"one by one": one_by_one, "side by side": side_by_side}, runs)
    print(described(f"load {tables} tables", times), flush=True)


def counted(work: Work, place: Place, runs: int) -> str:
    """How long it takes, and which requests it sends."""
    assert place.catalog is not None, "requests are counted by proxies"
    assert place.storage is not None, "requests are counted by proxies"
    work()
    taken = []
    for _ in range(runs):
        place.catalog.reset()
        place.storage.reset()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    told = [
        f"{sum(proxy.requests.values())} to {what} "
        f"({', '.join(f'{n} {method}' for method, n in sorted(proxy.requests.items()))})"
        for what, proxy in (("the catalog", place.catalog), ("S3", place.storage))
    ]
    return f"{statistics.median(taken):5.2f} s, requests: {', '.join(told)}"


if __name__ == "__main__":
    main()
