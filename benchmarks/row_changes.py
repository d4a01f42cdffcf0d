"""Times row changes in a table of 10 M rows of 8 columns: icebergds and Java Iceberg.

Both change the same table merge-on-read, in turns in one session, and roll it back after each
run. A change is of 1 % of as many rows as the table has, and one upsert of 10 %. Upserts with
equality deletes are compared with Java's MERGE of the same rows, because Java Iceberg does not
support such upserts in Spark. `next read` is the time of the next aggregation over one column, by
icebergds.

    python benchmarks/row_changes.py DIRECTORY [--runs 3] [--rows 10000000]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from write import source, start

from icebergds import Table, load_table, register
from icebergds.catalog.filesystem.commits import location_operations
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetSnapshotRef

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_TABLE = "java.db.changed"
# Statements that take less than a second get faster in their first few runs, for both.
_WARM_UPS = 4
# 1 % of the rows, scattered over all files.
_SCATTERED = "pmod(quantity, 100) = 7"
# Enough for every case to change some rows.
_LEAST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """A row change, as each implementation does it."""

    name: str
    ours: Callable[[Table], object]
    java: Callable[[], object]


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    warehouse = arguments.directory.resolve() / "warehouse"
    spark = start(jar, warehouse, arguments.jvm_options)
    spark.conf.set("spark.sql.catalog.java.cache-enabled", "false")
    register(spark)
    rows = source(spark, arguments.directory.resolve(), arguments.rows)
    location = warehouse / "db" / "changed"
    base = make_table(rows, location, arguments.format_version)
    print(
        f"Spark {spark.version}, {arguments.rows} rows, version {arguments.format_version}, "
        f"median of {arguments.runs} runs; seconds, seconds of the next read (ratio to Java)"
    )
    for case in cases(spark, arguments.rows, arguments.directory.resolve()):
        if any(text in case.name for text in arguments.cases.split(",")):
            print(measure(spark, case, location, base, arguments.runs, jar is not None), flush=True)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="", help="parts of case names, separated by commas")
    parser.add_argument("--format-version", type=int, default=2)
    parser.add_argument("--jvm-options", action="store_true")
    arguments = parser.parse_args()
    if arguments.rows < _LEAST_ROWS:
        parser.error(f"--rows {arguments.rows}: expected {_LEAST_ROWS} or more")
    return arguments


def make_table(rows: DataFrame, location: Path, format_version: int) -> int:
    """Creates the table to change, in eight files; returns its snapshot id."""
    shutil.rmtree(location, ignore_errors=True)
    modes = {f"table-property.write.{verb}.mode": "merge-on-read" for verb in _VERBS}
    levels = {f"table-property.write.{verb}.isolation-level": "snapshot" for verb in _VERBS}
    rows.repartition(8).write.format("icebergpy").mode("append").options(
        **{"create": "true", "format-version": str(format_version)}, **modes, **levels
    ).save(str(location))
    snapshot = load_table(location).current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


_VERBS = ("delete", "update", "merge")


def cases(spark: SparkSession, rows: int, directory: Path) -> list[Case]:
    few, many = rows // 100, rows // 10
    changes = {count: changed_rows(spark, rows, count, directory) for count in (few, many)}

    def merge(count: int) -> Case:
        return Case(
            f"MERGE of {count}, half new",
            lambda table: (
                table.merge(changes[count], "target.id = source.id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            ),
            lambda: java_merge(spark, changes[count]),
        )

    def upsert(count: int) -> Case:
        return Case(
            f"upsert of {count}, half new",
            lambda table: table.upsert(changes[count], ["id"]),
            lambda: java_merge(spark, changes[count]),
        )

    return [
        Case(
            "DELETE of 1 %",
            lambda table: table.delete(_SCATTERED),
            lambda: spark.sql(f"DELETE FROM {_TABLE} WHERE {_SCATTERED}"),
        ),
        Case(
            "UPDATE of 1 %",
            lambda table: table.update({"quantity": "quantity + 1"}, _SCATTERED),
            lambda: spark.sql(f"UPDATE {_TABLE} SET quantity = quantity + 1 WHERE {_SCATTERED}"),
        ),
        merge(few),
        upsert(few),
        upsert(many),
    ]


def changed_rows(spark: SparkSession, rows: int, count: int, directory: Path) -> DataFrame:
    """Rows of which every second one has an id in the table, scattered over all of it."""
    path = directory / f"changes-{rows}-{count}"
    if not (path / "_SUCCESS").exists():
        step = rows // (count // 2)
        old = source(spark, directory, rows).where(f.col("id") % step == 0).limit(count // 2)
        new = old.withColumn("id", f.col("id") + rows)
        old.withColumn("quantity", f.lit(-1)).union(new).repartition(2).write.parquet(str(path))
    return spark.read.parquet(str(path))


def java_merge(spark: SparkSession, changes: DataFrame) -> None:
    changes.createOrReplaceTempView("changes")
    spark.sql(
        f"MERGE INTO {_TABLE} t USING changes s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def measure(
    spark: SparkSession, case: Case, location: Path, base: int, runs: int, with_java: bool
) -> str:
    taken: dict[str, list[tuple[float, float]]] = {"icebergpy": [], "java": []}
    counts = set()
    for turn in range(-_WARM_UPS, runs):
        for name in ("icebergpy", "java") if with_java else ("icebergpy",):
            table = load_table(location)
            started = time.perf_counter()
            case.ours(table) if name == "icebergpy" else case.java()
            changed = time.perf_counter()
            read = spark.read.format("icebergpy").option("columns", "quantity").load(str(location))
            counts.add(tuple(read.agg(f.count("*"), f.sum("quantity")).first() or ()))
            if turn >= 0:
                taken[name].append((changed - started, time.perf_counter() - changed))
            roll_back(location, base)
    if len(counts) != 1:
        sys.exit(f"{case.name}: results differ: row counts and sums of quantity {counts}")
    medians = {
        name: [statistics.median(column) for column in zip(*times, strict=True)]
        for name, times in taken.items()
        if times
    }
    parts = [f"{name} {m[0]:6.2f} s, next read {m[1]:5.2f} s" for name, m in medians.items()]
    ratio = f"  ({medians['icebergpy'][0] / medians['java'][0]:4.2f})" if with_java else ""
    return f"{case.name:32} {'  '.join(parts)}{ratio}"


def roll_back(location: Path, snapshot_id: int) -> None:
    """Rolls main back to a snapshot."""
    operations = location_operations(load_table(location).io, str(location), str(location))
    ref = SnapshotRef(snapshot_id, RefType.BRANCH)
    operations.commit(operations.refresh(), [], [SetSnapshotRef("main", ref)])


if __name__ == "__main__":
    main()
