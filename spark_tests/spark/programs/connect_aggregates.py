"""What metadata answers of DataFrames of Spark Connect, and which files first rows need."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f

sys.path.append(str(Path(__file__).parents[1]))

from aggregate_frames import (
    DAYS,
    FIRST_OF_FRAMES,
    FRAMES,
    READ_IN_PART_FRAMES,
    SCHEMA,
    of_day,
)

from icebergds import load_catalog, register

_SETTING = "spark.icebergpy.metadata-aggregates"


def see(spark: SparkSession, directory: str) -> dict[str, Any]:
    """Queries that give other rows than reading, and those that fail without data files."""
    register(spark)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    catalog = load_catalog("aggregates", warehouse=directory)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, partition_spec="day")
    for number in range(DAYS):
        table.append(of_day(number))
    frame = spark.read.format("icebergpy").load(table.location())
    days = pa.concat_tables([of_day(day) for day in range(DAYS)]).combine_chunks()
    plain = spark.createDataFrame(days)
    data = Path(table.location()) / "data"
    seen: dict[str, Any] = {"different": [], "read": [], "first": []}
    for name, ask in {**FRAMES, **READ_IN_PART_FRAMES}.items():
        answered = _rows(ask(frame))
        spark.conf.set(_SETTING, "false")
        if answered != _rows(ask(frame)):
            seen["different"].append(name)
        spark.conf.unset(_SETTING)
    with _without(sorted(data.iterdir())):
        for name, ask in FRAMES.items():
            if _fails(ask(frame)):
                seen["read"].append(name)
        seen["count"] = [frame.where("id >= 20").count(), frame.where(f.col("id") < 0).count()]
    for name, (ask, _) in FIRST_OF_FRAMES.items():
        if ask(frame).collect() != ask(plain).collect():
            seen["first"].append(name)
    with _without(sorted(data.iterdir())[:-1]):
        top, _ = FIRST_OF_FRAMES["top"]
        seen["fail without older files"] = [_fails(top(frame)), _fails(frame)]
    by_day = frame.groupBy("day").agg(f.count("*").alias("n"))
    seen["lineage"] = [
        str(row.day)
        for row in by_day.where(by_day.n > 3).orderBy(frame.day.desc()).limit(2).collect()
    ]
    seen["joined"] = by_day.join(frame, "day").count()
    spark.conf.set("spark.sql.retainGroupColumns", "false")
    seen["keys are kept"] = [len(row) for row in frame.groupBy("day").count().collect()]
    spark.conf.unset("spark.sql.retainGroupColumns")
    spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    return seen


def _rows(frame: DataFrame) -> tuple[str, list[str]]:
    return frame.schema.simpleString(), sorted(map(str, frame.collect()))


def _fails(frame: DataFrame) -> bool:
    try:
        frame.collect()
    except Exception:
        return True
    return False


@contextmanager
def _without(folders: list[Path]) -> Iterator[None]:
    """Without data files in the folders."""
    for folder in folders:
        shutil.move(folder, folder.parents[1] / f"away-{folder.name}")
    yield
    for folder in folders:
        shutil.move(folder.parents[1] / f"away-{folder.name}", folder)
