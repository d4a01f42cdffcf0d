"""Makes the DataFrames that statements return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def nothing(spark: SparkSession) -> DataFrame:
    """The result of a statement that has none: no rows and no columns."""
    return spark.createDataFrame([], StructType([]))


def rows(spark: SparkSession, columns: str, values: Iterable[Sequence[Any]]) -> DataFrame:
    """Rows as a DataFrame.

    Args:
        columns: names and types as Spark SQL writes them, such as `namespace string NOT NULL`.
    """
    return spark.createDataFrame([tuple(row) for row in values], columns)
