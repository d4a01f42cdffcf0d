"""Times updates of a table with many snapshots and columns, and a transaction of five steps.

    python benchmarks/updates.py DIRECTORY [--snapshots 1000] [--columns 200] [--runs 5]

Each time has a load of the table and one commit. All take turns in one session, each on a table of
its own with the same history; the medians are compared. Seconds depend on the machine, ratios much
less.

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from small_files import described, measure
from write import start

from icebergds import Catalog, Table, load_catalog

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
Update = Callable[[], object]


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    catalogs = {
        name: load_catalog(name, warehouse=str(directory / name)) for name in ("ours", "java")
    }
    for catalog in catalogs.values():
        make_table(catalog, arguments.snapshots, arguments.columns)
    works = {name: {"ours": update} for name, update in our_updates(catalogs["ours"]).items()}
    if jar is not None:
        spark = start(jar, directory / "java", False)
        for name, update in java_updates(spark).items():
            works[name]["java"] = update
        print(f"Spark {spark.version}, ", end="")
    print(
        f"{arguments.snapshots} snapshots, {arguments.columns} columns, "
        f"median of {arguments.runs} runs after the first"
    )
    for name, updates in works.items():
        print(described(name, measure(updates, arguments.runs)), flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--snapshots", type=int, default=1_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def make_table(catalog: Catalog, snapshots: int, columns: int) -> None:
    """An append for each snapshot, whose manifests are merged by and by."""
    catalog.create_namespace("db")
    names = ["id", *(f"c{i}" for i in range(columns - 1))]
    schema = ", ".join(f"{name} bigint" for name in names)
    table = catalog.create_table("db.t", schema, partition_spec="bucket(4, id)")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    for _ in range(snapshots):
        table.append(rows)


def our_updates(catalog: Catalog) -> dict[str, Update]:
    numbers = count()

    def on(change: Callable[[Table, int], object]) -> Update:
        return lambda: change(catalog.load_table("db.t"), next(numbers))

    def rolled_back(table: Table, _: int) -> None:
        table.manage_snapshots().set_current_snapshot(table.snapshots()[-2].snapshot_id).commit()

    def five_steps(table: Table, number: int) -> None:
        with table.transaction() as tx:
            tx.update_schema().add_column(f"t{number}", "int").commit()
            tx.update_schema().rename_column(f"t{number}", f"u{number}").commit()
            tx.set_properties({"five": str(number)})
            tx.update_spec().add_field(f"bucket({number + 100}, id)").commit()
            tx.set_properties({"last": str(number)})

    return {
        "add a column": on(lambda t, n: t.update_schema().add_column(f"a{n}", "int").commit()),
        "rename a column": on(
            lambda t, n: t.update_schema().rename_column(f"c{n % 100}", f"r{n}").commit()
        ),
        "add a partition field": on(
            lambda t, n: t.update_spec().add_field(f"bucket({n + 10}, id)").commit()
        ),
        "set a property": on(lambda t, n: t.set_properties({"p": str(n)})),
        "create a tag": on(lambda t, n: t.manage_snapshots().create_tag(f"t{n}").commit()),
        "set the current snapshot": on(rolled_back),
        "transaction of 5 steps": on(five_steps),
    }


def java_updates(spark: SparkSession) -> dict[str, Update]:
    numbers = count()
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    session = spark._jsparkSession
    integer = iceberg.types.Types.IntegerType.get()
    buckets = iceberg.expressions.Expressions.bucket

    def on(change: Callable[[Any, int], object]) -> Update:
        def update() -> object:
            table = iceberg.spark.Spark3Util.loadIcebergTable(session, "java.db.t")
            table.refresh()
            return change(table, next(numbers))

        return update

    def five_steps(table: Any, number: int) -> None:
        tx = table.newTransaction()
        tx.updateSchema().addColumn(f"t{number}", integer).commit()
        tx.updateSchema().renameColumn(f"t{number}", f"u{number}").commit()
        tx.updateProperties().set("five", str(number)).commit()
        tx.updateSpec().addField(f"p{number}", buckets("id", number + 100)).commit()
        tx.updateProperties().set("last", str(number)).commit()
        tx.commitTransaction()

    def rolled_back(table: Any, _: int) -> None:
        snapshots = list(table.snapshots())
        table.manageSnapshots().setCurrentSnapshot(snapshots[-2].snapshotId()).commit()

    return {
        "add a column": on(lambda t, n: t.updateSchema().addColumn(f"a{n}", integer).commit()),
        "rename a column": on(
            lambda t, n: t.updateSchema().renameColumn(f"c{n % 100}", f"r{n}").commit()
        ),
        "add a partition field": on(
            lambda t, n: t.updateSpec().addField(f"b{n}", buckets("id", n + 10)).commit()
        ),
        "set a property": on(lambda t, n: t.updateProperties().set("p", str(n)).commit()),
        "create a tag": on(
            lambda t, n: (
                t.manageSnapshots().createTag(f"t{n}", t.currentSnapshot().snapshotId()).commit()
            )
        ),
        "set the current snapshot": on(rolled_back),
        "transaction of 5 steps": on(five_steps),
    }


if __name__ == "__main__":
    main()
