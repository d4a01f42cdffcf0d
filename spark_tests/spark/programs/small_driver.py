"""Runs tasks whose results hardly fit into the driver's JVM; prints which came as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from icebergds.spark.save_job import write_in_tasks

_TASKS = 16
_BYTES = 22_000_000


def main() -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.memory", "512m")
        .getOrCreate()
    )
    results: list[Any] = write_in_tasks(spark.range(0, _TASKS, 1, _TASKS), large_result, lambda: 0)
    print(json.dumps({"tasks": [number for number, _ in results]}), flush=True)
    spark.stop()


def large_result(batches: Iterable[pa.RecordBatch], *, partition_id: int, attempt_id: int) -> Any:
    for _ in batches:
        pass
    return partition_id, bytes(_BYTES)


if __name__ == "__main__":
    main()
