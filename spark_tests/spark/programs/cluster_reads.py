"""Reads a table with executors in processes of their own; prints what it saw as a line of JSON.

Nothing is registered: Spark finds the format by itself.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def main(table: str) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        # Executors are started without the driver's environment.
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .getOrCreate()
    )

    def load(**options: str) -> DataFrame:
        return spark.read.format("icebergpy").options(**options).load(table)

    # Weights that make a task of every file.
    spread = load(**{"file-open-cost": str(1 << 30)}).rdd
    rows = spread.map(lambda row: (row.id, row.name, os.getppid())).collect()
    flagged = load(columns="id, _deleted").collect()
    seen: dict[str, Any] = {
        "tasks": spread.getNumPartitions(),
        # Workers are forked by one process an executor.
        "executors": len({row[2] for row in rows}),
        "rows": sorted(row[:2] for row in rows),
        "deleted": sorted(row.id for row in flagged if row["_deleted"]),
    }
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
