"""Times writes of 10 M rows of 8 columns: icebergpy, Spark's own Parquet writer, Java Iceberg.

All writers run in turns in one session, on the same rows; the medians are compared. Seconds depend
on the machine, ratios much less. The rows are read from Parquet files; `source` is the time of that
read alone. `icebergpy` is `df.write` as it comes in a registered session, `icebergpy alone` that of
the data source, which does not shuffle.

    python benchmarks/write.py DIRECTORY [--runs 3] [--rows 10000000] [--cases days,bucket]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from icebergds import register
from icebergds.api.table import load_table

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
FILES = 4
DAYS = 30
BUCKETS = 16
_CODEC = "zstd"
# Event times are unordered: each task has rows of every day.
_ROWS = f"""
    SELECT id,
      cast(pmod(xxhash64(id, 1), 1000) AS int) AS quantity,
      xxhash64(id, 2) / 9223372036854775807D AS price,
      xxhash64(id, 3) / 1e6D AS score,
      timestamp_micros(1700006400000000 + pmod(xxhash64(id, 4), {DAYS * 86_400_000_000}))
        AS event_time,
      concat('category ', pmod(xxhash64(id, 5), 20)) AS category,
      concat('ref-', lpad(hex(xxhash64(id)), 16, '0'), '-', lpad(id, 8, '0')) AS reference,
      date_add(DATE'2023-11-15', cast(id DIV 86400 AS int)) AS day
    FROM range(0, {{rows}}, 1, {FILES})
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A partitioning, for each of the writers.

    `spark_key` is for Spark's own writer, which does not support transforms.
    """

    name: str
    partition_by: str
    spark_key: Callable[[], Column] | None
    distribution: str


_CASES = (
    Case("unpartitioned", "", None, "none"),
    Case(
        "days(event_time)",
        "days(event_time)",
        lambda: f.date_trunc("day", "event_time").cast("date"),
        "none",
    ),
    Case(
        "days(event_time), hash",
        "days(event_time)",
        lambda: f.date_trunc("day", "event_time").cast("date"),
        "hash",
    ),
    Case(
        f"bucket({BUCKETS}, reference)",
        f"bucket({BUCKETS}, reference)",
        lambda: f.pmod(f.hash("reference"), f.lit(BUCKETS)),
        "none",
    ),
    Case(
        f"bucket({BUCKETS}, reference), hash",
        f"bucket({BUCKETS}, reference)",
        lambda: f.pmod(f.hash("reference"), f.lit(BUCKETS)),
        "hash",
    ),
)


@dataclass(frozen=True, slots=True)
class Written:
    """The cost of one write, and the files it left."""

    seconds: float
    cpu_seconds: float
    files: int
    megabytes: float


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    directory = arguments.directory.resolve()
    spark = start(jar, directory / "warehouse", arguments.jvm_options)
    register(spark)
    rows = source(spark, directory, arguments.rows)
    print(
        f"Spark {spark.version}, {arguments.rows} rows, median of {arguments.runs} runs; "
        "seconds (ratio to Spark's own writer), CPU seconds, files, MB"
    )
    for case in _CASES:
        if any(text in case.name for text in arguments.cases.split(",")):
            writers = writers_for(spark, rows, case, directory, with_java=jar is not None)
            chosen = {
                name: write
                for name, write in writers.items()
                if any(text in name for text in arguments.writers.split(","))
            }
            report(case, measure(chosen, directory, arguments.rows, arguments.runs))
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="", help="parts of names, separated by commas")
    parser.add_argument("--writers", default="", help="parts of names, separated by commas")
    parser.add_argument("--jvm-options", action="store_true")
    return parser.parse_args()


def start(jar: str | None, warehouse: Path, jvm_options: bool, **more: str) -> SparkSession:
    """Starts Spark, with Java Iceberg if there is a jar; its configuration may have `more`."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.compression.codec", _CODEC)
    )
    if jar is not None:
        builder = (
            builder.config("spark.jars", jar)
            .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.java.type", "hadoop")
            .config("spark.sql.catalog.java.warehouse", str(warehouse))
        )
    for name, value in more.items():
        builder = builder.config(name, value)
    if jvm_options:
        builder = builder.config(
            "spark.driver.extraJavaOptions",
            "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
        ).config("spark.python.unix.domain.socket.enabled", "true")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def source(spark: SparkSession, directory: Path, rows: int) -> DataFrame:
    """The rows, in one file per task that is cheap to read."""
    made = directory / f"rows-{rows}"
    if not (made / "_SUCCESS").exists():
        spark.sql(_ROWS.format(rows=rows)).write.option("compression", "lz4_raw").parquet(str(made))
    return spark.read.parquet(str(made))


def writers_for(
    spark: SparkSession, rows: DataFrame, case: Case, directory: Path, with_java: bool
) -> dict[str, Callable[[], Callable[[], None]]]:
    """By name, functions that prepare a write, which is not timed, and return it."""

    def parquet() -> Callable[[], None]:
        def write() -> None:
            if case.spark_key is None:
                rows.write.parquet(str(directory / "parquet"))
                return
            keyed = rows.withColumn("key", case.spark_key())
            shuffled = keyed if case.distribution == "none" else keyed.repartition("key")
            shuffled.write.partitionBy("key").parquet(str(directory / "parquet"))

        return write

    def ours(*, registered: bool) -> Callable[[], None]:
        register(spark, writer=registered)
        location = str(directory / "ours")
        options = {"distribution-mode": case.distribution}
        created = rows.limit(0).write.format("icebergpy").mode("append").options(**options)
        if case.partition_by:
            created = created.option("partition-by", case.partition_by)
        created.option("create", "true").save(location)
        writer = rows.write.format("icebergpy").mode("append").options(**options)
        return lambda: writer.save(location)

    def java() -> Callable[[], None]:
        spark.sql("DROP TABLE IF EXISTS java.db.written")
        columns = ", ".join(f"{c} {t}" for c, t in rows.dtypes)
        by = f"PARTITIONED BY ({case.partition_by})" if case.partition_by else ""
        spark.sql(
            f"CREATE TABLE java.db.written ({columns}) USING iceberg {by} TBLPROPERTIES "
            f"('write.distribution-mode' = '{case.distribution}')"
        )
        return lambda: rows.writeTo("java.db.written").append()

    writers = {
        "source": lambda: lambda: rows.write.format("noop").mode("overwrite").save(),
        "parquet": parquet,
        "icebergpy": lambda: ours(registered=True),
        "icebergpy alone": lambda: ours(registered=False),
    }
    return writers | ({"java": java} if with_java else {})


def measure(
    writers: dict[str, Callable[[], Callable[[], None]]], directory: Path, rows: int, runs: int
) -> dict[str, Written]:
    taken: dict[str, list[Written]] = {name: [] for name in writers}
    folders = {
        "parquet": directory / "parquet",
        "icebergpy": directory / "ours",
        "icebergpy alone": directory / "ours",
        "java": directory / "warehouse" / "db" / "written",
    }
    for turn in range(runs + 1):
        for name, prepare in writers.items():
            folder = folders.get(name)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            write = prepare()
            started, cpu = time.perf_counter(), cpu_seconds()
            write()
            seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
            if turn:  # the first turn warms up
                files = [] if folder is None else list(folder.rglob("*.parquet"))
                size = sum(file.stat().st_size for file in files) / 1e6
                taken[name].append(Written(seconds, cpu, len(files), size))
            if name.startswith("icebergpy"):
                check(directory / "ours", rows)
            if folder is not None:
                shutil.rmtree(folder)
    return {
        name: sorted(written, key=lambda one: one.seconds)[len(written) // 2]
        for name, written in taken.items()
    }


def check(location: Path, rows: int) -> None:
    snapshot = load_table(location).current_snapshot()
    found = 0 if snapshot is None else int(snapshot.summary["total-records"])
    if found != rows:
        sys.exit(f"{location} has {found} rows, expected {rows}")


def cpu_seconds() -> float:
    """CPU seconds so far of all descendants: Java and the Python workers. 0 if not on Linux."""
    if not Path("/proc/self/stat").exists():
        return 0.0
    times: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # The parent, and the time of the process and of its ended children.
        times[int(stat.parent.name)] = (int(fields[1]), sum(int(n) for n in fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, (parent, _) in times.items() if parent in below} - below:
        below |= more
    return sum(times[pid][1] for pid in below if pid in times) / os.sysconf("SC_CLK_TCK")


def report(case: Case, results: dict[str, Written]) -> None:
    base = results.get("parquet")
    print(case.name)
    for name, written in results.items():
        ratio = f" ({written.seconds / base.seconds:4.2f})" if base else ""
        print(
            f"  {name:16} {written.seconds:6.2f} s{ratio} {written.cpu_seconds:7.2f} s "
            f"{written.files:5d} files {written.megabytes:7.1f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
