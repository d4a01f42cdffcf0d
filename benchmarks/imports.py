"""Times `add_files`: Parquet files of a folder become those of a table, in one commit.

    python benchmarks/imports.py DIRECTORY [--files 10000] [--columns 10] [--runs 3]

Each run is of a new table, partitioned by a column whose values are in the names of folders. All
take turns in one session; the medians are compared. Seconds depend on the machine, ratios much
less.

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from small_files import described, measure
from write import start

from icebergds import Catalog, load_catalog

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_ROWS = 100
_FOLDERS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    schema = write_files(directory / "landing", arguments.files, arguments.columns)
    adders = {"ours": Adder(directory, schema).add}
    if jar is not None:
        spark = start(jar, directory / "java", False)
        adders["java"] = JavaAdder(spark, directory, schema).add
        print(f"Spark {spark.version}, ", end="")
    print(f"{arguments.files} files, median of {arguments.runs} runs after the first")
    print(described("add_files", measure(adders, arguments.runs)))


def write_files(landing: Path, files: int, columns: int) -> str:
    """Writes files that have the same rows; returns the schema of a table of them."""
    names = [f"c{i}" for i in range(columns)]
    values = pa.array(range(_ROWS), pa.int64())
    first = landing / "first.parquet"
    landing.mkdir(parents=True)
    pq.write_table(pa.table(dict.fromkeys(names, values)), first)
    for at in range(files):
        folder = landing / f"part={at % _FOLDERS}"
        folder.mkdir(exist_ok=True)
        os.link(first, folder / f"{at:05}.parquet")
    first.unlink()
    return ", ".join(f"{name} bigint" for name in [*names, "part"])


class Adder:
    """Adds the files with icebergds, without Spark."""

    def __init__(self, directory: Path, schema: str) -> None:
        self._landing, self._schema, self._numbers = directory / "landing", schema, count()
        self._catalog: Catalog = load_catalog("ours", warehouse=str(directory / "ours"))
        self._catalog.create_namespace("db")

    def add(self) -> object:
        name = f"db.t{next(self._numbers)}"
        table = self._catalog.create_table(name, self._schema, partition_spec="part")
        return table.add_files(str(self._landing))


class JavaAdder:
    """Adds the files with the procedure of Java Iceberg."""

    def __init__(self, spark: SparkSession, directory: Path, schema: str) -> None:
        self._spark, self._schema, self._numbers = spark, schema, count()
        self._source = f"`parquet`.`{directory / 'landing'}`"
        spark.sql("CREATE NAMESPACE IF NOT EXISTS java.db")

    def add(self) -> object:
        name = f"db.t{next(self._numbers)}"
        self._spark.sql(
            f"CREATE TABLE java.{name} ({self._schema}) USING iceberg PARTITIONED BY (part)"
        )
        return self._spark.sql(
            f"CALL java.system.add_files(table => '{name}', source_table => '{self._source}')"
        ).collect()


if __name__ == "__main__":
    main()
