"""Statements during which another writer adds a row that they would have changed.

At `serializable` isolation each must fail and change nothing; at `snapshot` isolation each must
pass, and leave the row that was added.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pytest
from effort import rounds
from pyspark.sql import Column, SparkSession, functions as f
from spark_changes import COPY_ON_WRITE, MERGE_ON_READ, meanwhile_appended, people, rows_of

from icebergds import Table, load_table
from icebergds.errors import ValidationError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

# 20 take five minutes.
ROUNDS = rounds("ICEBERGDS_ROUNDS", pull=1, nightly=20)

Statement: TypeAlias = Callable[[SparkSession, Table, int], None]


def meanwhile(table: Table, number: int) -> Column:
    """True, and adds a row to the table when it is first computed."""
    location = table.location()
    marker = f"{location}/metadata/round-{number}"

    def append(_):  # type: ignore[no-untyped-def]
        # By value: workers do not have this module.
        try:
            open(marker, "x").close()
        except FileExistsError:
            # Also of a task beside this one.
            return True
        added = {"id": [number], "part": pa.array([0], pa.int32()), "name": ["late"]}
        load_table(location).append(pa.table(added))
        return True

    return f.udf(append, "boolean")("id")


def delete(_: SparkSession, table: Table, number: int) -> None:
    table.delete((f.col("id") >= 0) & meanwhile(table, number))


def update(_: SparkSession, table: Table, number: int) -> None:
    table.update({"name": "'new'"}, (f.col("id") >= 0) & meanwhile(table, number))


def merge(spark: SparkSession, table: Table, number: int) -> None:
    source = spark.createDataFrame(
        [(i, 0, "new") for i in range(4)], "id long, part int, name string"
    )
    source = meanwhile_appended(source.coalesce(1), table, (number, 0, "late"))
    table.merge(source, "target.part = 0").when_matched_delete("target.id = source.id").execute()


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
@pytest.mark.parametrize("statement", [delete, update, merge])
def test_serializable_statements_fail(
    spark: SparkSession, tmp_path: Path, statement: Statement, mode: str
) -> None:
    table = people(tmp_path, 2, mode, count=4, partition_by="")
    for number in range(100, 100 + ROUNDS):
        before = rows_of(table)
        with pytest.raises(ValidationError):
            statement(spark, table, number)
        assert rows_of(table) == sorted([*before, (number, 0, "late")], key=str)


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
@pytest.mark.parametrize("statement", [delete, update, merge])
def test_statements_of_snapshot_isolation_pass(
    spark: SparkSession, tmp_path: Path, statement: Statement, mode: str
) -> None:
    levels = {f"write.{s.__name__}.isolation-level": "snapshot" for s in (delete, update, merge)}
    for number in range(100, 100 + ROUNDS):
        table = people(tmp_path / str(number), 2, mode, count=4, partition_by="", properties=levels)
        statement(spark, table, number)
        assert (number, 0, "late") in rows_of(table)
        assert len(rows_of(table)) == (
            5 if statement is update else 1 if statement is delete else 3
        )
