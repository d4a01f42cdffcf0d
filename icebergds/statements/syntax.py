"""Asks Spark whether a text is a statement."""

from __future__ import annotations

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from icebergds.spark.session import is_connect
from icebergds.statements.spark_sql import Arguments, spark_sql


def syntax_error(spark: SparkSession, text: str) -> ParseException | None:
    """Spark's error for a text that it cannot parse; None if it can. Nothing is run."""
    try:
        if is_connect(spark):
            # Explained, and so not run; the positions are those of the text behind this line.
            spark_sql(spark, f"EXPLAIN {text}", Arguments()).collect()
        else:
            session = spark._jsparkSession
            session.sessionState().sqlParser().parsePlan(text)
    except ParseException as error:
        return error
    except PySparkException:
        # It is a statement, of what Spark does not find.
        return None
    return None
