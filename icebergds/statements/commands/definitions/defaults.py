"""Evaluates the expressions of defaults: Iceberg's tables keep values."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spark.types import spark_type
from icebergds.spec.types import TIME, IcebergType
from icebergds.statements.spark_sql import Arguments, spark_sql

# What has another value whenever it is asked for; and queries, whose rows change.
_CHANGING = frozenset(
    """
    CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA CURRENT_DATE CURDATE CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_TIMEZONE CURRENT_USER LOCALTIMESTAMP MONOTONICALLY_INCREASING_ID NOW
    RAND RANDN RANDOM RANDSTR SELECT SESSION_USER SHUFFLE SPARK_PARTITION_ID UNIFORM USER UUID
    """.split()  # noqa: SIM905
)


def evaluate_default(spark: SparkSession, column: str, field_type: IcebergType, text: str) -> Any:
    """The value of a default for a column; None for NULL.

    Args:
        text: an expression of Spark SQL.

    Raises:
        UnsupportedFeatureError: its value changes with time.
        InvalidStatementError: Spark cannot evaluate it, or its value is none of the column's type.
    """
    for token in sql_tokens(text) or ():
        if token.is_word(*_CHANGING):
            raise UnsupportedFeatureError(
                f"column {column}: the default {text} has another value each time, and Iceberg's "
                "tables keep defaults as values; give a literal, or fill the column in INSERT"
            )
    if text.strip().upper() == "NULL":
        return None
    # Columns of times are whole numbers in DataFrames.
    wanted = "time(6)" if field_type == TIME else spark_type(field_type).simpleString()
    try:
        found = spark_sql(spark, f"SELECT CAST(({text}) AS {wanted}) FROM VALUES (0)", Arguments())
        return found.toArrow().column(0)[0].as_py()
    except PySparkException as error:
        reason = str(error).partition("\n")[0]
        raise InvalidStatementError(
            f"column {column}: the default {text} is no value of {field_type}: {reason}"
        ) from error
