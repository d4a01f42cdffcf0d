"""Reads, changes and writes tables through Spark Connect; prints what it saw as a line of JSON.

What a part returns is a value by its name.

    connect.py DIRECTORY TABLE RELATIVE MODES PROGRAMS SEED

`TABLE` is read, which `RELATIVE` names from where this program runs; others are written in
`DIRECTORY`, in which it runs. Rows are changed in each of `MODES`. `PROGRAMS` says how many random
chains of DataFrames are compared, which `SEED` chooses.
"""

from __future__ import annotations

import json
import os
import sys

import connect_aggregates
import connect_definitions
import connect_evolution
import connect_frames
import connect_imports
import connect_procedures
import connect_reads
import connect_row_changes
import connect_sql_rows
import connect_sql_views
import connect_writes
from pyspark.sql import SparkSession


def main(directory: str, table: str, relative: str, modes: str, programs: str, seed: str) -> None:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    seen = {"session": type(spark).__module__, "reads": connect_reads.see(spark, table, relative)}
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    seen["row changes"] = connect_row_changes.see(spark, "changed", modes.split(","))
    seen["writes"] = connect_writes.see(spark, os.path.join(directory, "written"), "written/t")
    seen["imports"] = connect_imports.see(spark, os.path.join(directory, "imports"))
    seen["procedures"] = connect_procedures.see(spark, os.path.join(directory, "called"))
    seen["frames"] = connect_frames.see(
        spark, os.path.join(directory, "frames"), int(programs), seed
    )
    seen["aggregates"] = connect_aggregates.see(spark, os.path.join(directory, "aggregates"))
    seen["evolution"] = connect_evolution.see(spark, os.path.join(directory, "shaped"))
    seen["sql rows"] = connect_sql_rows.see(spark, os.path.join(directory, "sql_rows"))
    seen["definitions"] = connect_definitions.see(spark, os.path.join(directory, "defined"))
    seen["sql of views"] = connect_sql_views.see(spark, os.path.join(directory, "views"))
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
