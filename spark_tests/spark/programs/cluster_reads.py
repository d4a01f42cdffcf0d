"""Reads a table with executors in processes of their own."""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def see(spark: SparkSession, table: str) -> dict[str, Any]:
    """What two tasks read, one in each executor."""

    def load(**options: str) -> DataFrame:
        return spark.read.format("icebergpy").options(**options).load(table)

    # Weights that make a task of every file.
    spread = load(**{"file-open-cost": str(1 << 30)}).rdd
    rows = spread.map(lambda row: (row.id, row.name, os.getppid())).collect()
    flagged = load(columns="id, _deleted").collect()
    return {
        "tasks": spread.getNumPartitions(),
        # Workers are forked by one process an executor.
        "executors": len({row[2] for row in rows}),
        "rows": sorted(row[:2] for row in rows),
        "deleted": sorted(row.id for row in flagged if row["_deleted"]),
    }
