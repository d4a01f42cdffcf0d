"""Times maintenance of the same tables: icebergds and Java Iceberg's procedures.

Both work in turns in one session, each run on a fresh copy of the table; the medians are compared.
Java Iceberg has no conversion of equality deletes on Spark: that of icebergds is compared with a
scan of the key column by the same kind of tasks. After each run, the rows (or, in tables of
metadata alone, the files) are compared with what they were before, outside of the timing.

    python benchmarks/maintenance.py DIRECTORY [--runs 3] [--rows 10000000] [--cases sort,expire]
        [--snapshots 1000] [--files 100000] [--manifests 500]

CPU seconds are of all processes below this one: Java and the Python workers; to them come those of
this process. Memory is the most that this process and any one of its Python workers held during a
run of icebergds.

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from maintenance_manifests import create_table
from maintenance_tables import (
    DATA_FILES,
    live_paths,
    make_orphans,
    make_snapshots,
    make_table,
    make_with_keys,
    make_with_many_positions,
    make_with_positions,
    make_with_vectors,
    rows_of,
    snapshots_and_files,
)
from peak_memory import peak_megabytes, python_processes
from pyspark.sql import Row, SparkSession
from write import cpu_seconds, start

from icebergds import Table, load_table, register
from icebergds.operations.runner import TaskAttempt
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spark.runner import SparkRunner
from icebergds.spec.schema import Schema

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_ALL = {"rewrite-all": "true"}
# Java loads all keys for each of them.
_FILES_WITH_KEYS = 20
_CONVERTED_FILES = 100
# Least that each case needs.
_LEAST_ROWS = 10_000
# Procedures parse sort orders by it.
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_REWRITE_ALL = "options => map('rewrite-all', 'true')"


@dataclass(frozen=True, slots=True)
class Case:
    """A table, and its maintenance by each implementation.

    Attributes:
        make: creates the table at a location.
        peer: what to compare with: a procedure of Java, with a place for the table; or a scan.
        content: what is the same after all runs, by the location and what the run returned.
        unchanged: whether `content` is the same before the run too.
    """

    name: str
    make: Callable[[Path], object]
    ours: Callable[[Table], object]
    peer: str | Callable[[Table], object]
    content: Callable[[Path, Any], Hashable]
    unchanged: bool = True


@dataclass(frozen=True, slots=True)
class Run:
    """What a run took."""

    seconds: float
    cpu_seconds: float
    driver_megabytes: float
    worker_megabytes: float


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    extensions = {"spark.sql.extensions": _EXTENSIONS} if jar is not None else {}
    spark = start(jar, directory / "warehouse", arguments.jvm_options, **extensions)
    if jar is not None:
        spark.conf.set("spark.sql.catalog.java.cache-enabled", "false")
    register(spark, fast_writes=True)
    print(
        f"Spark {spark.version}, {arguments.rows} rows in {DATA_FILES} files, "
        f"{arguments.snapshots} snapshots, {arguments.files} files in {arguments.manifests} "
        f"manifests, median of {arguments.runs} runs; seconds (ratio to Java)"
    )
    for case in cases(spark, directory, arguments, jar is not None):
        if not arguments.cases or case.name in arguments.cases.split(","):
            print(measure(spark, case, directory, arguments.runs, jar is not None), flush=True)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--snapshots", type=int, default=1_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--manifests", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="", help="names of cases, separated by commas")
    parser.add_argument("--jvm-options", action="store_true")
    arguments = parser.parse_args()
    if arguments.rows < _LEAST_ROWS:
        parser.error(f"--rows {arguments.rows}: expected {_LEAST_ROWS} or more")
    return arguments


def cases(
    spark: SparkSession, directory: Path, arguments: argparse.Namespace, with_java: bool
) -> list[Case]:
    rows = arguments.rows
    content = partial(rows_of, spark, with_java)
    # Java loads all keys for each file.
    own_content = partial(rows_of, spark, False)

    def rewriting(
        name: str,
        make: Callable[[Path], object],
        content: Callable[[Path, Any], Hashable] = content,
    ) -> Case:
        return Case(
            name,
            make,
            lambda table: table.rewrite_data_files(options=_ALL),
            f"rewrite_data_files({{}}, {_REWRITE_ALL})",
            content,
        )

    def sorting(name: str, ours: tuple[str, str], java: str) -> Case:
        return Case(
            name,
            partial(make_table, spark, directory, rows),
            lambda table: table.rewrite_data_files(*ours[:1], sort_order=ours[1], options=_ALL),
            f"rewrite_data_files({{}}, strategy => 'sort', sort_order => '{java}', {_REWRITE_ALL})",
            content,
        )

    kept = arguments.snapshots // 10
    today = datetime.datetime.now(datetime.UTC)
    tomorrow, two_days_ago = (today + datetime.timedelta(days=days) for days in (1, -2))
    return [
        rewriting("binpack", partial(make_table, spark, directory, rows)),
        rewriting("binpack vectors", partial(make_with_vectors, spark, directory, rows)),
        rewriting("binpack positions", partial(make_with_positions, spark, directory, rows)),
        rewriting(
            "binpack keys",
            partial(make_with_keys, spark, directory, rows, files=_FILES_WITH_KEYS),
            own_content,
        ),
        sorting("sort", ("sort", "price"), "price"),
        sorting("zorder", ("zorder", "price, event_time"), "zorder(price, event_time)"),
        Case(
            "positions",
            partial(make_with_many_positions, spark, directory, rows),
            lambda table: table.rewrite_position_delete_files(options=_ALL),
            f"rewrite_position_delete_files({{}}, {_REWRITE_ALL})",
            content,
        ),
        Case(
            "convert",
            partial(make_with_keys, spark, directory, rows, version=3, files=_CONVERTED_FILES),
            lambda table: table.convert_equality_deletes(),
            partial(scan_keys, spark),
            own_content,
        ),
        Case(
            "expire",
            partial(make_snapshots, arguments.snapshots, arguments.files // 2),
            lambda table: table.expire_snapshots(older_than=tomorrow, retain_last=kept),
            f"expire_snapshots({{}}, older_than => {_sql(tomorrow)}, retain_last => {kept})",
            snapshots_and_files,
            unchanged=False,
        ),
        Case(
            "orphans",
            partial(make_orphans, arguments.files, arguments.manifests),
            lambda table: find_orphans(table, two_days_ago),
            f"remove_orphan_files({{}}, older_than => {_sql(two_days_ago)}, dry_run => true)",
            lambda _, found: len(found),
            unchanged=False,
        ),
        Case(
            "manifests",
            lambda location: create_table(str(location), arguments.manifests, arguments.files),
            lambda table: table.rewrite_manifests(),
            "rewrite_manifests({})",
            live_paths,
        ),
    ]


def _sql(time_of: datetime.datetime) -> str:
    return f"TIMESTAMP '{time_of:%Y-%m-%d %H:%M:%S}'"


def scan_keys(spark: SparkSession, table: Table) -> list[int]:
    """Reads the column `id` of all data files, without deletes, in tasks of whole files."""
    metadata, schema = table.metadata, table.schema()
    files = [
        replace(file, deletes=AppliedDeletes())
        for file in plan_files(table.io, metadata, metadata.current_snapshot(), schema).files
    ]
    splits = SplitOptions.of(metadata.properties)
    groups = pack_files(files, metadata, schema, splits, whole=True)
    plan = ReadPlan(
        io=table.io,
        columns=Schema(tuple(field for field in schema.fields if field.name == "id")),
        table_schema=schema,
        specs=metadata.specs_by_id,
    )
    return SparkRunner(spark).run(partial(count_rows, plan), groups)


def count_rows(plan: ReadPlan, group: ScanTaskGroup, _: TaskAttempt) -> int:
    return sum(batch.num_rows for batch in read_scan_tasks(plan, group))


def find_orphans(table: Table, older_than: datetime.datetime) -> list[str]:
    found = table.remove_orphan_files(older_than=older_than, dry_run=True)
    return list(found.orphan_file_locations)


def measure(spark: SparkSession, case: Case, directory: Path, runs: int, with_java: bool) -> str:
    # Java Iceberg knows tables by their place in the warehouse.
    location = directory / "warehouse" / "db" / case.name.replace(" ", "_")
    pristine = directory / "pristine"
    for path in (location, pristine):
        shutil.rmtree(path, ignore_errors=True)
    case.make(location)
    contents = {case.content(location, None)} if case.unchanged else set()
    location.rename(pristine)
    acts: dict[str, str | Callable[[Table], object]] = {"icebergpy": case.ours}
    if not isinstance(case.peer, str):
        acts["scan"] = case.peer
    elif with_java:
        acts["java"] = case.peer
    taken: dict[str, list[Run]] = {name: [] for name in acts}
    for turn in range(runs + 1):
        for name, act in acts.items():
            shutil.copytree(pristine, location, copy_function=_link)
            if isinstance(act, str):
                call = act.format(f"table => 'db.{location.name}'")
                result, run = _timed(partial(_call, spark, f"CALL java.system.{call}"))
            else:
                result, run = _timed(partial(act, load_table(location)))
            contents.add(case.content(location, result))
            if turn:  # the first turn warms up
                taken[name].append(run)
            shutil.rmtree(location)
    shutil.rmtree(pristine)
    if len(contents) != 1:
        sys.exit(f"{case.name}: contents differ: {contents}")
    return _line(case, taken)


def _link(path: str, copy: str) -> None:
    """Copies a file of a table; files that are never written again are linked."""
    if path.endswith((".parquet", ".avro", ".puffin", ".orphan")):
        os.link(path, copy)
    else:
        shutil.copy2(path, copy)


def _call(spark: SparkSession, statement: str) -> list[Row]:
    return spark.sql(statement).collect()


def _timed(act: Callable[[], object]) -> tuple[object, Run]:
    _reset_peaks()
    started, cpu = time.perf_counter(), cpu_seconds()
    result = act()
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    workers = [peak_megabytes(pid) for pid in python_processes() if pid != os.getpid()]
    return result, Run(seconds, cpu, peak_megabytes(), max(workers, default=0.0))


def _line(case: Case, taken: dict[str, list[Run]]) -> str:
    medians = {
        name: (
            statistics.median(run.seconds for run in runs),
            statistics.median(run.cpu_seconds for run in runs),
        )
        for name, runs in taken.items()
    }
    parts = [
        f"{name} {seconds:6.2f} s, CPU {cpu:6.2f} s" for name, (seconds, cpu) in medians.items()
    ]
    ours, *peers = medians.values()
    parts += [f"({ours[0] / peer[0]:4.2f}, CPU {ours[1] / peer[1]:4.2f})" for peer in peers]
    driver = max(run.driver_megabytes for run in taken["icebergpy"])
    worker = max(run.worker_megabytes for run in taken["icebergpy"])
    return f"{case.name:18}{'  '.join(parts)}  driver {driver:.0f} MB, worker {worker:.0f} MB"


def _reset_peaks() -> None:
    for pid in python_processes():
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


if __name__ == "__main__":
    main()
