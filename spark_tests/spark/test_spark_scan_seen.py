"""Scans that are counted and explained with a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from spark_reads import session_conf
from spark_tables import people

from icebergds import Table, load_table, register
from icebergds.errors import InvalidFilterError

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    directory = tmp_path_factory.mktemp("seen") / "people"
    people(directory).tag("first", 1001)
    return load_table(str(directory))


@pytest.fixture
def native_spark(spark: SparkSession) -> Iterator[SparkSession]:
    register(spark, reader=False)
    yield spark
    spark.conf.unset("spark.icebergpy.native-scans")
    spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


@pytest.mark.parametrize("columns", [None, "name", "id, _deleted"])
@pytest.mark.parametrize(
    "filter",
    [None, "id > 2", "id >= 6", "name = 'z'", "at is null", "id > 100", "name like 'z%' or id = 3"],
)
def test_as_many_rows_are_counted_as_spark_reads(
    spark: SparkSession, table: Table, filter: str | None, columns: str | None
) -> None:
    scan = table.scan(filter, columns)
    assert scan.count(spark) == scan.count() == scan.to_df(spark).count()


def test_no_job_runs_if_metadata_tells_the_count(spark: SparkSession, table: Table) -> None:
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("count", "count")
    assert table.scan(tag="first").count(spark) == 10
    assert list(tracker.getJobIdsForGroup("count")) == []
    assert table.scan().count(spark) == 8
    assert len(tracker.getJobIdsForGroup("count")) > 0


def test_changes_are_counted_by_spark(spark: SparkSession, table: Table) -> None:
    changes = table.changes()
    assert changes.count(spark) == changes.to_df(spark).count() == 12


def test_the_session_s_time_zone_is_the_filter_s(spark: SparkSession, table: Table) -> None:
    scan = table.scan("at < '1970-01-01 01:00:03'")
    with session_conf(spark, "spark.sql.session.timeZone", "Europe/Paris"):
        assert scan.count(spark) == scan.to_df(spark).count() == 2
        assert "1970-01-01 01:00:03" in str(scan.plan_summary())
    with pytest.raises(InvalidFilterError, match="time zone"):
        scan.count()


def test_native_scans_of_the_session_are_explained(
    native_spark: SparkSession, table: Table
) -> None:
    scan = table.scan(tag="first")
    native = "native: Spark's own Parquet reader reads 2 of 2 files"
    assert native in str(scan.plan_summary(native_spark))
    assert native in str(scan.plan_summary())
    assert len(scan.to_df(native_spark).inputFiles()) == 2
    native_spark.conf.set("spark.icebergpy.native-scans", "false")
    assert "2 of 2 files could be read by native scans, which are off" in str(scan.plan_summary())
