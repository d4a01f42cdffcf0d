"""Reads tables of ours as streams, where queries name them by `STREAM table`."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.names import quote_name
from icebergds.operations.read.stream_options import parse_stream_options
from icebergds.spark.verbs import FORMAT
from icebergds.statements.names.tables import NamedTable


def check_stream(source: NamedTable, options: Mapping[str, str]) -> None:
    """Refuses what is not read as a stream, before Spark starts a query.

    Raises:
        UnsupportedFeatureError: it is a metadata table.
        InvalidOptionError: streams do not have an option, or options contradict each other.
    """
    if source.metadata_table is not None:
        raise UnsupportedFeatureError(
            f"STREAM {source.name}.{source.metadata_table.value}: metadata tables are not read as "
            "streams; leave STREAM out"
        )
    parse_stream_options(options)


def stream_frame(
    spark: SparkSession, source: NamedTable, options: Mapping[str, str], name: str | None
) -> DataFrame:
    """The streaming DataFrame of a table, as `spark.readStream` gives it.

    Args:
        name: of the source in the checkpoints of a query, as `DataStreamReader.name` takes it.

    Raises:
        UnsupportedFeatureError: this Spark does not know names of sources.
        PySparkException: the table cannot be read so; the message is ours.
    """
    reader = spark.readStream.format(FORMAT).options(**options)
    if name is not None:
        if not hasattr(reader, "name"):
            raise UnsupportedFeatureError(
                f"STREAM {source.name} IDENTIFIED BY {name}: Spark {spark.version} has no names of "
                "sources; leave IDENTIFIED BY out"
            )
        reader = reader.name(name)
    # As an option, because a name may look like a location.
    reader = reader.option("catalog", source.name.catalog)
    return reader.load(quote_name(source.name.parts))


def require_stream(rows: DataFrame, name: tuple[str, ...]) -> None:
    """Checks the rows of a view that a query reads as a stream.

    Raises:
        InvalidStatementError: the view does not read a stream.
    """
    if not rows.isStreaming:
        view = quote_name(name)
        raise InvalidStatementError(
            f"STREAM {view}: the query of the view {view} reads no stream; write STREAM before the "
            "table in that query, or leave it out"
        )
