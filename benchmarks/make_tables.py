"""Creates the tables that the benchmarks read, with Java Iceberg.

    . .ci/java_oracle.sh && python benchmarks/make_tables.py DIRECTORY [--rows 10000000]

10 M rows of 8 columns in 4 Parquet files (zstd, row groups of 500,000 rows). The tables share these
files and differ in their deletes: none; position deletes of 1 % of the rows of each file; deletion
vectors of 10 %; equality deletes with 100,000 and 1,000,000 keys, of type long and string, half of
which occur in the data. `DIRECTORY/index.json` has the location and the row count of each table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT / "spark_tests"))

if TYPE_CHECKING:
    from oracles.jvm import Iceberg, IcebergTable

Delete = Callable[["IcebergTable"], object]

FILES = 4
ROWS_OF_A_GROUP = 500_000
_COLUMNS = [
    ("id", "long"),
    ("quantity", "int"),
    ("price", "double"),
    ("score", "double"),
    ("event_time", "timestamptz"),
    ("category", "string"),
    ("reference", "string"),
    ("day", "date"),
]
# 28 bytes, unique for each id.
_REFERENCE = "concat('ref-', lpad(hex(xxhash64(id)), 16, '0'), '-', lpad(id, 8, '0'))"
_ROWS = f"""
    SELECT id,
      cast(pmod(xxhash64(id, 1), 1000) AS int) AS quantity,
      xxhash64(id, 2) / 9223372036854775807D AS price,
      xxhash64(id, 3) / 1e6D AS score,
      timestamp_micros(1700000000000000 + id * 1000000 + pmod(xxhash64(id, 4), 1000000))
        AS event_time,
      concat('category ', pmod(xxhash64(id, 5), 20)) AS category,
      {_REFERENCE} AS reference,
      date_add(DATE'2023-11-14', cast(id DIV 86400 AS int)) AS day
    FROM range(0, {{rows}}, 1, {FILES})
"""
_PROPERTIES = {
    "write.parquet.compression-codec": "zstd",
    # The size of a row group is checked only after so many rows; it is over the limit then.
    "write.parquet.row-group-size-bytes": "1048576",
    "write.parquet.row-group-check-min-record-count": str(ROWS_OF_A_GROUP),
    "write.parquet.row-group-check-max-record-count": str(ROWS_OF_A_GROUP),
    "write.delete.mode": "merge-on-read",
    "write.delete.granularity": "file",
    # Tables share data files, so no table may delete them.
    "gc.enabled": "false",
}
_SPARK = {
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


def main() -> None:
    """Creates the tables in the directory given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--with-java", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    if arguments.with_java:
        _write_with_java(directory, arguments.rows)
        return
    from oracles.java_environment import java_environment

    environment = java_environment()
    if isinstance(environment, str):
        sys.exit(environment)
    if directory.exists() and any(directory.iterdir()):
        sys.exit(f"{directory} is not empty")
    script, rows = str(Path(__file__).resolve()), str(arguments.rows)
    print(environment.run(script, str(directory), "--rows", rows, "--with-java"), end="")


def _write_with_java(directory: Path, rows: int) -> None:
    from oracles.jvm import Iceberg, start_spark

    warehouse, scratch = directory / "warehouse", directory / "scratch"
    for folder in (warehouse, scratch):
        folder.mkdir(parents=True)
    spark = start_spark(warehouse, Path(os.environ["ICEBERGDS_ICEBERG_JAR"]), **_SPARK)
    iceberg = Iceberg(spark, warehouse, scratch)
    base = _timed("base", lambda: _base(iceberg, rows))
    files = [task.file() for task in base.tasks()]
    tables = {"base": _entry(base, {"data_files": [str(file.location()) for file in files]})}

    for name, version, delete in _variants(rows):

        def make(name: str = name, version: int = version, delete: Delete = delete) -> IcebergTable:
            table = _sharing(iceberg, name, version, files)
            delete(table)
            return table

        tables[name] = _entry(_timed(name, make), {})
    index = {"rows": rows, "columns": [name for name, _ in _COLUMNS], "tables": tables}
    (directory / "index.json").write_text(json.dumps(index, indent=1))
    scratch.rmdir()
    spark.stop()


def _variants(rows: int) -> list[tuple[str, int, Delete]]:
    """Name and format version of each table with deletes, and the function that deletes."""
    by_hash = "DELETE FROM {{t}} WHERE pmod(xxhash64(id, 6), 100) < {percent}"
    found: list[tuple[str, int, Delete]] = [
        ("position_deletes_1_percent", 2, lambda t: t.sql(by_hash.format(percent=1))),
        ("deletion_vectors_10_percent", 3, lambda t: t.sql(by_hash.format(percent=10))),
    ]
    for column in ("id", "reference"):
        for count in (100_000, 1_000_000):
            delete = partial(_delete_by_keys, column=column, count=min(count, rows), rows=rows)
            found.append((f"equality_deletes_{count}_by_{column}", 2, delete))
    return found


def _base(iceberg: Iceberg, rows: int) -> IcebergTable:
    table = iceberg.create("base", _COLUMNS, properties=_PROPERTIES)
    return table.sql(f"INSERT INTO {{t}} {_ROWS.format(rows=rows)}")


def _sharing(iceberg: Iceberg, name: str, version: int, files: list[Any]) -> IcebergTable:
    table = iceberg.create(name, _COLUMNS, version=version, properties=_PROPERTIES)
    table.commit_files(table.java.newAppend(), files)
    return table


def _delete_by_keys(table: IcebergTable, column: str, count: int, rows: int) -> None:
    """Adds equality deletes with `count` keys of one column: half in the data, half not."""
    iceberg = table.iceberg
    hits = count // 2
    schema = table.java.schema().select([column])
    keys = iceberg.create(f"keys_{column}_{count}", [(column, str(schema.findType(column)))])
    value = "id" if column == "id" else _REFERENCE
    keys.sql(
        f"INSERT INTO {{t}} SELECT {value} AS {column} FROM (SELECT CASE WHEN id < {hits} "
        f"THEN id * {rows // hits} ELSE {rows} + id END AS id FROM range(0, {count}, 1, 1))"
    )
    records = iceberg.api.data.IcebergGenerics.read(keys.java).build()
    table.row_delta(deletes=[table.write_equality_deletes([column], schema, records)])
    records.close()


def _entry(table: IcebergTable, more: dict[str, Any]) -> dict[str, Any]:
    (counted,) = table.iceberg.sql(f"SELECT count(*) AS n FROM {table.sql_name}")
    return {"location": table.location, "rows": counted["n"], **more}


def _timed(name: str, make: Callable[[], IcebergTable]) -> IcebergTable:
    started = time.monotonic()
    table = make()
    print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    return table


if __name__ == "__main__":
    main()
