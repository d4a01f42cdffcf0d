"""Checks with Spark whether a text is a statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from icebergds.spark.jvm import Private, in_jvm, with_private
from icebergds.spark.session import is_connect
from icebergds.statements.spark_sql import Arguments, spark_sql

# On a line of its own, so that positions in the other lines remain those of the text.
_EXPLAIN = "EXPLAIN\n"
_LINE = re.compile(r"(?<=\(line )\d+(?=, pos)")


def syntax_error(spark: SparkSession, text: str) -> ParseException | None:
    """Spark's error for a text that it cannot parse; None if it can. Nothing is run.

    Args:
        spark: the session whose settings say how texts are parsed.
    """

    def by_parser() -> ParseException | None:
        session = spark._jsparkSession
        with _active(spark):
            return _parse_error(lambda: session.sessionState().sqlParser().parsePlan(text))

    def by_explaining() -> ParseException | None:
        # EXPLAIN keeps it from running.
        explained = f"{_EXPLAIN}{text}"
        error = _parse_error(lambda: spark_sql(spark, explained, Arguments()).collect())
        message = getattr(error, "_message", None)
        if error is not None and isinstance(message, str):
            vars(error)["_message"] = without_explain(message)
        return error

    if is_connect(spark):
        return by_explaining()
    return with_private(Private.STATEMENTS, by_parser, by_explaining)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Makes a classic session the one whose settings the JVM's parser takes, in the block."""
    sessions = in_jvm(spark, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


# The first version of Spark that can parse all that we read.
_NEWEST = (4, 3)


def knows_newest_words(spark: SparkSession) -> bool:
    """Whether Spark can parse all that we read, so that its errors are to be believed."""
    return tuple(map(int, spark.version.split(".")[:2])) >= _NEWEST


def _parse_error(parse: Callable[[], object]) -> ParseException | None:
    try:
        parse()
    except ParseException as error:
        return error
    except PySparkException:
        # It is a statement, but Spark does not find what it names.
        return None
    return None


def without_explain(message: str) -> str:
    """Rewrites Spark's message about an explained text to one about the text alone."""
    placed = _LINE.sub(lambda line: str(int(line[0]) - 1), message)
    return re.sub(rf"(== SQL[^\n]*==\n){_EXPLAIN}", r"\1", placed)
