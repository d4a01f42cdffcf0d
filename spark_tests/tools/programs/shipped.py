"""Writes, changes and reads a table with a package that was shipped; prints what it saw as JSON.

spark-submit ... shipped.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def _where(_: Iterator[Any]) -> Iterator[str]:
    import icebergds

    yield str(icebergds.__file__)


def main(directory: str, found: str = "") -> None:
    import icebergds

    spark = SparkSession.builder.getOrCreate()
    tasks = spark.sparkContext.parallelize(range(2), 2).mapPartitions(_where).collect()
    seen: dict[str, Any] = {"driver": icebergds.__file__, "executors": sorted(set(tasks))}
    if found:
        plain = f"{directory}/plain"
        write = spark.range(10).write.format("icebergpy").mode("append").option("create", "true")
        write.save(plain)
        seen["found"] = spark.read.format("icebergpy").load(plain).count()
    spark.conf.set("spark.icebergpy.catalog.lake.warehouse", f"{directory}/lake")
    icebergds.register(spark, sql=True)
    spark.sql("CREATE TABLE lake.db.t (id bigint, n bigint)")
    spark.sql("INSERT INTO lake.db.t SELECT id, id FROM range(10)")
    spark.sql("DELETE FROM lake.db.t WHERE id % 5 = 0")
    spark.sql("UPDATE lake.db.t SET n = 0 WHERE id = 1")
    spark.sql("CALL lake.system.rewrite_data_files(table => 'db.t')").collect()
    seen["changed"] = sorted(n for (n,) in spark.sql("SELECT n FROM lake.db.t").collect())
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
