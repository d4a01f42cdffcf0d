"""Times TPC-H: icebergds by SQL and over temporary views, Spark's own reader, Java Iceberg.

All read the same tables, in turns in one session; the medians of each query's runs are compared.
Answers must be those of Spark's own reader. SQL of icebergds and of Java Iceberg names the tables,
so planning them counts; the others read temporary views that are there already. Seconds depend on
the machine, ratios much less.

    python benchmarks/tpch.py DIRECTORY [--scale 1] [--runs 3] [--queries 1,6]

`tpchgen-cli` makes the data. To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark
runtime jar, built for the Spark version in use.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import duckdb_extension_tpch
import sqlglot
from pyspark.sql import DataFrame, SparkSession

from icebergds import Table, load_catalog, register, sql

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
PARTITIONED = {"lineitem": "years(l_shipdate)", "orders": "years(o_orderdate)"}
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def main() -> None:
    arguments = parse_arguments()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    spark = start(jar, arguments.directory / f"scale-{arguments.scale:g}")
    tables = filled(spark, arguments.directory, arguments.scale)
    ways = ways_of(spark, tables, with_java=jar is not None)
    compare(spark, ways, arguments)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    return parser_of(__doc__.splitlines()[0]).parse_args()


def parser_of(description: str, count: int = 22) -> argparse.ArgumentParser:
    """The arguments of the benchmark of so many queries."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", type=numbers, default=tuple(range(1, count + 1)))
    return parser


def compare(
    spark: SparkSession,
    ways: dict[str, Way],
    arguments: argparse.Namespace,
    asked: list[tuple[int, str]] | None = None,
    same: Callable[[list], object] = list,
) -> None:
    """Asks each query in each way, in turns, and prints the medians.

    Args:
        asked: the queries by number; those of TPC-H by default.
        same: what must be equal of all answers to a query.
    """
    print(f"Spark {spark.version}, scale {arguments.scale}, median of {arguments.runs} runs")
    medians = {name: {} for name in ways}
    for number, text in queries() if asked is None else asked:
        if number not in arguments.queries:
            continue
        answers = {}
        seconds = {name: [] for name in ways}
        for _ in range(arguments.runs):
            for name, way in ways.items():
                way.prepare()
                rows: list = []
                taken = seconds_of(lambda rows=rows, way=way, text=text: rows.extend(way.ask(text)))
                seconds[name].append(taken)
                answers[name] = rows
        assert all(same(rows) == same(answers[name]) for rows in answers.values()), number
        for name in ways:
            medians[name][number] = statistics.median(seconds[name])
        times = {name: medians[name][number] for name in ways}
        print(described(f"query {number}", times), flush=True)
    print(described("sum", {name: sum(taken.values()) for name, taken in medians.items()}))


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def start(jar: str | None, warehouse: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.icebergpy.catalog.lake.warehouse", str(warehouse))
    )
    if jar is not None:
        builder = (
            builder.config("spark.jars", jar)
            .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.java.type", "hadoop")
            .config("spark.sql.catalog.java.warehouse", str(warehouse))
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def filled(spark: SparkSession, directory: Path, scale: float) -> dict[str, Table]:
    """The tables, made once a directory."""
    catalog = load_catalog("tpch", warehouse=str(directory / f"scale-{scale:g}"))
    if ("tpch",) not in catalog.list_namespaces():
        raw = directory / f"raw-{scale:g}"
        command = Path(sys.executable).with_name("tpchgen-cli")
        options = ["parquet", "--scale-factor", f"{scale:g}", f"--output-dir={raw}"]
        subprocess.run([str(command), *options], check=True)
        catalog.create_namespace("tpch")
        for name in TABLES:
            rows = spark.read.parquet(str(raw / f"{name}.parquet"))
            schema = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema)
            spec = PARTITIONED.get(name)
            catalog.create_table(f"tpch.{name}", schema, partition_spec=spec).append(rows)
    return {name: catalog.load_table(f"tpch.{name}") for name in TABLES}


@dataclass(frozen=True)
class Way:
    """A way to answer queries.

    Attributes:
        prepare: makes the names of tables known, before the time counts.
        ask: answers a query.
    """

    prepare: Callable[[], object]
    ask: Callable[[str], list]


def ways_of(
    spark: SparkSession, tables: dict[str, Table], namespace: str = "tpch", *, with_java: bool
) -> dict[str, Way]:
    files = {
        name: [task.file.file_path for task in table.scan().plan_files()]
        for name, table in tables.items()
    }

    def views(read: Callable[[str], DataFrame]) -> Callable[[], object]:
        return lambda: [read(name).createOrReplaceTempView(name) for name in tables]

    def names() -> None:
        for name in tables:
            spark.catalog.dropTempView(name)

    def by_name(catalog: str, run: Callable[[str], DataFrame]) -> Way:
        whole = f"{catalog}.{namespace}"
        return Way(names, partial(ask, lambda text: run(named(text, whole, tables))))

    by_spark = partial(ask, spark.sql)
    ways = {
        "parquet": Way(views(lambda name: spark.read.parquet(*files[name])), by_spark),
        "views": Way(
            views(lambda name: spark.read.format("icebergpy").load(tables[name].location())),
            by_spark,
        ),
        "sql": by_name("lake", partial(sql, spark)),
    }
    if with_java:
        ways["java"] = by_name("java", spark.sql)
    return ways


def named(text: str, namespace: str, tables: Collection[str] = TABLES) -> str:
    """A query with the tables' names in full."""
    query = sqlglot.parse_one(text, read="spark")
    for table in query.find_all(sqlglot.exp.Table):
        if table.name in tables:
            whole = sqlglot.exp.to_table(f"{namespace}.{table.name}")
            table.set("db", whole.args["db"])
            table.set("catalog", whole.args["catalog"])
    return query.sql(dialect="spark")


def queries() -> list[tuple[int, str]]:
    """The queries as Spark writes them, by number."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    package = Path(duckdb_extension_tpch.__file__).parent
    (extension,) = package.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    found = connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    return [
        (number, sqlglot.transpile(text.rstrip("; \n"), read="duckdb", write="spark")[0])
        for number, text in found
    ]


def ask(run: Callable[[str], DataFrame], text: str) -> list:
    return sorted(tuple(map(rounded, row)) for row in run(text).collect())


def rounded(value: object) -> str:
    """A value as text: sums of floating-point numbers depend on the order of the rows."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def seconds_of(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def described(name: str, times: dict[str, float]) -> str:
    against = times["java" if "java" in times else "parquet"]
    parts = [f"{reader} {taken:6.2f} s ({taken / against:4.2f})" for reader, taken in times.items()]
    return f"{name:10} " + "  ".join(parts)


if __name__ == "__main__":
    main()
