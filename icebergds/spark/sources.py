"""Registers the data source with sessions, with those of classic Spark once they need it.

Before classic Spark registers a source, it searches all Python packages for others, in a process of
its own, which takes longer than to plan a read. What Spark's own reader reads needs no source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.spark.replacement_log import keep_replacement_quiet
from icebergds.spark.session import is_connect
from icebergds.spark.verbs import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

SESSION_ID = "spark.icebergpy.session-id"
"""The setting that identifies a session, also where PySpark returns another object for it."""

_IS_OURS = "_icebergds_sql"
# The sources of sessions; and those that the JVM's sessions have, of which Spark makes copies with
# the same settings.
_wanted: dict[str, type[DataSource]] = {}
_registered: dict[str, type[DataSource]] = {}


def set_source(spark: SparkSession, session: str, source: type[DataSource]) -> None:
    """Chooses the source of a session, which may have had another one.

    Args:
        session: its id.
    """
    if is_connect(spark):
        spark.dataSource.register(source)
        return
    _wanted[session] = source
    kind: Any = type(spark)
    if not getattr(kind.sql, _IS_OURS, False):
        kind.sql = _sql(kind.sql)


def _sql(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """The method of all sessions, for statements with `USING icebergpy`."""

    @wraps(of_spark)
    def sql(self: SparkSession, *args: Any, **kwargs: Any) -> Any:
        text = args[0] if args else kwargs.get("sqlQuery")
        if isinstance(text, str) and FORMAT in text.lower():
            need_source(self)
        return of_spark(self, *args, **kwargs)

    setattr(sql, _IS_OURS, True)
    return sql


def forget_source(session: str) -> None:
    """Forgets the source of a session that has ended."""
    _wanted.pop(session, None)


def need_source(spark: SparkSession) -> None:
    """Registers the source of a session, before Spark is asked for the format.

    Does nothing if the session has it, or was never registered.
    """
    if not _wanted or is_connect(spark):
        return
    source = _wanted.get(spark.conf.get(SESSION_ID, None) or "")
    classic: Any = spark
    if source is None or _registered.get(classic._jsparkSession.sessionUUID()) is source:
        return
    keep_replacement_quiet(spark)
    spark.dataSource.register(source)
    _registered[classic._jsparkSession.sessionUUID()] = source
