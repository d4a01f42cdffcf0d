"""Replaces methods of stream readers and writers: by format, and by table name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.expr.names import in_backticks
from icebergds.operations.write.stream_options import PARTITIONED_BY
from icebergds.spark.errors import prepare_thread
from icebergds.spark.registered import need_source, registered
from icebergds.spark.session import acting_in, is_connect
from icebergds.spark.verbs import (
    FORMAT,
    READER,
    WRITER,
    has_format,
    is_format,
    is_on,
    named_table,
    noting_format,
    our_name,
    session_of_verb,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONING = "_icebergds_partitioning"


def format(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`format` of stream readers and writers; the data source implements all of them."""
    noted = noting_format(of_spark)

    @wraps(of_spark)
    def format(self: Any, source: str) -> Any:
        if is_format(source):
            need_source(session_of_verb(self))
        return noted(self, source)

    return format


def table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataStreamReader.table`."""

    @wraps(of_spark)
    def table(self: Any, tableName: str) -> Any:  # noqa: N803 - the name in PySpark
        session = session_of_verb(self)
        name = _our_name(session, READER, tableName)
        if name is None:
            return of_spark(self, tableName)
        named = _named(session, name)
        return self.format(FORMAT).option("catalog", named["catalog"]).load(named["path"])

    return table


def to_table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataStreamWriter.toTable`."""

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
        session = session_of_verb(self)
        is_named = format is None or is_format(format)
        name = _our_name(session, WRITER, tableName) if is_named else None
        if name is None:
            return of_spark(self, tableName, format, outputMode, partitionBy, queryName, **options)
        named = _named(session, name)
        # As in Spark, the table is created if it does not exist.
        given = {"create": "true", **options, "catalog": named["catalog"]}
        return self.start(named["path"], FORMAT, outputMode, partitionBy, queryName, **given)

    return to_table


def start(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataStreamWriter.start`."""

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
        session = session_of_verb(self)
        if has_format(self) and registered(session) is not None:
            if not is_connect(session):
                prepare_thread(session)
            if columns := getattr(self, _PARTITIONING, ()):
                options.setdefault(PARTITIONED_BY, ", ".join(map(_term, columns)))
        return of_spark(self, path, None, outputMode, None, queryName, **options)

    return start


def _named(session: SparkSession, table: str) -> dict[str, str]:
    with acting_in(session):
        return named_table({}, table)


def partition_by(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataStreamWriter.partitionBy`; Spark does not pass its columns to Python data sources."""

    @wraps(of_spark)
    def partition_by(self: Any, *cols: Any) -> Any:
        named = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        setattr(self, _PARTITIONING, tuple(named))
        return of_spark(self, *cols)

    return partition_by


def _term(named: str) -> str:
    """A column, or a transform of one as text."""
    return named if "(" in named else in_backticks((named,))


def _our_name(session: SparkSession, setting: str, table: Any) -> str | None:
    return our_name(session, table) if is_on(session, setting) else None
