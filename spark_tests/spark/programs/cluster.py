"""Reads, changes and writes tables in a cluster; prints what it saw as a line of JSON.

Executors are processes of their own, of which some die. Nothing is registered: Spark finds the
format by itself. What a part returns is a value by its name.

    cluster.py DIRECTORY TABLE all|few

`TABLE` is read, others are written in `DIRECTORY`. The last says how much is killed.
"""

from __future__ import annotations

import json
import os
import sys

import cluster_reads
import cluster_row_changes
import cluster_writes
from pyspark.sql import SparkSession


def main(directory: str, table: str, kills: str) -> None:
    kills_all = kills == "all"
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.executor.memory", "512m")
        .config("spark.task.maxFailures", "2")
        .config("spark.sql.shuffle.partitions", "2")
        # Executors are started without the driver's environment.
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .getOrCreate()
    )
    seen = {
        "reads": cluster_reads.see(spark, table),
        "row changes": cluster_row_changes.see(
            spark, os.path.join(directory, "changed"), kills_all=kills_all
        ),
        "writes": cluster_writes.see(
            spark, os.path.join(directory, "written"), kills_all=kills_all
        ),
    }
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
