"""Times small queries in SQL, where what is left unread decides: icebergds and Java Iceberg.

    python benchmarks/points.py DIRECTORY [--rows 10000000] [--runs 5] [--queries count,limit]
        [--tables events,files,vectors,keys] [--connect]

The table has 100 days of rows, partitioned by day; another one has 300 columns. Both answer each
query in turns in one session, from the text of the query to its rows, and must answer alike. Prints
medians. Other tables of events have 10,000 files, deletion vectors of 1 % of the rows, or equality
deletes of 100,000 keys; they are asked what is about events alone.

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from icebergds import Catalog, load_catalog, register

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
JAR = "ICEBERGDS_ICEBERG_JAR"
DAYS = 100
COLUMNS = 300
COLUMNS_OF_EVENTS = "id bigint, ts timestamp, day date, k int, v double, s string"
FIRST_DAY = date(2024, 1, 1)
DAY_US = 86_400_000_000
QUERIES = {
    "count": "SELECT count(*) FROM {}.db.events",
    "min, max": "SELECT min(ts), max(ts), min(id), max(id) FROM {}.db.events",
    "count of a day": "SELECT count(*) FROM {}.db.events WHERE day = DATE '2024-02-03'",
    "counts by day": "SELECT day, count(*), max(id) FROM {}.db.events GROUP BY day ORDER BY day",
    "limit": "SELECT * FROM {}.db.events LIMIT 10",
    "top": "SELECT * FROM {}.db.events ORDER BY ts DESC LIMIT 10",
    "days": "SELECT count(DISTINCT day) FROM {}.db.events",
    "join": "SELECT count(*), sum(v) FROM {0}.db.events e JOIN {0}.db.days d ON e.day = d.day "
    "WHERE d.kind = 'rare'",
    "exists": "SELECT count(*), sum(v) FROM {0}.db.events e WHERE EXISTS (SELECT 1 FROM "
    "{0}.db.days d WHERE d.day = e.day AND d.kind = 'rare')",
    "3 columns": "SELECT sum(c1), sum(c150), sum(c299) FROM {}.db.wide",
    "version": "SELECT count(*), sum(v) FROM {}.db.events VERSION AS OF 'half' "
    "WHERE day = DATE '2024-01-03'",
    "metadata": "SELECT count(*) FROM {}.db.events.files",
    "row": "SELECT * FROM {}.db.events WHERE id = 123456",
}
OF_EVENTS = ("count", "min, max", "count of a day", "counts by day", "limit", "top", "days", "row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--queries", type=lambda text: text.split(","), default=list(QUERIES))
    parser.add_argument("--tables", type=lambda text: text.split(","), default=["events"])
    parser.add_argument("--connect", action="store_true")
    options = parser.parse_args()
    warehouse = (options.directory / f"points-{options.rows}").absolute()
    catalog = load_catalog("points", warehouse=str(warehouse))
    fill(catalog, options.rows)
    spark = start(warehouse, through_connect=options.connect)
    for table in options.tables:
        fill_events(spark, catalog, table, options.rows)
    ways = ["lake", *(["java"] if JAR in os.environ else [])]
    print(f"Spark {spark.version}, {options.rows:,} rows, median of {options.runs} runs")
    for table in options.tables:
        for name in options.queries:
            query = QUERIES[name]
            if table == "events" or name in OF_EVENTS:
                query = query.replace(".db.events", f".db.{table}")
                shown = name if table == "events" else f"{table}: {name}"
                print(described(shown, asked(spark, query, ways, options.runs)), flush=True)
    spark.stop()


def start(warehouse: Path, *, through_connect: bool) -> SparkSession:
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if through_connect else builder.master("local[2]")
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.icebergpy.catalog.lake.warehouse", str(warehouse))
    )
    if JAR in os.environ:
        builder = (
            builder.config("spark.jars", os.environ[JAR])
            .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.java.type", "hadoop")
            .config("spark.sql.catalog.java.warehouse", str(warehouse))
        )
    spark = builder.getOrCreate()
    if not through_connect:
        spark.sparkContext.setLogLevel("ERROR")
    register(spark, sql=True)
    return spark


def fill(catalog: Catalog, rows: int) -> None:
    """Makes the tables, once a directory."""
    if catalog.table_exists("db.days"):
        return
    catalog.create_namespace_if_not_exists("db")
    events = catalog.create_table("db.events", COLUMNS_OF_EVENTS, partition_spec="day")
    half = DAYS // 2
    events.append(rows_of(rows, 0, half))
    events.manage_snapshots().create_tag("half").commit()
    events.append(rows_of(rows, half, DAYS))
    wide = catalog.create_table("db.wide", ", ".join(f"c{at} bigint" for at in range(COLUMNS)))
    numbers = pa.array(np.arange(rows // 50))
    wide.append(pa.table({f"c{at}": numbers for at in range(COLUMNS)}))
    days = [FIRST_DAY + timedelta(days=at) for at in range(DAYS)]
    kinds = ["rare" if at % 40 == 7 else "common" for at in range(DAYS)]
    catalog.create_table("db.days", "day date, kind string").append(
        pa.table({"day": days, "kind": kinds})
    )


def fill_events(spark: SparkSession, catalog: Catalog, name: str, rows: int) -> None:
    """Makes another table of events, once a directory."""
    if catalog.table_exists(f"db.{name}"):
        return
    spec = "day, bucket(100, id)" if name == "files" else "day"
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    if name == "vectors":
        properties["format-version"] = "3"
    table = catalog.create_table(
        f"db.{name}", COLUMNS_OF_EVENTS, partition_spec=spec, properties=properties
    )
    table.append(rows_of(rows // 50 if name == "files" else rows, 0, DAYS))
    match name:
        case "vectors":
            spark.sql("DELETE FROM lake.db.vectors WHERE id % 100 = 3")
        case "keys":
            table.delete_keys(pa.table({"id": np.arange(0, rows, rows // 100_000)}), ["id"])


def rows_of(rows: int, first: int, end: int) -> pa.Table:
    """The rows of some of the days, in the order of time within each day."""
    each = rows // DAYS
    ids = np.arange(first * each, end * each)
    start = (FIRST_DAY - date(1970, 1, 1)).days
    days = start + ids // each
    random = np.random.default_rng(first)
    return pa.table(
        {
            "id": ids,
            "ts": pa.array(days * DAY_US + ids % each * (DAY_US // each)).cast(
                pa.timestamp("us", "UTC")
            ),
            "day": pa.array(days.astype(np.int32)).cast(pa.date32()),
            "k": random.integers(0, 1000, len(ids), np.int32),
            "v": random.random(len(ids)),
            "s": pa.array(random.integers(0, 10**9, len(ids))).cast(pa.string()),
        }
    )


def asked(spark: SparkSession, query: str, ways: list[str], runs: int) -> Mapping[str, float]:
    """The medians of the seconds that each way takes for a query."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    # The first turn compiles classes of the JVM.
    for turn in range(runs + 1):
        answers = []
        for way in ways:
            started = time.perf_counter()
            rows = spark.sql(query.format(way)).collect()
            taken = time.perf_counter() - started
            answers.append(rows)
            if turn:
                seconds[way].append(taken)
        if "LIMIT 10" not in query:
            shown = [
                [[f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows]
                for rows in answers
            ]
            assert all(rows == shown[0] for rows in shown), f"{query}: {shown}"
    return {way: statistics.median(taken) for way, taken in seconds.items()}


def described(name: str, times: Mapping[str, float]) -> str:
    ours = next(iter(times.values()))
    ratio = f"  {ours / times['java']:5.2f}" if "java" in times else ""
    return (
        f"{name:24} " + "  ".join(f"{way} {taken:6.3f} s" for way, taken in times.items()) + ratio
    )


if __name__ == "__main__":
    main()
