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
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    # Spark 4.1 would read only one batch of a table.
    ends_itself = operation != "follow" or not spark.version.startswith("4.1.")
    if ends_itself:
        writer = writer.trigger(availableNow=True)
    query = writer.start(str(directory / "db" / "t"))
    print("started", flush=True)
    if ends_itself:
        query.awaitTermination()
    else:
        query.processAllAvailable()
        query.stop()
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
