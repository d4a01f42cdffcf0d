"""The table of the tour, and the plain table of DuckDB that says which rows it should have."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import icebergds

SCHEMA = """
    id bigint NOT NULL COMMENT 'the ride', day date, city string, fare decimal(9,2),
    started timestamp, tags array<string>, stop struct<name: string, zone: int>
"""
# Rides with the ids of a range, in the SQL of DuckDB. Every third id is of the same day.
RIDES = """
    SELECT i AS id, DATE '2026-03-01' + (i % 3)::INTEGER AS day, 'city-' || i % 5 AS city,
           (5 + i * 0.37)::DECIMAL(9, 2) AS fare,
           TIMESTAMPTZ '2026-03-01 08:00:00Z' + to_minutes(37 * i) AS started,
           CASE WHEN i % 4 > 0 THEN ['tag', 'tag-' || i] END AS tags,
           {{'name': 'stop-' || i % 2, 'zone': (i % 7)::INTEGER}} AS stop
    FROM range({first}, {end}, {step}) AS numbers(i)
"""


class Tour:
    """The Iceberg table `tour.rides`, and the DuckDB table `rides`, which says what is in it."""

    def __init__(self, spark: SparkSession, directory: Path, format_version: str) -> None:
        self.spark = spark
        self.directory = directory
        self.duckdb = duckdb_with_iceberg()
        self.comparisons = 0
        self.models: dict[int, str] = {}  # the model as of each snapshot of main, oldest first

        spark.conf.set("spark.icebergpy.catalog.lake.warehouse", str(directory / "lake"))
        icebergds.register(spark)
        mode = "merge-on-read" if format_version == "3" else "copy-on-write"
        modes = {f"write.{change}.mode": mode for change in ("delete", "update", "merge")}
        self.catalog = icebergds.load_catalog("lake")
        self.table = self.catalog.create_table(
            "tour.rides",
            SCHEMA,
            partition_spec=["day"],
            sort_order="id",
            properties={"format-version": format_version, **modes},
        )
        self.location = self.table.location()
        self.duckdb.execute(f"CREATE TABLE rides AS {RIDES.format(first=0, end=0, step=1)}")

    def rides(self, first: int, end: int, columns: str = "*", step: int = 1) -> DataFrame:
        """New rides as a DataFrame, and as the table `new` in DuckDB."""
        query = f"SELECT {columns} FROM ({RIDES.format(first=first, end=end, step=step)})"
        self.duckdb.execute(f"CREATE OR REPLACE TABLE new AS {query}")
        return self.spark.createDataFrame(self.rows("FROM new"))

    def rows(self, query: str) -> pa.Table:
        return self.duckdb.sql(query).to_arrow_table()

    def count(self, query: str) -> int:
        """The number of rows of a table, or of a table WHERE a condition holds, in the model."""
        return self.duckdb.sql(f"FROM {query}").shape[0]

    def load(self, **options: Any) -> DataFrame:
        """`load(snapshot_id=1)` sets the option `snapshot-id`."""
        named = {name.replace("_", "-"): value for name, value in options.items()}
        return self.spark.read.format("icebergpy").options(**named).load(self.location)

    def done(self, step: str, *changes: str) -> None:
        """Makes the changes of a step to the model, and compares the table with it."""
        for change in changes:
            self.duckdb.execute(change)
        self.table.refresh()
        head = self.table.current_snapshot()
        assert head is not None
        self.models[head.snapshot_id] = model = f"model_{len(self.models)}"
        self.duckdb.execute(f"CREATE OR REPLACE TABLE {model} AS FROM rides")
        self.same(step, self.table.scan().to_df(self.spark).toArrow(), "FROM rides")
        self.duckdb_reads(step, self.table, "FROM rides")
        print(f"{step}: {self.count('rides')} rows")

    def duckdb_reads(self, step: str, table: icebergds.Table, model: str) -> None:
        scan = f"FROM iceberg_scan('{table.metadata_location}')"
        self.same(f"{step}, read by DuckDB", self.rows(scan), model)

    def same(self, what: str, found: pa.Table | DataFrame, model: str) -> None:
        """Ends the tour if rows are not those of a query on the model, in whatever order."""
        rows = found if isinstance(found, pa.Table) else found.toArrow()
        read, expected = self.duckdb.from_arrow(rows), self.duckdb.sql(model)
        columns = [list(zip(r.columns, map(str, r.types), strict=True)) for r in (read, expected)]
        if columns[0] != columns[1]:
            sys.exit(f"{what}: columns are {columns[0]}, should be {columns[1]}")
        self.duckdb.register("found", rows)
        different = self.duckdb.sql(
            f"SELECT 'unexpected' AS row, * FROM (FROM found EXCEPT ALL ({model})) UNION ALL "
            f"SELECT 'missing' AS row, * FROM (({model}) EXCEPT ALL FROM found)"
        )
        if different.shape[0]:
            sys.exit(f"{what}: {different.shape[0]} rows differ\n{different}")
        self.comparisons += 1


def start(stream: DataFrame, table: str, checkpoint: Path, options: dict[str, str]) -> None:
    query = (
        stream.writeStream.format("icebergpy")
        .options(**options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()


def duckdb_with_iceberg() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for extension in ("avro", "iceberg"):
        package = find_spec(f"duckdb_extension_{extension}")
        assert package is not None
        assert package.origin is not None
        (library,) = Path(package.origin).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{library}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
