"""Applies a change feed to a table, and keeps a history of the table's own changes.

    make cdc

The input is like the log of a database: files of rows with what was done to each row (`op`) and a
number that orders them (`lsn`). The first query applies them to the table `accounts`, without
foreachBatch. The second query reads the change feed of `accounts`, which has every deleted row,
whatever kind of delete was used, and appends it to the table `history`. Each batch is committed
exactly once, even if a query dies and is restarted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import icebergds

CHANGES = [
    [("+I", 1, "ann", 100, 1), ("+I", 2, "bob", 50, 2), ("+I", 3, "cleo", 70, 3)],
    [("-U", 1, "ann", 100, 4), ("+U", 1, "ann", 80, 5), ("-D", 3, "cleo", 70, 6)],
    [("+I", 4, "dan", 10, 7), ("+U", 4, "dan", 15, 8), ("+U", 2, "bob", 65, 9)],
]
SCHEMA = "op string, id bigint, name string, balance bigint, lsn bigint"


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
    accounts, history = directory / "accounts", directory / "history"
    empty = spark.createDataFrame([], "id bigint, name string, balance bigint")
    empty.write.format("icebergpy").mode("append").option("create", "true").save(str(accounts))
    for number, rows in enumerate(CHANGES, 1):
        feed = spark.createDataFrame(rows, SCHEMA).coalesce(1)
        feed.write.mode("append").json(str(directory / "feed"))
        apply_changes(spark, directory / "feed", accounts, directory / "checkpoints" / "apply")
        follow(spark, accounts, history, directory / "checkpoints" / "follow")
        print(f"The accounts after {number} of {len(CHANGES)} batches of changes:")
        read(spark, accounts).orderBy("id").show()
    print("Every change of an account, from the change feed of the table:")
    columns = ["_commit_snapshot_id", "id", "_change_type", "name", "balance"]
    changes = read(spark, history)
    order = {s.snapshot_id: at for at, s in enumerate(icebergds.load_table(accounts).snapshots())}
    commits = spark.createDataFrame(
        list(order.items()), "_commit_snapshot_id bigint, commit bigint"
    )
    changes.select(*columns).join(commits, "_commit_snapshot_id").drop(
        "_commit_snapshot_id"
    ).orderBy("commit", "id", "_change_type").show()


def apply_changes(spark: SparkSession, feed: Path, table: Path, checkpoint: Path) -> None:
    """Applies new changes to a table, with equality deletes on its key."""
    query = (
        spark.readStream.schema(SCHEMA)
        .json(str(feed))
        .repartition("id")  # all changes of an account in one task
        .writeStream.format("icebergpy")
        .option("write-operation", "delta")
        .option("row-kind-column", "op")
        .option("upsert-keys", "id")
        .option("upsert-order-by", "lsn")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(table))
    )
    query.awaitTermination()


def follow(spark: SparkSession, table: Path, history: Path, checkpoint: Path) -> None:
    """Appends new changes from the change feed of a table to another table."""
    query = (
        spark.readStream.format("icebergpy")
        .option("read-change-feed", "true")
        .option("stream-from", "earliest")
        .load(str(table))
        .writeStream.format("icebergpy")
        .option("create", "true")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(history))
    )
    query.awaitTermination()


def read(spark: SparkSession, table: Path) -> DataFrame:
    return spark.read.format("icebergpy").load(str(table))


if __name__ == "__main__":
    main()
