"""Gives registered sessions streams of their tables: by format, and by names of tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.expr.names import in_backticks
from icebergds.spark.frames.readers import READER
from icebergds.spark.session import is_connect
from icebergds.spark.sources import need_source
from icebergds.spark.verbs import FORMAT, is_format, names_our_table
from icebergds.spark.writers.save_writer import WRITER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IS_OURS = "_icebergds_streams"
_PARTITIONING = "_icebergds_partitioning"


def take_over_streams(spark: SparkSession) -> None:
    """Makes streams of this session, and of others with the settings, take names of our tables."""
    reader, writer = _classes(spark)
    if not getattr(reader.table, _IS_OURS, False):
        reader.table, writer.toTable = _table(reader.table), _to_table(writer.toTable)
        writer.partitionBy = _partition_by(writer.partitionBy)
        reader.format, writer.format = _format(reader.format), _format(writer.format)


def _classes(spark: SparkSession) -> tuple[Any, Any]:
    if is_connect(spark):
        from pyspark.sql.connect.streaming.readwriter import (
            DataStreamReader as ConnectReader,
            DataStreamWriter as ConnectWriter,
        )

        return ConnectReader, ConnectWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    return DataStreamReader, DataStreamWriter


def _session(stream: Any) -> SparkSession:
    """The session of a reader or writer of streams."""
    kinds = ("_client", "_session", "_spark")
    session: SparkSession = next(getattr(stream, name) for name in kinds if hasattr(stream, name))
    return session


def _format(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of_spark)
    def format(self: Any, source: str) -> Any:
        if is_format(source):
            need_source(_session(self))
        return of_spark(self, source)

    return format


def _table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of_spark)
    def table(self: Any, tableName: str) -> Any:  # noqa: N803 - the name in PySpark
        if _is_ours(_session(self), READER, tableName):
            return self.format(FORMAT).load(tableName)
        return of_spark(self, tableName)

    setattr(table, _IS_OURS, True)
    return table


def _to_table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of_spark)
    def to_table(
        self: Any,
        tableName: str,  # noqa: N803 - the name in PySpark
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - the name in PySpark
        partitionBy: str | list[str] | None = None,  # noqa: N803 - the name in PySpark
        queryName: str | None = None,  # noqa: N803 - the name in PySpark
        **options: Any,
    ) -> Any:
        is_named = format is None or is_format(format)
        if not is_named or not _is_ours(_session(self), WRITER, tableName):
            return of_spark(self, tableName, format, outputMode, partitionBy, queryName, **options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        # As Spark does, the table is created where there is none.
        created = {"create": "true"}
        if columns := getattr(self, _PARTITIONING, ()):
            created["partition-by"] = ", ".join(map(_term, columns))
        return self.start(tableName, FORMAT, outputMode, None, queryName, **created, **options)

    return to_table


def _partition_by(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of_spark)
    def partition_by(self: Any, *cols: Any) -> Any:
        # Spark passes them to no Python data source.
        named = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        setattr(self, _PARTITIONING, tuple(named))
        return of_spark(self, *cols)

    return partition_by


def _term(named: str) -> str:
    """A column, or a transform of one as text."""
    return named if "(" in named else in_backticks((named,))


def _is_ours(session: SparkSession, setting: str, table: Any) -> bool:
    is_on = session.conf.get(setting, "false") == "true"
    return is_on and isinstance(table, str) and names_our_table(session, table)
