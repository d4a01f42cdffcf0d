"""Correlated sub-queries, where tables have files that are read in different ways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sql_sessions import lake_session

from icebergds import register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]
_PROPERTIES = (
    "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read'"
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A table `t` with deleted rows in one of its two files, and a view `v` of it."""
    session = lake_session(spark, tmp_path)
    session.sql(f"CREATE TABLE lake.db.t (id int, g int) TBLPROPERTIES ({_PROPERTIES})")
    session.sql("INSERT INTO lake.db.t VALUES (1, 1), (2, 2), (7, 1)")
    session.sql("DELETE FROM lake.db.t WHERE id = 7")
    session.sql("INSERT INTO lake.db.t VALUES (3, 1), (4, 2)")
    session.sql("CREATE VIEW lake.db.v AS SELECT * FROM lake.db.t")
    yield session
    register(session)


def _rows(lake: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, lake.sql(query).collect()))


_SUM = "(SELECT sum(id) FROM lake.db.t u WHERE u.g = o.g)"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id, {_SUM} FROM lake.db.t o",
        f"SELECT id, {_SUM} FROM lake.db.v o WHERE id > 0",
        f"SELECT * FROM (SELECT id, {_SUM} AS n FROM lake.db.t o) WHERE n > 1",
        f"WITH o AS (SELECT * FROM lake.db.t) SELECT id, {_SUM} FROM o",
    ],
)
def test_columns_are_computed_by_sub_queries(lake: SparkSession, query: str) -> None:
    assert _rows(lake, query) == [(1, 4), (2, 6), (3, 4), (4, 6)]


def test_columns_tell_whether_a_sub_query_has_rows(lake: SparkSession) -> None:
    exists = "EXISTS (SELECT 1 FROM lake.db.t u WHERE u.g = o.g AND u.id > 3)"
    query = f"SELECT id, {exists} FROM lake.db.t o"
    assert _rows(lake, query) == [(1, False), (2, True), (3, False), (4, True)]


def test_new_values_are_computed_by_sub_queries(lake: SparkSession) -> None:
    lake.sql(f"UPDATE lake.db.t AS o SET id = {_SUM} + 10 WHERE id > 1")
    assert _rows(lake, "SELECT id, g FROM lake.db.t") == [(1, 1), (14, 1), (16, 2), (16, 2)]


def test_explain_names_the_reader_that_reads_the_files(lake: SparkSession) -> None:
    def reader(query: str) -> str:
        return str(lake.sql(f"EXPLAIN {query}").collect()[0][0]).split("\nreader ")[1]

    reason = "no native scan: sub-queries among columns need one reader"
    query = f"SELECT id, {_SUM} FROM lake.db.t o"
    assert [line.strip() for line in reader(query).splitlines()[:2]] == ["icebergds", reason]
    native = "native: Spark's own Parquet reader reads"
    assert native in reader("SELECT id, (SELECT 1) FROM lake.db.t WHERE id = 1")
    assert native in reader("SELECT id FROM lake.db.t")
