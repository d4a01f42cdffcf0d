"""Position deletes are rewritten by tasks of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.api_tables import ids_of, new_table, rows
from pyspark.sql import SparkSession


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_statements_are_merged(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    table = new_table(tmp_path, properties={"write__delete__mode": "merge-on-read"})
    table.append(rows(*range(10)))
    for number in (2, 5):
        table.delete(f"id = {number}", spark=spark)
    table.upgrade(version)
    done = table.rewrite_position_delete_files(options={"min-input-files": "2"}, spark=spark)
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 1)
    assert ids_of(table) == [0, 1, 3, 4, 6, 7, 8, 9]
