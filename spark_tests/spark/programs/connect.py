"""Reads, changes and writes tables through Spark Connect; prints what it saw as a line of JSON.

Each part has a session of its own of one server. What a part returns is a value by its name.

    connect.py DIRECTORY TABLE RELATIVE

`TABLE` is read, which `RELATIVE` names from where this program runs; others are written in
`DIRECTORY`, in which it runs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import connect_reads
import connect_row_changes
import connect_writes
from pyspark.sql import SparkSession


def main(directory: str, table: str, relative: str) -> None:
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    server = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    seen = {}
    with session("UTC") as spark:
        seen["reads"] = connect_reads.see(spark, table, relative)
    with session("America/New_York") as spark:
        seen["row changes"] = connect_row_changes.see(spark, "changed")
    with session("America/New_York") as spark:
        written = os.path.join(directory, "written")
        seen["writes"] = connect_writes.see(spark, written, "written/t")
    print(json.dumps(seen), flush=True)
    server.stop()


@contextmanager
def session(time_zone: str) -> Iterator[SparkSession]:
    """Another session of the server, the active one until the next."""
    builder = SparkSession.builder.remote("sc://localhost")
    spark = builder.config("spark.sql.session.timeZone", time_zone).create()
    yield spark
    # To stop it would be to stop the server.
    spark.client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
