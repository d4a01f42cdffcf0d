"""Conditions as text and as Columns, and what statements with them commit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from built.api_tables import new_table
from effort import some
from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from icebergds import Schema, Table
from icebergds.errors import ValidationError
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
    StructType,
)

# All values of a file are the same, so that metadata tells what most conditions match.
SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "day", DATE),
        NestedField(3, "name", STRING),
        NestedField(4, "amount", DecimalType(9, 2)),
        NestedField(5, "ratio", DOUBLE),
        NestedField(6, "is_new", BOOLEAN),
        NestedField(7, "at", TIMESTAMPTZ),
        NestedField(8, "inside", StructType((NestedField(9, "part", INT),))),
    )
)

CONDITIONS: dict[str, Callable[[], Column]] = {
    "day = '2026-01-02'": lambda: f.col("day") == "2026-01-02",
    "day = DATE'2026-01-02'": lambda: f.lit(date(2026, 1, 2)) == f.col("day"),
    "day >= DATE'2026-01-02' AND name = 'n2'": lambda: (
        (f.col("day") >= date(2026, 1, 2)) & (f.col("name") == "n2")
    ),
    "day < DATE'2026-01-02' OR day IS NULL": lambda: (
        (f.col("day") < date(2026, 1, 2)) | f.col("day").isNull()
    ),
    "NOT day = DATE'2026-01-02'": lambda: f.col("day") != date(2026, 1, 2),
    "day IN ('2026-01-01', '2026-01-03')": lambda: f.col("day").isin("2026-01-01", "2026-01-03"),
    "id BETWEEN 1 AND 2": lambda: f.col("id").between(1, 2),
    "name LIKE 'n%'": lambda: f.col("name").like("n%"),
    "name LIKE 'n1'": lambda: f.col("name").like("n1"),
    "startswith(name, 'n')": lambda: f.col("name").startswith("n"),
    "amount > 1.50": lambda: f.col("amount") > Decimal("1.50"),
    "amount >= 2": lambda: f.col("amount") >= 2,
    "ratio <= 1.5D": lambda: f.col("ratio") <= 1.5,
    "isnan(ratio)": lambda: f.isnan("ratio"),
    "is_new": lambda: f.col("is_new"),
    "NOT is_new": lambda: ~f.col("is_new"),
    "at < TIMESTAMP'2026-01-02 12:00:00'": lambda: f.col("at") < datetime(2026, 1, 2, 12),
    "inside.part = 1": lambda: f.col("inside.part") == 1,
    "name <=> NULL": lambda: f.col("name").eqNullSafe(None),
    "name <=> 'n1'": lambda: f.col("name").eqNullSafe("n1"),
    "true": lambda: f.lit(True),
    "name = 'none'": lambda: f.col("name") == "none",
    "id > 1 AND inside.part = 1": lambda: f.expr("id > 1 AND inside.part = 1"),
    # Some rows of files.
    "id = 2 OR half = 1": lambda: (f.col("id") == 2) | (f.col("half") == 1),
    # Only Spark evaluates these.
    "upper(name) = 'N2'": lambda: f.upper("name") == "N2",
    "id + 1 = 3": lambda: f.col("id") + 1 == 3,
}


_OVERWRITTEN = ("day = '2026-01-02'", "name LIKE 'n%'", "id = 2 OR half = 1")


def table_of_days(directory: str, name: str, rows: int = 4) -> Table:
    """A table with a file for each of some days, and one of nulls; half of a file has `half` 1."""
    schema = Schema((*SCHEMA.fields, NestedField(10, "half", INT)))
    properties = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
    table = new_table(
        os.path.join(directory, name), schema, partition_by="day", version=3, properties=properties
    )
    for at in range(1, rows):
        table.append(_arrow(at, at))
    table.append(_arrow(None, rows))
    return table


def _arrow(value: int | None, at: int) -> pa.Table:
    """Two rows with the same values, or without any."""
    none = value is None
    row = {
        "id": value,
        "day": None if none else date(2026, 1, at),
        "name": None if none else f"n{value}",
        "amount": None if none else Decimal(at),
        "ratio": None if none else (float("nan") if at == 2 else float(at)),
        "is_new": None if none else at == 1,
        "at": None if none else datetime(2026, 1, at, 10),
        "inside": {"part": value},
    }
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("day", pa.date32()),
            ("name", pa.string()),
            ("amount", pa.decimal128(9, 2)),
            ("ratio", pa.float64()),
            ("is_new", pa.bool_()),
            ("at", pa.timestamp("us", "UTC")),
            ("inside", pa.struct([("part", pa.int32())])),
            ("half", pa.int32()),
        ]
    )
    return pa.Table.from_pylist([row | {"half": half} for half in (0, 1)], columns)


def deleted(spark: SparkSession, table: Table, condition: str | Column) -> dict[str, Any]:
    """What a delete with a condition commits, on a branch of its own."""
    return committed(table, lambda: table.delete(condition, spark=spark, branch="b"))


def overwritten(spark: SparkSession, table: Table, condition: str | Column) -> dict[str, Any]:
    rows = spark.createDataFrame([(9,)], "id long")
    return committed(table, lambda: table.overwrite(rows, condition, branch="b"))


def committed(table: Table, change: Callable[[], Any]) -> dict[str, Any]:
    """What a change commits to branch `b`, which is dropped again."""
    table.refresh()
    before = table.current_snapshot()
    assert before is not None
    table.manage_snapshots().create_branch("b").commit()
    change()
    after = table.refresh().snapshot_by_name("b")
    assert after is not None
    seen: dict[str, Any] = {"commits": after.snapshot_id != before.snapshot_id}
    if seen["commits"]:
        kept = ("deleted-data-files", "added-data-files", "added-delete-files", "deleted-records")
        seen |= {name: after.summary.get(name) for name in kept}
        seen["operation"] = str(after.operation)
    read = table.scan(branch="b", columns=["id", "half"]).to_arrow().to_pylist()
    seen["rows"] = sorted(str(tuple(row.values())) for row in read)
    table.manage_snapshots().remove_branch("b").commit()
    return seen


def merges(spark: SparkSession, directory: str) -> dict[str, list[Any]]:
    """What merges with rows of one day say if another commit adds a row of another, or of it."""
    on = "target.day = source.day AND target.id = source.id AND target.name LIKE 'n%'"
    same_day = f.col("target.day") == f.col("source.day")
    as_column = same_day & (f.col("target.id") == f.col("source.id"))
    as_column = as_column & f.col("target.name").like("n%")
    kinds: dict[str, str | Column] = {"text": on, "column": as_column, "expr": f.expr(on)}
    return {
        f"{name}, {kind}": [
            _merge(spark, directory, condition, day, f"{name} {kind}") for day in (2, 1)
        ]
        for kind, condition in kinds.items()
        for name in ("matched", "by source")
        if name == "matched" or kind != "expr"
    }


def _merge(spark: SparkSession, directory: str, on: Any, day: int, name: str) -> Any:
    table = table_of_days(directory, f"{name} {day}".replace(" ", "_"))
    source = spark.createDataFrame([(1, date(2026, 1, 1))], "id long, day date").coalesce(1)
    merge = table.merge(_meanwhile(source, table.location(), day), on)
    if name.startswith("by source"):
        is_one = "target.day = DATE'2026-01-01'"
        given = is_one if isinstance(on, str) else f.col("target.day") == date(2026, 1, 1)
        merge = merge.when_not_matched_by_source_update({"half": "7"}, given)
    try:
        return merge.when_matched_update({"half": "5"}).execute().updated
    except ValidationError as error:
        return type(error).__name__


def merges_by_frame(spark: SparkSession, directory: str) -> dict[str, int]:
    """How many rows merges update whose conditions name columns through the source's DataFrame."""
    source = spark.createDataFrame([(1, 50, 50), (2, 60, 60)], "id long, half int, twin int")
    same_id = f.col("target.id") == source["id"]
    conditions = {
        "compared": same_id & (source["half"] > 55),
        "listed": same_id & source["half"].isin(50, 60),
        "equal": same_id & (source["half"] == f.col("source.twin")),
    }
    return {
        name: table_of_days(directory, f"frame_{name}")
        .merge(source, on)
        .when_matched_update({"half": "7"})
        .execute()
        .updated
        for name, on in conditions.items()
    }


def _meanwhile(df: DataFrame, location: str, at: int) -> DataFrame:
    """The same rows; when they are first computed, a row of a day is added to the table."""
    marker = f"{location}/metadata/appended"

    def append(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # By value: workers do not have this module.
        from datetime import date

        import pyarrow as pa

        from icebergds import load_table

        for batch in batches:
            try:
                open(marker, "x").close()
                row = {"id": 50, "day": date(2026, 1, at), "name": "n50"}
                load_table(location).append(pa.Table.from_pylist([row]))
            except FileExistsError:
                pass
            yield batch

    return df.mapInArrow(append, df.schema)


def see(spark: SparkSession, directory: str) -> dict[str, Any]:
    """What deletes, overwrites and merges commit, with a condition as text and as a Column."""
    table = table_of_days(directory, "days")
    by_condition = {
        text: [
            [change(spark, table, text), change(spark, table, column())]
            for change in ((deleted, overwritten) if text in _OVERWRITTEN else (deleted,))
        ]
        for text, column in some(list(CONDITIONS.items()), 6)
    }
    return {
        "conditions": by_condition,
        "merges": merges(spark, directory),
        "by frame": merges_by_frame(spark, directory),
    }
