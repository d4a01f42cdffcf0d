"""A streaming query that is killed: writes files of rows to a table, one a batch, until the end.

    killed_stream.py DIRECTORY [upsert]

`feed` holds the files, `db/t` is the table, `checkpoint` the query's. It prints one line when the
query has started, and ends when all files are written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(directory: Path, operation: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    rows = spark.readStream.schema("id long, version long").option("maxFilesPerTrigger", "1")
    writer = rows.json(str(directory / "feed")).writeStream.format("icebergpy")
    if operation == "upsert":
        writer = writer.option("write-operation", "upsert").option("upsert-keys", "id")
    query = (
        writer.option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(directory / "db" / "t"))
    )
    print("started", flush=True)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "append")
