"""Random chains of what users do with DataFrames of one load, run alike on any DataFrame.

A step takes earlier frames by their numbers and makes one. Conditions and joins name columns as
text, and through the frames of before, whose attributes have to be those of the frames after.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions as f

from icebergds import Table, load_catalog

_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.int32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("x", pa.float64()),
    ]
)


def rows_of(part: int | None) -> list[dict[str, Any]]:
    base = 60 if part is None else part * 10
    return [
        {
            "id": base + i,
            "p": part,
            "s": None if i == 9 else f"s{(base + i) % 13}",
            "d": date(2024, 1, 1 + i % 4),
            "x": None if i % 3 == 0 else (base + i) / 40,
        }
        for i in range(10)
    ]


def filled(directory: Path, version: int, file_format: str = "parquet") -> Table:
    """A table of which some files have deletes, by position and by key, and some have none.

    Args:
        file_format: of the data files of half of the parts; the other files are Parquet.
    """
    catalog = load_catalog("lake", warehouse=str(directory))
    catalog.create_namespace("db")
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", _SCHEMA, partition_spec="p", properties=properties)
    for part in (0, 1, 2, 3, 4, None):
        if part == 3:
            table.set_properties({"write.format.default": file_format})
        table.append(pa.Table.from_pylist(rows_of(part), _SCHEMA))
    table.set_properties({"write.format.default": "parquet"})
    table.delete("id in (13, 41)")
    keys = pa.table({"id": [22, 23], "p": pa.array([2, 2], pa.int32())})
    table.delete_keys(keys, ["id", "p"], options={"write.upsert.mode": "equality-deletes"})
    return table


COLUMNS = _SCHEMA.names

_TEXTS = [
    "p = 3",
    "p in (1, 4)",
    "p is null",
    "p is not null and id > 20",
    "not (p = 2 or p = 3)",
    "id between 12 and 31",
    "s like 's1%'",
    "s > 's4'",
    "d >= '2024-01-03'",
    "d < date '2024-01-02' + interval 1 day",
    "x <=> null",
    "x > 0.5 or p = 1",
    "id = '17'",
    "p + 1 = 3",
    "year(d) = 2024 and p < 3",
    "rand(7) < 2 and p = 2",
    "nope = 1",
    "p = 1 and s = 's1' or id % 7 = 0",
]
_COLUMNS: list[Callable[[Any], Any]] = [
    lambda c: c("p") == 2,
    lambda c: (c("p") > 1) & (c("id") <= 33),
    lambda c: c("s").startswith("s2") | c("p").isNull(),
    lambda c: ~(c("p").isin(0, 1)),
    lambda c: c("d") == date(2024, 1, 2),
    lambda c: c("x").isNotNull(),
    lambda c: f.lit(3) >= c("p"),
    lambda c: c("id") == f.col("p") * 10 + 1,
    lambda c: c("s").eqNullSafe("s5"),
    lambda c: f.upper(c("s")) == "S3",
]
_HOWS = ["inner", "left", "right", "full", "left_semi", "left_anti"]


@dataclass(frozen=True)
class Step:
    """What makes a frame: `make` gets the frames so far."""

    name: str
    make: Callable[[Sequence[DataFrame | None]], DataFrame]


def program(chance: random.Random, steps: int) -> list[Step]:
    """Steps that go on from frames of before; the first frame is that of the load."""
    return [_step(chance, number) for number in range(1, steps + 1)]


def run(steps: Sequence[Step], root: DataFrame) -> list[tuple[str, Any]]:
    """What each step returned: its name, and columns and rows or the kind of error."""
    frames: list[DataFrame | None] = [root]
    seen: list[tuple[str, Any]] = []
    for step in steps:
        try:
            frame = step.make(frames)
            rows = sorted((tuple(map(str, row)) for row in frame.collect()), key=repr)
            frames.append(frame)
            seen.append((step.name, (frame.columns, rows)))
        except _MissingFrameError:
            frames.append(None)
            seen.append((step.name, "skipped"))
        except PySparkException as error:
            frames.append(None)
            seen.append((step.name, error.getCondition()))
    return seen


class _MissingFrameError(Exception):
    """A step needs a frame that there is not."""


def _step(chance: random.Random, number: int) -> Step:
    kinds = [_where_text, _where_column, _select, _with_column, _join, _union, _cache, _grouped]
    one, other = chance.randrange(number), chance.randrange(number)
    return chance.choices(kinds, [4, 4, 3, 1, 4, 1, 1, 1])[0](chance, one, other)


def _at(frames: Sequence[DataFrame | None], number: int) -> DataFrame:
    frame = frames[number]
    if frame is None:
        raise _MissingFrameError
    return frame


def _where_text(chance: random.Random, one: int, other: int) -> Step:
    text = chance.choice(_TEXTS)
    return Step(f"{one} where {text}", lambda frames: _at(frames, one).where(text))


def _where_column(chance: random.Random, one: int, other: int) -> Step:
    """The columns are named, or those of the frame itself, or of an earlier one."""
    number, way = chance.randrange(len(_COLUMNS)), chance.choice(["named", "own", "earlier"])

    def make(frames: Sequence[DataFrame | None]) -> DataFrame:
        frame = _at(frames, one)
        source = {"named": None, "own": frame, "earlier": _at(frames, min(one, other))}[way]
        column = f.col if source is None else lambda name: source[name]
        return frame.filter(_COLUMNS[number](column))

    return Step(f"{one} where column {number} {way} {other}", make)


def _select(chance: random.Random, one: int, other: int) -> Step:
    names = chance.sample(COLUMNS, chance.randint(2, 5))
    way = chance.choice(["names", "columns", "star", "renamed", "new"])

    def make(frames: Sequence[DataFrame | None]) -> DataFrame:
        frame = _at(frames, one)
        match way:
            case "names":
                return frame.select(*names)
            case "columns":
                return frame.select([frame[name] for name in names])
            case "star":
                return frame.select("*")
            case "renamed":
                # Names change hands.
                return frame.select(f.col("id").alias("p"), f.col("p").alias("id"), "s", "d", "x")
            case _:
                return frame.select("id", (f.col("p") + 1).alias("p"), "s", "d", "x")

    return Step(f"{one} select {way} {names}", make)


def _with_column(chance: random.Random, one: int, other: int) -> Step:
    return Step(
        f"{one} with column", lambda frames: _at(frames, one).withColumn("p", f.col("p") % 3)
    )


def _join(chance: random.Random, one: int, other: int) -> Step:
    how, way = chance.choice(_HOWS), chance.choice(["using", "frames", "aliases", "unequal"])

    def make(frames: Sequence[DataFrame | None]) -> DataFrame:
        left, right = _at(frames, one), _at(frames, other)
        match way:
            case "using":
                return left.join(right, "id", how)
            case "frames":
                return left.join(right, left["id"] == right["id"], how).select(left["id"])
            case "unequal":
                return left.join(right, left["id"] < right["id"], how).select(left["p"])
            case _:
                joined = left.alias("l").join(right.alias("r"), f.expr("l.id = r.id"), how)
                return joined.select("l.id")

    return Step(f"{one} join {other} {how} {way}", make)


def _union(chance: random.Random, one: int, other: int) -> Step:
    return Step(
        f"{one} union {other}", lambda frames: _at(frames, one).unionByName(_at(frames, other))
    )


def _cache(chance: random.Random, one: int, other: int) -> Step:
    return Step(f"{one} cached", lambda frames: _at(frames, one).cache())


def _grouped(chance: random.Random, one: int, other: int) -> Step:
    way = chance.choice(["own", "named", "sum", "whole", "selected", "pivot", "counted"])

    def make(frames: Sequence[DataFrame | None]) -> DataFrame:
        frame = _at(frames, one)
        match way:
            case "own":
                return frame.groupBy(frame["p"]).agg(f.max("id").alias("id"))
            case "named":
                return frame.groupBy("p").agg(f.countDistinct("s"), f.countDistinct("d"))
            case "sum":
                return frame.groupby("s", "p").sum("id")
            case "whole":
                return frame.agg(f.max("id").alias("id"), f.count("x").alias("p"))
            case "selected":
                return frame.select(f.max("id").alias("id"), f.min("s").alias("s"))
            case "pivot":
                return frame.groupBy("p").pivot("d").count()
            case _:
                return frame.sparkSession.range(frame.count())

    return Step(f"{one} grouped {way}", make)
