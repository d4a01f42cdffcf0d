"""Whatever is done with the DataFrames of a load, rows and lineage are those of plain Spark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from effort import rounds
from frame_programs import filled, program, run
from pyspark.sql import SparkSession

from icebergds import register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("native", "file_format"),
    [
        (True, "parquet"),
        # Spark's own reader does not read it.
        (True, "orc"),
        (False, "parquet"),
    ],
)
def test_rows_and_lineage_are_those_of_plain_spark(
    front: SparkSession,
    tmp_path: Path,
    rng: random.Random,
    version: int,
    native: bool,
    file_format: str,
) -> None:
    register(front, native_scans=native)
    table = filled(tmp_path / "lake", version, file_format)
    plain = tmp_path / "plain"
    front.createDataFrame(table.scan().to_arrow()).write.parquet(str(plain))
    for _ in range(rounds("ICEBERGDS_FRAME_PROGRAMS", pull=1, nightly=10)):
        steps = program(rng, 10)
        expected = run(steps, front.read.parquet(str(plain)))
        found = run(steps, front.read.format("icebergpy").load(table.location()))
        assert found == expected
        front.catalog.clearCache()
