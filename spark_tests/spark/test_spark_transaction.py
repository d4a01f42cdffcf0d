"""Transactions whose steps take DataFrames, and what is read in and after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built.contents import unused_files
from pyspark.sql import SparkSession, functions as f
from spark_changes import COPY_ON_WRITE, MERGE_ON_READ, people, rows_of

from icebergds import Table, load_table
from icebergds.errors import ValidationError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_SCHEMA = "id long, part int, name string"


@pytest.fixture(params=[MERGE_ON_READ, COPY_ON_WRITE])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return people(tmp_path, 3, request.param, count=4, partition_by="")


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> Any:
    return spark.createDataFrame(list(rows), _SCHEMA)


def test_statements_see_the_rows_of_those_before_them(spark: SparkSession, table: Table) -> None:
    before = len(table.metadata.metadata_log)
    with table.transaction() as tx:
        tx.append(frame(spark, (10, 0, "ten"), (11, 0, "eleven")))
        assert tx.update({"name": f.lit("TEN")}, "id = 10").updated == 1
        source = frame(spark, (11, 0, "merged"), (12, 0, "twelve"))
        merge = tx.merge(source, "target.id = source.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        assert tx.delete(f.col("id") < 4).deleted == 4
        tx.update_schema().rename_column("name", "title").commit()
        shown = tx.scan("id > 10").to_df(spark).orderBy("id").collect()
        assert [row.title for row in shown] == ["merged", "twelve"]
        assert len(rows_of(load_table(table.location()))) == 4
    assert rows_of(table) == [(10, 0, "TEN"), (11, 0, "merged"), (12, 0, "twelve")]
    assert len(load_table(table.location()).metadata.metadata_log) == before + 1
    assert unused_files(table) == set()


def test_a_statement_is_refused_if_its_rows_were_changed_meanwhile(
    spark: SparkSession, table: Table
) -> None:
    def change() -> None:
        with table.transaction() as tx:
            tx.append(frame(spark, (10, 0, "ten")))
            tx.delete("id >= 0")
            load_table(table.location()).append(frame(spark, (20, 0, "late")))

    before = rows_of(table)
    with pytest.raises(ValidationError, match="moved branch 'main'"):
        change()
    assert rows_of(table) == sorted([*before, (20, 0, "late")], key=str)
    assert unused_files(table.refresh()) == set()


def test_a_single_statement_is_validated_as_outside_of_a_transaction(
    spark: SparkSession, table: Table
) -> None:
    with table.transaction() as tx:
        tx.update_schema().add_column("new", "int").commit()
        tx.delete("id = 1")
        load_table(table.location()).append(frame(spark, (20, 0, "late")))
    assert [row[0] for row in rows_of(table)] == [0, 2, 20, 3]
    assert unused_files(table) == set()


def test_files_of_an_abandoned_statement_are_deleted(spark: SparkSession, table: Table) -> None:
    def change() -> None:
        with table.transaction() as tx:
            tx.append(frame(spark, (10, 0, "ten")))
            tx.update({"name": f.lit("x")}, "id = 10")
            raise KeyError

    with pytest.raises(KeyError):
        change()
    assert unused_files(table) == set()
