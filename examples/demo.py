"""Writes a table, changes its rows, travels in time; then reads tables that Java Iceberg wrote.

    make demo

The first table is created in a temporary directory. The other two ship with the project
(`examples/tables`). Both are partitioned by month and have a renamed column. One has position
deletes and equality deletes (format version 2); the other has deletion vectors, equality deletes
and a column with a default value (format version 3).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession, functions as f

import icebergds

TABLES = Path(__file__).resolve().parent / "tables"
# The metadata of the tables contains this location; the files are in this checkout.
MOVED = {"file:///warehouse/demo/": f"{TABLES}/"}


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    icebergds.register(spark, fast_writes=True)
    with tempfile.TemporaryDirectory() as directory:
        write_table(spark, f"{directory}/rides")
    for name in ("orders_v2", "orders_v3"):
        show_table(spark, TABLES / name)
    spark.stop()


def write_table(spark: SparkSession, location: str) -> None:
    heading("rides: created, appended to, partly overwritten, upserted, deleted from")

    print("The first write creates the table, partitioned by day:")
    rides = spark.sql(
        """
        SELECT id, concat('city-', id % 3) AS city, round(5 + id / 7, 2) AS fare,
               timestamp'2026-03-01 08:00:00' + make_dt_interval(0, 9 * cast(id AS int)) AS started
        FROM range(8)
        """
    )
    creation = {
        "create": "true",
        "partition-by": "days(started)",
        "format-version": "3",
        "table-property.write.delete.mode": "merge-on-read",
    }
    rides.write.format("icebergpy").mode("append").options(**creation).save(location)
    spark.read.format("icebergpy").load(location).orderBy("id").show(truncate=False)

    print("More rides are appended; then a single ride replaces the first day:")
    table = icebergds.load_table(location)
    table.append(rides.selectExpr("id + 100 AS id", "city", "fare", "started"))
    correction = rides.where("id = 0").selectExpr("id", "'city-0' AS city", "0D AS fare", "started")
    table.dynamic_partition_overwrite(correction)
    table.scan().to_df(spark).orderBy("started", "id").show(30, truncate=False)

    print("Two rides are upserted, one known and one new; then the rides of a city are deleted:")
    known = rides.where("id = 5").selectExpr("id", "city", "99D AS fare", "started")
    new = rides.where("id = 5").selectExpr("id + 1000 AS id", "city", "9D AS fare", "started")
    print(table.upsert(known.union(new), ["id", "started"]))
    print(table.delete("city = 'city-1'"), end="\n\n")
    table.scan().to_df(spark).orderBy("started", "id").show(30, truncate=False)

    print("Its snapshots:")
    show_snapshots(spark, table)
    first, second, *_ = table.snapshots()
    for snapshot in (first, second):
        count = table.scan(snapshot_id=snapshot.snapshot_id).to_df(spark).count()
        print(f"Rows as of snapshot {snapshot.snapshot_id}: {count}")


def show_snapshots(spark: SparkSession, table: icebergds.Table) -> None:
    snapshots = [
        (s.snapshot_id, s.operation, s.summary.get("total-records")) for s in table.snapshots()
    ]
    spark.createDataFrame(snapshots, "snapshot_id bigint, operation string, records string").show()


def show_table(spark: SparkSession, location: Path) -> None:
    table = icebergds.load_table(str(location), location_map=MOVED)
    heading(f"{location.name}: format version {table.metadata.format_version}")

    load = spark.read.format("icebergpy").option("location-map", json.dumps(MOVED))
    print("All rows, deletes applied:")
    load.load(str(location)).orderBy("order_id").show(truncate=False)

    print("Its snapshots:")
    show_snapshots(spark, table)

    print("Rows in each data file, and how many of them are deleted (_file, _deleted):")
    files = load.option("columns", "_file, _deleted").load(str(location))
    files.groupBy(f.regexp_extract("_file", "[^/]+/[^/]+$", 0).alias("file")).agg(
        f.count("*").alias("rows"), f.sum(f.col("_deleted").cast("int")).alias("deleted")
    ).orderBy("file").show(truncate=False)

    condition = "amount > 150 and status = 'shipped'"
    print(f"Only two columns, where {condition}:")
    scan = table.scan(filter=condition, columns=["order_id", "customer"])
    scan.to_df(spark).orderBy("order_id").show()

    first = table.snapshots()[0].snapshot_id
    count = table.scan(snapshot_id=first).to_df(spark).count()
    print(f"Rows in its first snapshot, {first}: {count}\n")


def heading(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}\n")


if __name__ == "__main__":
    main()
