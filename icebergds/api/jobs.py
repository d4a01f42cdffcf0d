"""Runs tasks of methods on Spark or in this process, describes jobs; imports Spark lazily."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icebergds.errors import InvalidFilterError
from icebergds.expr.nodes import Expr
from icebergds.operations.runner import LocalRunner, Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Methods that are also SQL statements are shown as in SQL.
_STATEMENTS = {"delete": "DELETE", "update": "UPDATE", "merge": "MERGE"}


@contextmanager
def describing_jobs(what: str, table: str) -> Iterator[None]:
    """Describes the jobs of the block as work on a table; without pyspark no jobs run."""
    if "pyspark" not in sys.modules:
        yield
        return
    from icebergds.spark.job_descriptions import describing

    with describing(f"{_STATEMENTS.get(what, what)} {table}"):
        yield


def task_runner(spark: SparkSession | None) -> Runner:
    """Runs tasks on a session, or on the active one; in this process if there is none."""
    if not _may_have_session(spark):
        return LocalRunner()
    from icebergds.spark.runner import runner_of

    return runner_of(spark)


def zone_of(spark: SparkSession | None) -> str | None:
    """The time zone of a session, or of the active one; None if there is none."""
    if not _may_have_session(spark):
        return None
    from icebergds.spark.session import session_zone

    return session_zone(spark)


def filter_argument(name: str, value: object) -> str | Expr | None:
    """A condition as Spark SQL, or as a bound filter; or None.

    Raises:
        InvalidFilterError: it is neither.
    """
    return value if isinstance(value, Expr) else sql_argument(name, value)


def sql_argument(name: str, value: object) -> str | None:
    """A condition as Spark SQL, or None.

    Raises:
        InvalidFilterError: it is not text.
    """
    if value is not None and not isinstance(value, str):
        raise InvalidFilterError(
            f"{name} = {value!r} is of type {type(value).__name__}; expected the condition as SQL "
            'text, such as "day = 5"'
        )
    return value


def _may_have_session(spark: SparkSession | None) -> bool:
    """Whether there may be a session: without pyspark there is none, and it is slow to import."""
    return spark is not None or "pyspark" in sys.modules
