"""Sends rows to Python in batches limited only by row count, if rows cannot be too wide.

Spark computes the size of a batch for every row that it adds, to keep to
`spark.sql.execution.arrow.maxBytesPerBatch`. That takes half of a write. Here the types of columns
determine how many rows a batch may have, and Spark counts only rows, in a copy of the session: no
other query of the user's session changes.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from icebergds.spark.jvm import Private, plan_dataset, with_private
from icebergds.spark.session import is_connect

FAST_WRITES = "spark.icebergpy.fast-writes"
"""The session setting that, if false, makes writes leave Spark's batches unchanged."""

MAX_BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
UNBOUNDED = "2147483647"
"""With this value, Spark does not count the bytes that it sends to Python."""

_MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_BYTES = 64 * 2**20
# The assumed average size of a text in a batch; longer texts make the batch larger.
# Batches of a thousand rows take a tenth longer than those of four thousand.
_TEXT_BYTES = 32 * 2**10
# Below this, counting bytes costs less than copying the session.
_FEW_BYTES = 32 * 2**20
_FIXED = (
    *(BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, NullType),
    *(DateType, TimestampType, TimestampNTZType, DayTimeIntervalType, DecimalType),
)


def in_quick_batches(df: DataFrame) -> DataFrame:
    """A DataFrame whose next `mapInArrow` gets batches that Spark limits only by row count.

    Returns `df` itself if this is not known to be safe or worth it: for columns of binary values,
    lists and maps, for few rows, with `Observation`s, and through Spark Connect.
    """
    spark = df.sparkSession
    most = _most_rows(df.schema)
    if most is None or is_connect(spark) or spark.conf.get(FAST_WRITES, "true") == "false":
        return df
    known = int(spark.conf.get(_MAX_ROWS, "10000") or 0)
    if known <= 0 or spark.conf.get(MAX_BYTES_PER_BATCH, None) == UNBOUNDED:
        return df
    return with_private(Private.BATCHES, lambda: _in_copy(df, spark, min(known, most)), lambda: df)


def _in_copy(df: DataFrame, spark: SparkSession, rows: int) -> DataFrame:
    execution: Any = df._jdf.queryExecution()
    plan = execution.analyzed()
    # Spark refuses to write the rows of a stream so.
    if plan.isStreaming():
        return df
    # Observations see only queries of their own session, and wait for them; values written out in
    # a statement have no size before Spark optimizes them.
    if re.search("CollectMetrics|InlineTable", plan.toString()):
        return df
    # Optimizing a plan takes longer than writing few rows, and it is optimized once more.
    if _size(plan) < _FEW_BYTES or _size(execution.optimizedPlan()) < _FEW_BYTES:
        return df
    # A new copy each time, because it must have the files that the user added to the session.
    original: Any = spark._jsparkSession
    copy = original.cloneSession()
    copy.conf().set(MAX_BYTES_PER_BATCH, UNBOUNDED)
    copy.conf().set(_MAX_ROWS, str(rows))
    return DataFrame(plan_dataset(spark, copy, plan), spark)


def _size(plan: Any) -> int:
    """Spark's estimate of the size of a plan's rows, in bytes."""
    return int(str(plan.stats().sizeInBytes()))


def _most_rows(schema: StructType) -> int | None:
    """How many rows a batch may have; None if columns may be of any width."""
    widths = [_width(field.dataType) for field in schema.fields]
    known = [width for width in widths if width is not None]
    return _BATCH_BYTES // max(1, sum(known)) if len(known) == len(widths) else None


def _width(kind: DataType) -> int | None:
    """Bytes of a value in a batch; None if unlimited."""
    if isinstance(kind, _FIXED):
        return 16
    if isinstance(kind, StringType):
        return _TEXT_BYTES
    if isinstance(kind, StructType):
        widths = [_width(field.dataType) for field in kind.fields]
        known = [width for width in widths if width is not None]
        return sum(known) if len(known) == len(widths) else None
    return None
