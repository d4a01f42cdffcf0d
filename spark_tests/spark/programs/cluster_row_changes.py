"""Merges with executors in processes of their own, one of which dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa
from executors import kill_executor
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from icebergds import NestedField, Schema, load_catalog, load_table
from icebergds.errors import InvalidDataError
from icebergds.spec.types import LONG, STRING

ROWS = 3_000
SCHEMA = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "name", STRING)))


def see(spark: SparkSession, directory: str, *, kills_all: bool) -> dict[str, Any]:
    """What each merge did, by its case and mode.

    Args:
        kills_all: an executor is lost in each mode, not only in copy-on-write.
    """
    # The last 100 are new.
    source = spark.range(ROWS - 200, ROWS + 100, 1, 2).selectExpr("id", "'new' AS name")
    seen: dict[str, Any] = {}
    for mode in ("merge-on-read", "copy-on-write"):
        loses_one = kills_all or mode == "copy-on-write"
        for case in ("undisturbed", *(["executor lost"] if loses_one else []), "failed"):
            path = Path(directory, mode, case.replace(" ", "-"))
            rows = source
            if case == "executor lost":
                path.parent.mkdir(parents=True, exist_ok=True)
                rows = losing_an_executor(source, str(path.with_suffix(".marker")))
            if case == "failed":
                rows = source.selectExpr("nullif(id, 3050) AS id", "name")
            seen[f"{case}, {mode}"] = merge(spark, rows, path, mode)
    return seen


def merge(spark: SparkSession, source: DataFrame, path: Path, mode: str) -> dict[str, Any]:
    catalog = load_catalog("lake", warehouse=str(path))
    properties = {"format-version": "3", "write.merge.mode": mode}
    created = catalog.create_table("db.t", SCHEMA, properties=properties)
    table = load_table(created.location())
    table.append(spark.range(0, ROWS, 1, 3).selectExpr("id", "'old' AS name"))
    before = files_in(path)
    merging = table.merge(source, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    try:
        counts = merging.execute()
    except InvalidDataError as error:
        left = len(files_in(path) - before)
        return {"error": str(error), "files left": left, "snapshots": len(table.snapshots())}
    found = table.scan().to_arrow().to_pylist()
    expected = {i: "old" if i < ROWS - 200 else "new" for i in range(ROWS + 100)}
    return {
        "complete": len(found) == len(expected) and {r["id"]: r["name"] for r in found} == expected,
        "counts": list(astuple(counts)[:4]),
        "snapshots": len(table.snapshots()),
    }


def losing_an_executor(rows: DataFrame, marker: str) -> DataFrame:
    """The rows, of which the second task kills the JVM that it works for, once, at its end."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and not os.path.exists(marker):
            Path(marker).touch()
            time.sleep(2)
            kill_executor()

    return rows.mapInArrow(rows_of, rows.schema)


def files_in(path: Path) -> set[Path]:
    return {file for file in path.rglob("*.p*") if file.suffix in (".parquet", ".puffin")}
