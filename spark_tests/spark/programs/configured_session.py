"""Reads and writes a table by name without a call of icebergds; prints what it saw as JSON.

    configured_session.py DISCOVERY WAREHOUSE

`DISCOVERY` is the directory whose files installation puts beside the package.
"""

from __future__ import annotations

import json
import site
import sys


def main(discovery: str, warehouse: str) -> None:
    # What Python does at its start with the directories that packages are installed in.
    site.addsitedir(discovery)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.icebergpy.register", "true")
        .config("spark.icebergpy.catalog.lake.warehouse", warehouse)
        .getOrCreate()
    )
    spark.sql("CREATE TABLE lake.db.t (id bigint)")
    spark.range(2).writeTo("lake.db.t").append()
    seen = {
        "rows": len(spark.sql("SELECT * FROM lake.db.t").collect()),
        "new session": len(spark.newSession().table("lake.db.t").collect()),
    }
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
