"""Asks Spark whether a text is a statement."""

from __future__ import annotations

import re

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from icebergds.spark.session import is_connect
from icebergds.statements.spark_sql import Arguments, spark_sql

# A line of its own, so that the places in all other lines are those of the text.
_EXPLAIN = "EXPLAIN\n"
_LINE = re.compile(r"(?<=\(line )\d+(?=, pos)")


def syntax_error(spark: SparkSession, text: str) -> ParseException | None:
    """Spark's error for a text that it cannot parse; None if it can. Nothing is run."""
    try:
        if is_connect(spark):
            # Explained, and so not run.
            spark_sql(spark, f"{_EXPLAIN}{text}", Arguments()).collect()
        else:
            session = spark._jsparkSession
            session.sessionState().sqlParser().parsePlan(text)
    except ParseException as error:
        message = getattr(error, "_message", None)
        if is_connect(spark) and isinstance(message, str):
            vars(error)["_message"] = without_explain(message)
        return error
    except PySparkException:
        # It is a statement, of what Spark does not find.
        return None
    return None


def without_explain(message: str) -> str:
    """What Spark says of an explained text, as it would say it of the text alone."""
    placed = _LINE.sub(lambda line: str(int(line[0]) - 1), message)
    return re.sub(rf"(== SQL[^\n]*==\n){_EXPLAIN}", r"\1", placed)
