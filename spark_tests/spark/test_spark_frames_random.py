"""Whatever is done with the DataFrames of a load, rows and lineage are those of plain Spark."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import rounds
from frame_programs import program, run
from pyspark.sql import SparkSession

from icebergds import Table, load_catalog

pytestmark = pytest.mark.spark

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


def filled(directory: Path, version: int) -> Table:
    """A table of which some files have deletes, by position and by key, and some have none."""
    catalog = load_catalog("lake", warehouse=str(directory))
    catalog.create_namespace("db")
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", _SCHEMA, partition_spec="p", properties=properties)
    for part in (0, 1, 2, 3, 4, None):
        table.append(pa.Table.from_pylist(rows_of(part), _SCHEMA))
    table.delete("id in (13, 41)")
    table.delete_keys(pa.table({"id": [22, 23], "p": pa.array([2, 2], pa.int32())}), ["id", "p"])
    return table


@pytest.mark.parametrize("version", [2, 3])
def test_rows_and_lineage_are_those_of_plain_spark(
    front: SparkSession, tmp_path: Path, rng: random.Random, version: int
) -> None:
    table = filled(tmp_path / "lake", version)
    plain = tmp_path / "plain"
    front.createDataFrame(table.scan().to_arrow()).write.parquet(str(plain))
    for _ in range(rounds("ICEBERGDS_FRAME_PROGRAMS", pull=3, nightly=150)):
        steps = program(rng, 10)
        expected = run(steps, front.read.parquet(str(plain)))
        found = run(steps, front.read.format("icebergpy").load(table.location()))
        assert found == expected
        front.catalog.clearCache()
