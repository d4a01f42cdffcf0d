"""Batches of large writes, which Spark bounds by rows alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession, functions as f
from spark_reads import session_conf

from icebergds.spark import jvm
from icebergds.spark.quick_batches import in_quick_batches

pytestmark = pytest.mark.spark

_MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def largest_batch(df: DataFrame) -> int:
    """The most rows that Python gets at once."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    counted = df.limit(20_000).mapInArrow(count, "rows bigint")
    most: int = counted.agg(f.max("rows")).collect()[0][0]
    return most


@pytest.fixture
def large(spark: SparkSession) -> DataFrame:
    """Rows that Spark takes for many bytes."""
    return spark.range(8_000_000).withColumn("s", f.col("id").cast("string"))


def test_rows_alone_bound_batches(spark: SparkSession, large: DataFrame) -> None:
    with session_conf(spark, _MAX_BYTES, "1000"):
        assert largest_batch(large) < 100
        quick = in_quick_batches(large)
        assert spark.conf.get(_MAX_BYTES) == "1000"
        assert largest_batch(quick) == 64 * 2**20 // (32768 + 16)
        assert largest_batch(in_quick_batches(large.select("id"))) == 10_000


def test_the_users_bound_of_rows_holds(spark: SparkSession, large: DataFrame) -> None:
    with session_conf(spark, _MAX_ROWS, "77"):
        assert largest_batch(in_quick_batches(large)) == 77


def test_text_in_structs_counts(large: DataFrame) -> None:
    texts = large.select(f.struct(*(f.col("s").alias(f"s{i}") for i in range(8))))
    assert largest_batch(in_quick_batches(texts)) == 64 * 2**20 // (8 * 32768)


@pytest.mark.parametrize("kind", ["binary", "array<bigint>", "map<string,string>", "variant"])
def test_values_of_any_width_are_counted(large: DataFrame, kind: str) -> None:
    df = large.select(f.lit(None).cast(kind), "id")
    assert in_quick_batches(df) is df


def test_few_rows_are_left_to_spark(spark: SparkSession) -> None:
    df = spark.range(1000)
    assert in_quick_batches(df) is df


def test_observations_are_told(spark: SparkSession, large: DataFrame) -> None:
    seen = Observation()
    df = large.observe(seen, f.count("*").alias("rows"))
    assert in_quick_batches(df) is df
    df.limit(3).collect()
    assert seen.get["rows"] > 0


def test_values_of_a_statement_are_left_to_spark(spark: SparkSession) -> None:
    now = spark.sql("SELECT * FROM VALUES (1, current_timestamp())")
    assert in_quick_batches(now) is now
    assert not jvm._logged


def test_a_session_may_refuse(spark: SparkSession, large: DataFrame) -> None:
    with session_conf(spark, "spark.icebergpy.fast-writes", "false"):
        assert in_quick_batches(large) is large
