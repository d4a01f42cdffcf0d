"""Gives registered sessions streams of their tables: by format, and by names of tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.expr.names import in_backticks
from icebergds.operations.write.stream_options import PARTITIONED_BY
from icebergds.spark.errors import prepare_thread
from icebergds.spark.frames.readers import READER
from icebergds.spark.session import acting_in, is_connect
from icebergds.spark.sources import need_source
from icebergds.spark.verbs import FORMAT, is_format, named_table, names_our_table
from icebergds.spark.writers.save_writer import WRITER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IS_OURS = "_icebergds_streams"
_IS_OF_FORMAT = "_icebergds_is_format"
_PARTITIONING = "_icebergds_partitioning"


def take_over_streams(spark: SparkSession) -> None:
    """Makes streams of this session, and of others with the settings, take names of our tables."""
    reader, writer = _classes(spark)
    if not getattr(reader.table, _IS_OURS, False):
        reader.table, writer.toTable = _table(reader.table), _to_table(writer.toTable)
        writer.partitionBy, writer.start = _partition_by(writer.partitionBy), _start(writer.start)
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
        is_ours = is_format(source)
        if is_ours:
            need_source(_session(self))
        setattr(self, _IS_OF_FORMAT, is_ours)
        return of_spark(self, source)

    return format


def _table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of_spark)
    def table(self: Any, tableName: str) -> Any:  # noqa: N803 - the name in PySpark
        session = _session(self)
        if not _is_ours(session, READER, tableName):
            return of_spark(self, tableName)
        named = _named(session, tableName)
        return self.format(FORMAT).option("catalog", named["catalog"]).load(named["path"])

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
        session = _session(self)
        is_named = format is None or is_format(format)
        if not is_named or not _is_ours(session, WRITER, tableName):
            return of_spark(self, tableName, format, outputMode, partitionBy, queryName, **options)
        named = _named(session, tableName)
        # As Spark does, the table is created where there is none.
        given = {"create": "true", **options, "catalog": named["catalog"]}
        return self.start(named["path"], FORMAT, outputMode, partitionBy, queryName, **given)

    return to_table


def _start(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of_spark)
    def start(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - the name in PySpark
        partitionBy: str | list[str] | None = None,  # noqa: N803 - the name in PySpark
        queryName: str | None = None,  # noqa: N803 - the name in PySpark
        **options: Any,
    ) -> Any:
        if format is not None:
            self.format(format)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if getattr(self, _IS_OF_FORMAT, False):
            session = _session(self)
            if not is_connect(session):
                prepare_thread(session)
            if columns := getattr(self, _PARTITIONING, ()):
                options.setdefault(PARTITIONED_BY, ", ".join(map(_term, columns)))
        return of_spark(self, path, None, outputMode, None, queryName, **options)

    return start


def _named(session: SparkSession, table: str) -> dict[str, str]:
    with acting_in(session):
        return named_table({}, table)


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
