"""Deletes and overwrites by conditions through Spark Connect; prints what they commit as JSON.

connect_conditions.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parent.parent))
import column_conditions


def main(directory: str) -> None:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    print(json.dumps(column_conditions.see(spark, directory)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
