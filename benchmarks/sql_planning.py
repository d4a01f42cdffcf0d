"""Times how long SQL takes to plan: a day among many files, and a query of many references.

    python benchmarks/sql_planning.py [DIRECTORY] [--files 100000] [--runs 5]

A day of 1,000 files is planned in a table of as many files as given, by the table's name and by a
common table expression, and in a table of its own. The query of 20 references has 80 conditions;
its tables are empty. Nothing is run. Prints medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from maintenance_manifests import FIRST_DAY, create_table
from pyspark.sql import DataFrame, SparkSession

from icebergds import load_catalog, load_table, register, sql

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_PER_DAY = 1000
_PER_MANIFEST = 50_000
_REFERENCES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path(".cache/bench/sql-planning")
    )
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    warehouse = options.directory.absolute()
    for name, files in (("one", _PER_DAY), ("all", options.files)):
        _fill(warehouse / "db" / name, files)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.icebergpy.catalog.lake.warehouse", str(warehouse))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    for name in ("one", "all"):
        files = load_table(str(warehouse / "db" / name)).inspect.files().num_rows
        for how, query in (("by name", _day(name)), ("by a CTE", _day_of_common_table(name))):
            taken = _median(lambda query=query: _planned(sql(spark, query)), options.runs)
            print(f"a day of {_PER_DAY:,} files among {files:9,}, {how}: {taken:.2f} s")
    taken = _median(lambda: sql(spark, _many_references(warehouse)), options.runs)
    print(f"a query of {_REFERENCES} references and {4 * _REFERENCES} conditions: {taken:.2f} s")
    spark.stop()


def _fill(location: Path, files: int) -> None:
    if (location / "metadata" / "version-hint.text").exists():
        return
    manifests = max(1, files // _PER_MANIFEST)
    create_table(str(location), manifests, files, 4, root=str(location), files_per_day=_PER_DAY)
    table = load_table(str(location))
    [first, *others] = [task.file.file_path for task in table.scan(_condition()).plan_files()]
    Path(first).parent.mkdir(parents=True)
    fields = [
        pa.field(each.name, type_, metadata={"PARQUET:field_id": str(each.field_id)})
        for each, type_ in zip(
            table.schema().fields, (pa.timestamp("us"), *[pa.int64()] * 3), strict=True
        )
    ]
    schema = pa.schema(fields)
    pq.write_table(schema.empty_table(), first)
    for path in others:
        os.link(first, path)


def _condition() -> str:
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=FIRST_DAY)
    return f"ts >= '{day:%Y-%m-%d}' and ts < '{day + timedelta(days=1):%Y-%m-%d}'"


def _day(name: str) -> str:
    return f"SELECT sum(c2) FROM lake.db.{name} WHERE {_condition()}"


def _day_of_common_table(name: str) -> str:
    return f"WITH c AS (SELECT * FROM lake.db.{name}) SELECT sum(c2) FROM c WHERE {_condition()}"


def _many_references(warehouse: Path) -> str:
    catalog = load_catalog("lake", warehouse=str(warehouse))
    if not catalog.table_exists("db.empty"):
        catalog.create_table("db.empty", "a int, b string, c date, d double")
    joined = " JOIN ".join(
        f"lake.db.empty t{at}" + (f" ON t{at}.a = t{at - 1}.a" if at else "")
        for at in range(_REFERENCES)
    )
    conditions = " AND ".join(
        f"t{at}.a > {at} AND t{at}.b LIKE 'x%' AND t{at}.c < DATE '2024-01-01' AND t{at}.d <> 0.5"
        for at in range(_REFERENCES)
    )
    return f"SELECT count(*) FROM {joined} WHERE {conditions}"


def _planned(df: DataFrame) -> None:
    df._jdf.queryExecution().executedPlan()


def _median(action: Callable[[], object], runs: int) -> float:
    seconds = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    # The first one compiles classes of the JVM.
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    main()
