"""`examples/maintenance.py` makes a table healthy."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icebergds import load_table

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "maintenance.py"


def test_example_makes_a_table_healthy_and_changes_no_row(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(_EXAMPLE))
    example["run"](spark, tmp_path)
    printed = capsys.readouterr().out
    assert "650 rows as before, and 0 rows in the change feed" in printed
    assert printed.count("advice 1") == 1
    table = load_table(tmp_path / "db" / "accounts")
    assert table.health().is_healthy
    assert len(table.snapshots()) == 1
