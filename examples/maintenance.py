"""Makes a table slow to read, as upserts do, and maintains it.

    make maintenance

Each upsert adds small data files, and keys of deleted rows that reads compare with all older rows.
`table.health()` says what that costs and what to do about it, and `table.maintain()` does it. That
changes no row, neither for readers nor in the change feed, and others may read and write meanwhile.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

import icebergds
from icebergds import Table

BATCHES = 12


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    icebergds.register(spark)
    with tempfile.TemporaryDirectory() as directory:
        run(spark, Path(directory))
    spark.stop()


def run(spark: SparkSession, directory: Path) -> None:
    table = accounts(spark, directory)
    print(f"After {BATCHES} small upserts:\n{table.health()}\n")

    before = table.current_snapshot()
    assert before is not None
    rows = table.scan().to_df(spark).orderBy("id").collect()
    print(f"{table.maintain()}\n")
    print(f"After maintenance:\n{table.health()}\n")

    assert table.scan().to_df(spark).orderBy("id").collect() == rows
    changes = table.changes(before.snapshot_id).to_df(spark).count()
    print(f"{len(rows)} rows as before, and {changes} rows in the change feed of maintenance.")
    expire(table)
    print(f"\nAfter the old snapshots have expired:\n{table.health()}")


def accounts(spark: SparkSession, directory: Path) -> Table:
    """A table of which each batch upserts a hundred rows, old and new ones."""
    catalog = icebergds.load_catalog("lake", warehouse=str(directory))
    table = catalog.create_table("db.accounts", "id bigint, region string, balance bigint")
    for batch in range(BATCHES):
        changed = spark.range(50 * batch, 50 * batch + 100).selectExpr(
            "id", "concat('region-', id % 2) AS region", f"id * 10 + {batch} AS balance"
        )
        table.upsert(changed, ["id"])
    return table


def expire(table: Table) -> None:
    """Deletes the files that only old snapshots need, and those that failed writes have left.

    `maintain` lets snapshots expire after five days. Here they go at once, since nobody reads them.
    """
    print(table.expire_snapshots(older_than=datetime.now(UTC), retain_last=1))
    print(table.remove_orphan_files())


if __name__ == "__main__":
    main()
