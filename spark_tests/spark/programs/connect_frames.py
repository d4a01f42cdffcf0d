"""Does the same at random with DataFrames of a load and of plain Parquet, through Spark Connect."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[1]))

from frame_programs import filled, program, run

from icebergds import register


def see(spark: SparkSession, directory: str, programs: int, seed: str) -> dict[str, Any]:
    """What differed, the class of frames, and how many files conditions left."""
    register(spark)
    table = filled(Path(directory, "lake"), 3)
    plain = str(Path(directory, "plain"))
    spark.createDataFrame(table.scan().to_arrow()).write.parquet(plain)
    chance, different = random.Random(seed), []
    for _ in range(programs):
        steps = program(chance, 8)
        expected = run(steps, spark.read.parquet(plain))
        found = run(steps, spark.read.format("icebergpy").load(table.location()))
        spark.catalog.clearCache()
        if found != expected:
            different.append([expected, found])
    df = spark.read.format("icebergpy").load(table.location())
    narrow = df.where("p in (0, 3)").filter(df["id"] > 9)
    return {
        "different": different,
        "class": type(df).__name__,
        "other class": type(df.limit(1)).__name__,
        "files": [len(df.inputFiles()), len(narrow.inputFiles())],
        "by Columns": len(df.where((df["p"] == 3) | df["p"].isNull()).inputFiles()),
        "by computed columns": df.select("id", (df["p"] + 1).alias("p")).where("p = 4").count(),
        "schema": df.select("id", "s").schema.simpleString(),
    }
