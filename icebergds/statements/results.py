"""Makes the DataFrames that statements return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.operations.write.row_counts import RowCounts


def nothing(spark: SparkSession) -> DataFrame:
    """The result of a statement that returns none: no rows and no columns."""
    return spark.createDataFrame([], StructType([]))


def inserted_rows(spark: SparkSession, counts: RowCounts) -> DataFrame:
    """The result of INSERT, named as in Delta Lake: replaced rows do not count."""
    return _counted(spark, affected=counts.inserted, inserted=counts.inserted)


def updated_rows(spark: SparkSession, counts: RowCounts) -> DataFrame:
    """The result of UPDATE."""
    return _counted(spark, affected=counts.updated)


def deleted_rows(spark: SparkSession, counts: RowCounts) -> DataFrame:
    """The result of DELETE: null if only an upper bound is known."""
    return _counted(spark, affected=counts.deleted if counts.is_exact else None)


def merged_rows(spark: SparkSession, counts: RowCounts) -> DataFrame:
    """The result of MERGE."""
    return _counted(
        spark,
        affected=counts.updated + counts.deleted + counts.inserted,
        updated=counts.updated,
        deleted=counts.deleted,
        inserted=counts.inserted,
    )


def _counted(spark: SparkSession, **counts: int | None) -> DataFrame:
    columns = ", ".join(f"num_{name}_rows bigint" for name in counts)
    return rows(spark, columns, [tuple(counts.values())])


def rows(spark: SparkSession, columns: str, values: Iterable[Sequence[Any]]) -> DataFrame:
    """Rows as a DataFrame.

    Args:
        columns: names and types as Spark SQL writes them, such as `namespace string NOT NULL`.
    """
    return spark.createDataFrame([tuple(row) for row in values], columns)
