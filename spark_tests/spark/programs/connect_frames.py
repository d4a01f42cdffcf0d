"""Does the same at random with DataFrames of a load and of plain Parquet, through Spark Connect."""

from __future__ import annotations

import json
import math
import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as f

sys.path.append(str(Path(__file__).parents[1]))

from built.tables import TableBuilder
from frame_programs import filled, program, run

from icebergds import Table, load_catalog, register
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DATE, DOUBLE, INT, STRING, TIMESTAMPTZ, DecimalType, NestedField

_MAPPING = json.dumps(
    [
        {"field-id": field_id, "names": names}
        for field_id, names in ((1, ["a", "key"]), (2, ["b", "text"]), (3, ["p"]), (4, ["f"]))
    ]
)


def see(spark: SparkSession, directory: str, programs: int, seed: str) -> dict[str, Any]:
    """What differed, the class of frames, and how many files conditions left."""
    register(spark)
    table = filled(Path(directory, "lake"), 3)
    plain = str(Path(directory, "plain"))
    spark.createDataFrame(table.scan().to_arrow()).write.parquet(plain)
    chance, different = random.Random(seed), []
    for _ in range(programs):
        steps = program(chance, 8)
        expected = run(steps, spark.read.parquet(plain))
        found = run(steps, spark.read.format("icebergpy").load(table.location()))
        spark.catalog.clearCache()
        if found != expected:
            different.append([expected, found])
    numbers = load_catalog("numbers", warehouse=str(Path(directory, "numbers")))
    numbers.create_namespace("db")
    point = pa.struct([("x", pa.float32())])
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("p", point)])
    of_nan = numbers.create_table("db.t", schema)
    rows = [{"id": i, "x": x, "p": {"x": x}} for i, x in enumerate((1.0, math.nan, 2.0))]
    of_nan.append(pa.Table.from_pylist(rows, schema))
    nan = spark.read.format("icebergpy").load(of_nan.location())
    modes = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    with_deletes = numbers.create_table("db.d", schema, properties=modes)
    with_deletes.append(pa.Table.from_pylist([{"id": i, "x": 0.0} for i in range(100)], schema))
    with_deletes.delete("pmod(id, 3) = 1")
    not_deleted = spark.read.format("icebergpy").load(with_deletes.location())
    evolved = spark.read.format("icebergpy").load(_evolved(Path(directory, "evolved")))
    by_reader = {
        name: spark.read.format("icebergpy").load(_parted(Path(directory, name), mapping))
        for name, mapping in (("parted", ""), ("mapped", _MAPPING))
    }
    df = spark.read.format("icebergpy").load(table.location())
    narrow = df.where("p in (0, 3)").filter(df["id"] > 9)
    return {
        "different": different,
        "class": type(df).__name__,
        "other class": type(df.limit(1)).__name__,
        "files": [len(df.inputFiles()), len(narrow.inputFiles())],
        "by Columns": len(df.where((df["p"] == 3) | df["p"].isNull()).inputFiles()),
        "by computed columns": df.select("id", (df["p"] + 1).alias("p")).where("p = 4").count(),
        "NaN": [row.id for c in ("x", "p.x") for row in nan.where(f"{c} > 20").collect()],
        "deleted": [row.id for row in not_deleted.collect() if row.id % 3 == 1],
        "not deleted": not_deleted.where("id > 9").count(),
        "files with deletes": len(not_deleted.inputFiles()),
        "defaults": [
            list(map(str, row)) for row in evolved.where("c = 'new' and n < 1e25").collect()
        ],
        "defaults are read by Spark": len(evolved.inputFiles()),
        "partition values": _rows_by_condition(by_reader["parted"]),
        "mapped names": _rows_by_condition(by_reader["mapped"]),
        "files of partitions": [len(each.inputFiles()) for each in by_reader.values()],
        "NaN is read by Spark": len(nan.inputFiles()),
        "schema": df.select("id", "s").schema.simpleString(),
        "text": _found_by_text(spark, str(Path(directory, "texts"))),
        "text later": _found_by_later_settings(spark, Path(directory, "later")),
        "dates": _found_by_texts_of_dates(spark, Path(directory, "dates")),
        "another reader of Parquet": _found_by_another_reader(spark, with_deletes),
        "columns that differ by case": _found_by_case(spark, Path(directory, "cases")),
    }


def _found_by_text(spark: SparkSession, location: str) -> dict[str, list[list[int]]]:
    """The rows that conditions find whose text or numbers depend on settings of the session."""
    rows = [(1, "a", "b", 2**53, 0.5), (2, "b", "b", 2**53 + 1, 0.1), (3, "x\\y", "c", 1, 2.0**24)]
    made = spark.createDataFrame(rows, "n int, b string, c string, l bigint, f float")
    # A file for each row, which conditions could leave out.
    made.write.format("icebergpy").partitionBy("n").save(location)
    df = spark.read.format("icebergpy").load(location)
    found: dict[str, list[list[int]]] = {}
    for setting, value, condition in (
        ("spark.sql.ansi.enabled", "true", "l = 9007199254740993D"),
        ("spark.sql.ansi.enabled", "false", "f = '0.1'"),
        ("spark.sql.ansi.enabled", "false", "f = 16777217"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true", 'b = "c"'),
        ("spark.sql.parser.escapedStringLiterals", "true", r"b = 'x\y'"),
    ):
        before = spark.conf.get(setting)
        spark.conf.set(setting, value)
        for chosen in (df.where(condition), df.where(f.expr(condition))):
            found.setdefault(condition, []).append(sorted(row.n for row in chosen.collect()))
        spark.conf.set(setting, before)
    return found


def _found_by_later_settings(spark: SparkSession, location: Path) -> dict[str, list[list[int]]]:
    """The rows that conditions find with settings that change after `where`, and change back.

    With them the number of files that are read.
    """
    fields = NestedField(1, "n", INT), NestedField(2, "t", TIMESTAMPTZ), NestedField(3, "s", STRING)
    builder = TableBuilder(location, Schema(fields))
    texts = (r"x\y", r"x\\y", "s", "a")
    hour = 3600 * 10**6
    builder.commit(*(builder.data_file([(n, n * hour, s)]) for n, s in enumerate(texts)))
    df = spark.read.format("icebergpy").load(str(location))
    found: dict[str, list[list[int]]] = {}
    for setting, first, later, condition in (
        ("spark.sql.session.timeZone", "UTC", "-02:00", "t < timestamp'1970-01-01 01:00:00'"),
        ("spark.sql.parser.escapedStringLiterals", "true", "false", r"s = 'x\\y'"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "false", "true", 's = "s"'),
    ):
        before = spark.conf.get(setting)
        spark.conf.set(setting, first)
        chosen = df.where(condition)
        frames = chosen, chosen.select("n"), df.where(f.expr(condition)).limit(9)
        for value in (later, first, later):
            spark.conf.set(setting, value)
            # Each DataFrame keeps the files that it found once.
            files = len(chosen.limit(9).inputFiles())
            rows = {tuple(sorted(row.n for row in frame.collect())) for frame in frames}
            found.setdefault(condition, []).extend([*each, files] for each in rows)
        spark.conf.set(setting, before)
    return found


def _found_by_case(spark: SparkSession, location: Path) -> dict[str, list[int]]:
    """The rows that a condition on `a` finds in loads of columns, with another column `A`."""
    fields = NestedField(1, "n", INT), NestedField(2, "a", INT), NestedField(3, "A", INT)
    builder = TableBuilder(location, Schema(fields))
    builder.commit(*(builder.data_file([(n, n, n + 10)]) for n in range(4)))
    reader = spark.read.format("icebergpy")
    found = {}
    for columns in ("n,A", "n,a"):
        df = reader.option("columns", columns).load(str(location)).where("a > 2")
        found[columns] = sorted(row.n for row in df.collect())
    return found


def _found_by_texts_of_dates(spark: SparkSession, location: Path) -> list[list[int]]:
    """The rows before a date and the number of files, without and with a setting for its text."""
    builder = TableBuilder(location, Schema((NestedField(1, "n", INT), NestedField(2, "d", DATE))))
    beyond_9999 = 3_000_000
    days = (0, 20_000, beyond_9999)
    builder.commit(*(builder.data_file([(n, day)]) for n, day in enumerate(days)))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    df = spark.read.format("icebergpy").load(str(location)).where(f.col("d") < "2024-01-01")
    found = []
    for value in ("false", "true"):
        spark.conf.set("spark.sql.legacy.typeCoercion.datetimeToString.enabled", value)
        rows = sorted(row.n for row in df.select("n").collect())
        found.append([*rows, len(df.limit(9).inputFiles())])
    spark.conf.unset("spark.sql.legacy.typeCoercion.datetimeToString.enabled")
    spark.conf.set("spark.sql.ansi.enabled", before)
    return found


def _found_by_another_reader(spark: SparkSession, table: Table) -> list[int]:
    """The rows of a table with deletes, of which one more is deleted, if Spark reads otherwise."""
    setting = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "avro,csv")
    table.delete("pmod(id, 100) = 2", spark=spark)
    rows = spark.read.format("icebergpy").load(table.location()).where("id < 9").collect()
    spark.conf.set(setting, before)
    return sorted(row.id for row in rows)


def _rows_by_condition(df: DataFrame) -> list[Any]:
    conditions = ("true", "p = 7", "p is null", "b = 'x'", "b is null and p > 0", "f > 20")
    return [sorted(map(str, map(list, df.where(each).collect()))) for each in conditions]


def _parted(location: Path, mapping: str) -> str:
    """Files that lack the column of their partition; with a name mapping some have no field ids."""
    a, b = NestedField(1, "a", INT), NestedField(2, "b", STRING)
    p, number = NestedField(3, "p", INT), NestedField(4, "f", DOUBLE)
    spec = PartitionSpec(1, (PartitionField((3,), 1000, IdentityTransform(), "p"),))
    properties = {"schema.name-mapping.default": mapping} if mapping else {}
    schema = Schema((a, b, p, number))
    builder = TableBuilder(location, schema, spec=spec, properties=properties)
    stored = Schema((a, b, number))
    files = [
        builder.data_file(
            [(i, "x", 1.0), (i + 1, None, math.nan)], partition=(part,), schema=stored
        )
        for i, part in ((1, 7), (3, 8), (5, None))
    ]
    own = builder.data_file([(9, "x", 7, None)], partition=(7,), with_metrics=False)
    if properties:
        rows = pq.read_table(files[0].file_path).rename_columns(["key", "text", "f"])
        rows = rows.cast(pa.schema([pa.field(each.name, each.type) for each in rows.schema]))
        pq.write_table(rows, files[0].file_path)
    builder.commit(*files, own)
    return str(location)


def _evolved(location: Path) -> str:
    """A table with a decimal number that was widened and a column that was added with a default."""
    number = NestedField(1, "n", DecimalType(5, 2))
    builder = TableBuilder(location, Schema((number,)), format_version=3)
    builder.commit(builder.data_file([(Decimal("1.50"),)]))
    wider = NestedField(1, "n", DecimalType(30, 2))
    builder.evolve(Schema((wider, NestedField(2, "c", STRING, initial_default="new")), 1))
    builder.commit(builder.data_file([(Decimal("2.50"), None)]))
    return str(location)
