"""Times small queries in SQL on S3 whose answers come late: icebergds and Java Iceberg.

The queries and tables are those of `points.py`, the server and the sessions those of `tpch_s3.py`,
whose requirements hold.

    python benchmarks/points_s3.py [--rows 1000000] [--runs 5] [--queries count,limit]
        [--milliseconds 30]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from points import QUERIES, asked, described, fill
from slow_storage import slow_storage
from storage import catalog_at
from tpch_s3 import start

from icebergds import register

sys.path.append(str(Path(__file__).parents[1] / "spark_tests"))
from s3_server import s3_server

TABLES = ("events", "wide", "days")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--queries", type=lambda text: text.split(","), default=list(QUERIES))
    parser.add_argument("--milliseconds", type=int, default=30)
    options = parser.parse_args()
    with s3_server() as server, tempfile.TemporaryDirectory() as directory:
        location = server.new_location()
        # On this port commits are exclusive.
        catalog = catalog_at(location, server.atomic_port, "filled")
        fill(catalog, options.rows)
        with slow_storage(server.racing_port, options.milliseconds / 1000) as storage:
            spark = start(location, storage.port, Path(directory))
            register(spark, sql=True)
            for name in TABLES:
                metadata = catalog.load_table(f"db.{name}").metadata_location
                spark.sql(f"CALL java.system.register_table('db.{name}', '{metadata}')")
            print(f"Spark {spark.version}, {options.rows:,} rows, median of {options.runs} runs")
            for name in options.queries:
                times = asked(spark, QUERIES[name], ["ours", "java"], options.runs)
                print(described(name, times), flush=True)
            spark.stop()


if __name__ == "__main__":
    main()
