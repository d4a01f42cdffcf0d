"""A streaming query that is killed: it fills a table from files of rows, or from another table.

    killed_stream.py DIRECTORY append|upsert|follow MASTER

`feed` holds the files, one a batch, or `db/feed` is the table that is followed; `db/t` is the table
that is filled, `checkpoint` the query's. It prints one line when the query has started, and ends
when all is written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def main(directory: Path, operation: str, master: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.task.maxFailures", "100")
        .config("spark.deploy.maxExecutorRetries", "-1")
        .getOrCreate()
    )
    writer = rows(spark, directory, operation).writeStream.format("icebergpy")
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


def rows(spark: SparkSession, directory: Path, operation: str) -> DataFrame:
    if operation == "follow":
        source = spark.readStream.format("icebergpy").option("stream-from", "earliest")
        source = source.option("streaming-max-files-per-micro-batch", "1")
        return source.load(str(directory / "db" / "feed"))
    source = spark.readStream.schema("id long, version long").option("maxFilesPerTrigger", "1")
    return source.json(str(directory / "feed"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
