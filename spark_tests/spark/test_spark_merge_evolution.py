"""Merges that add the columns of their source to the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built.contents import unused_files
from pyspark.sql import DataFrame, SparkSession
from spark_changes import COPY_ON_WRITE, MERGE_ON_READ, people

from icebergds import Table, load_table
from icebergds.errors import InvalidDataError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(params=[MERGE_ON_READ, COPY_ON_WRITE])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Rows 0 and 1, of the columns `id`, `part` and `name`."""
    return people(tmp_path, 3, request.param, count=2, partition_by="")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def source_of(spark: SparkSession) -> DataFrame:
    """A new column, a struct of it, and none of `part`; `name` is there."""
    return spark.sql(
        "SELECT * FROM VALUES (1L, 'one', 7, named_struct('x', 1)), "
        "(2L, 'two', 8, named_struct('x', 2)) AS t(id, name, age, at)"
    )


def test_new_columns_are_added_in_the_commit_of_the_merge(
    spark: SparkSession, table: Table
) -> None:
    before = len(table.metadata.metadata_log)
    counts = (
        table.merge(source_of(spark), "target.id = source.id")
        .with_schema_evolution()
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    assert (counts.updated, counts.inserted) == (1, 1)
    assert rows_of(table) == [
        (0, 0, "n0", None, None),
        (1, 1, "one", 7, {"x": 1}),
        (2, None, "two", 8, {"x": 2}),
    ]
    found = load_table(table.location())
    assert rows_of(found) == rows_of(table)
    assert len(found.metadata.metadata_log) == before + 1
    assert unused_files(found) == set()


def test_without_evolution_a_source_of_other_columns_is_refused(
    spark: SparkSession, table: Table
) -> None:
    merge = table.merge(source_of(spark), "target.id = source.id").when_matched_update_all()
    with pytest.raises(InvalidDataError, match="the source has no column part"):
        merge.execute()


def test_a_merge_that_fails_adds_no_column(spark: SparkSession, table: Table) -> None:
    source = source_of(spark)
    merge = table.merge(source.union(source), "target.id = source.id").with_schema_evolution()
    with pytest.raises(InvalidDataError, match="more than one row"):
        merge.when_matched_update_all().execute()
    assert [field.name for field in table.refresh().schema().fields] == ["id", "part", "name"]
    assert unused_files(table) == set()


def test_a_merge_of_a_transaction_adds_its_columns_with_it(
    spark: SparkSession, table: Table
) -> None:
    with table.transaction() as tx:
        merge = tx.merge(source_of(spark), "target.id = source.id").with_schema_evolution()
        merge.when_not_matched_insert_all().execute()
        assert load_table(table.location()).schema().find_id("age") is None
        tx.delete("age = 8")
    assert rows_of(table) == [(0, 0, "n0", None, None), (1, 1, "n1", None, None)]
