"""Tables that Java Iceberg wrote read as Java Iceberg reads them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from chosen_tables import CHOSEN
from effort import some
from oracles.index import ExpectedTable
from oracles.read import mismatch, read_rows
from oracles.registry import TABLES
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds.errors import UnsupportedFeatureError

pytestmark = [pytest.mark.spark, pytest.mark.interop]

_READ = [name for name in CHOSEN if TABLES[name].refused is None]
_WITH_DELETES = [name for name in _READ if TABLES[name].has_deletes]
_TRAVELLED = some(_READ, 50)
_WITH_METADATA_COLUMNS = some(_READ, 60)
_REFUSED = [name for name in CHOSEN if name not in _READ]


@pytest.mark.parametrize("name", _READ)
def test_rows_are_those_that_java_reads(
    spark: SparkSession, java_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = java_tables[name]
    problem = mismatch(spark, table.location, table.current)
    assert problem is None, problem


@pytest.mark.parametrize("name", _WITH_METADATA_COLUMNS)
def test_metadata_columns_are_those_that_java_reads(
    spark: SparkSession, java_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = java_tables[name]
    assert table.metadata_columns is not None
    problem = mismatch(spark, table.location, table.metadata_columns)
    assert problem is None, problem


@pytest.mark.parametrize("name", _WITH_DELETES)
def test_deleted_rows_are_marked_as_java_marks_them(
    spark: SparkSession, java_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = java_tables[name]
    if table.deleted_rows is None:
        pytest.skip("Java Iceberg on Spark cannot read this table with _deleted")
    problem = mismatch(spark, table.location, table.deleted_rows)
    assert problem is None, problem


@pytest.mark.parametrize("name", _TRAVELLED)
def test_time_travel_reads_what_java_reads(
    spark: SparkSession, java_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = java_tables[name]
    travels = some(table.time_travel, 2)
    found = [mismatch(spark, table.location, travel) for travel in travels]
    problems = [problem for problem in found if problem is not None]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", _REFUSED)
def test_what_is_not_read_is_refused_by_name(
    spark: SparkSession, java_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = java_tables[name]
    with pytest.raises((PySparkException, UnsupportedFeatureError)) as refusal:
        read_rows(spark, table.location, table.current)
    assert str(TABLES[name].refused) in str(refusal.value)
    assert "UnsupportedFeatureError" in f"{refusal.typename}: {refusal.value}"
