"""Reads two tables that Java Iceberg wrote, deletes and all, and prints what it finds.

    make demo

The tables ship with the project (`examples/tables`). Both are partitioned by month and had a column
renamed; one has position deletes and equality deletes (format version 2), the other deletion
vectors, equality deletes and a column with a default (format version 3).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import icebergds

TABLES = Path(__file__).resolve().parent / "tables"
# The tables' metadata says that they are at another place than where this checkout has them.
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
    for name in ("orders_v2", "orders_v3"):
        show_table(spark, TABLES / name)
    spark.stop()


def show_table(spark: SparkSession, location: Path) -> None:
    table = icebergds.load_table(str(location), location_map=MOVED)
    heading(f"{location.name}: format version {table.metadata.format_version}")

    load = spark.read.format("icebergpy").option("location-map", json.dumps(MOVED))
    print("All rows, deletes applied:")
    load.load(str(location)).orderBy("order_id").show(truncate=False)

    print("Its snapshots:")
    snapshots = [
        (s.snapshot_id, s.operation, s.summary.get("total-records")) for s in table.snapshots()
    ]
    spark.createDataFrame(snapshots, "snapshot_id bigint, operation string, records string").show()

    print("Rows of each data file, and how many of them are deleted (_file, _deleted):")
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
