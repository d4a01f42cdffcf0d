"""Queries of DataFrames that metadata answers, or whose first rows few files have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, functions as f

SCHEMA = "id bigint, day date, ts timestamp, v double, n int, s string"
DAYS = 4
FIRST = dt.datetime(2024, 12, 30, tzinfo=dt.UTC)


def of_day(number: int) -> pa.Table:
    """Ten rows, in the order of time; of `n`, every third is null."""
    hours = range(10)
    return pa.table(
        {
            "id": pa.array([10 * number + hour for hour in hours], pa.int64()),
            "day": pa.array([(FIRST + dt.timedelta(number)).date()] * 10),
            "ts": [FIRST + dt.timedelta(number, hours=hour) for hour in hours],
            "v": [number + hour / 8 + 0.5 for hour in hours],
            "n": pa.array([hour if hour % 3 else None for hour in hours], pa.int32()),
            "s": ["x"] * 10,
        }
    )


FRAMES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "all": lambda t: t.agg(f.count("*"), f.min("id"), f.max("ts").alias("m"), f.count("n")),
    "of days": lambda t: t.where(f.col("day") < "2025-01-01").agg(f.count("*"), f.max("id")),
    "by day": lambda t: t.groupBy("day").count(),
    "ordered": lambda t: t.groupBy("day").agg(f.max("id").alias("m")).orderBy(f.desc("m")).limit(2),
    "by year": lambda t: t.groupBy(f.year("ts")).agg(f.count("*"), f.min("v")),
    "by date": lambda t: t.groupBy(f.to_date("ts").alias("d")).count().where("count > 3"),
    "having": lambda t: t.groupBy("day").count().where("count > 9").select("day"),
    "distinct days": lambda t: t.where("id >= 10").select("day").distinct(),
    "distinct and more": lambda t: t.select("day").distinct().where("day > '2024-12-31'").limit(9),
    "nothing": lambda t: t.where("id > 1000").agg(f.count("*"), f.max("id")),
}
READ_IN_PART_FRAMES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "some": lambda t: t.where("id >= 15").agg(f.count("*"), f.max("id"), f.min("v")),
    "some by day": lambda t: t.where("id > 5").groupBy("day").agg(f.max("id"), f.count("n")),
    "chosen": lambda t: t.select("id", "day").where("id > 3").groupBy("day").agg(f.min("id")),
    "by text": lambda t: t.groupBy("s").count(),
    "distinct": lambda t: t.agg(f.count_distinct("id"), f.count("*")),
    "distinct of some": lambda t: t.where("id > 25").select("day").distinct(),
    "distinct texts": lambda t: t.select("s", "day").distinct(),
    "sum": lambda t: t.groupBy("day").agg(f.sum("id"), f.count("*")),
}
FIRST_OF_FRAMES: dict[str, tuple[Callable[[DataFrame], DataFrame], int]] = {
    "top": (lambda t: t.orderBy(f.desc("ts")).limit(5), 1),
    "top of some": (lambda t: t.where("id < 25").select("id", "s").sort("id").limit(13), 2),
    "computed": (lambda t: t.select("id", f.upper("s")).orderBy(f.col("id").desc()).limit(3), 1),
    "nulls": (lambda t: t.orderBy("n", "id").limit(3), 4),
    "by another": (lambda t: t.select((-f.col("id")).alias("id")).orderBy("id").limit(3), 4),
    "filtered after": (lambda t: t.orderBy("id").limit(12).where("id > 3"), 2),
}
