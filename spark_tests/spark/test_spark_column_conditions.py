"""Conditions given as Columns are planned with like the same conditions as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import column_conditions as conditions
import pytest
from pyspark.sql import SparkSession, functions as f
from spark_reads import run_program, session_conf

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

PARTLY = ("id = 2 OR half = 1", "upper(name) = 'N2'", "id + 1 = 3")


@pytest.fixture(scope="module", params=["classic", "connect"])
def seen(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """What deletes, overwrites and merges commit."""
    directory = tmp_path_factory.mktemp("conditions")
    if request.param == "connect":
        return run_program(
            "connect_conditions.py", str(directory), directory=directory, through_connect=True
        )
    found: dict[str, Any] = conditions.see(spark, str(directory))
    return found


def test_a_column_commits_what_the_same_text_does(seen: dict[str, Any]) -> None:
    different = {
        text: by_change
        for text, by_change in seen["conditions"].items()
        if any(by_text != by_column for by_text, by_column in by_change)
    }
    assert different == {}


def test_whole_files_are_dropped_as_metadata(seen: dict[str, Any]) -> None:
    with_deletes = {
        text
        for text, by_change in seen["conditions"].items()
        if any(of_column.get("added-delete-files") for _, of_column in by_change)
    }
    assert with_deletes <= set(PARTLY)
    assert seen["conditions"]["day = '2026-01-02'"][0][1] == {
        "commits": True,
        "deleted-data-files": "1",
        "added-data-files": None,
        "added-delete-files": None,
        "deleted-records": "2",
        "operation": "delete",
        "rows": ["(1, 0)", "(1, 1)", "(3, 0)", "(3, 1)", "(None, 0)", "(None, 1)"],
    }


def test_merges_conflict_only_with_rows_that_their_columns_may_match(seen: dict[str, Any]) -> None:
    assert seen["merges"] == {
        "matched, text": [2, "ValidationError"],
        "matched, column": [2, "ValidationError"],
        "matched, expr": [2, "ValidationError"],
        "by source, text": [2, "ValidationError"],
        "by source, column": [2, "ValidationError"],
    }


def test_columns_of_the_sources_frame_are_not_those_of_the_table(seen: dict[str, Any]) -> None:
    # The table has columns with these names, whose values are others.
    assert seen["by frame"] == {"compared": 2, "listed": 4, "equal": 4}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_nulls_are_in_an_empty_list_as_the_session_is_set(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    table = conditions.table_of_days(str(tmp_path), "days")
    with session_conf(spark, "spark.sql.ansi.enabled", ansi):
        assert table.delete(f.col("id").isin([]), spark=spark).snapshot_id is None
        table.delete(~f.col("id").isin([]), spark=spark)
    left = table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert left == ([] if ansi == "true" else [None, None])
