"""Keeps the rows of tables cached by CACHE TABLE until the tables change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import TRUE
from icebergds.spark.frames.chosen_rows import chosen_rows, query_options
from icebergds.spark.job_descriptions import describing
from icebergds.spark.registered import session_of
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.needed import ColumnPath

_CACHED = "cached tables"


@dataclass(frozen=True, slots=True)
class _Cached:
    """The rows of a table at one state."""

    metadata_location: str
    frame: DataFrame


def cached_rows(
    spark: SparkSession, source: NamedTable, columns: Sequence[ColumnPath] | None
) -> DataFrame | None:
    """The cached rows of a table; None if there are none, or the table has changed.

    Args:
        columns: those that are read; None for all of the table's.
    """
    cached = _tables(spark).get(source.name)
    if cached is None or cached.metadata_location != source.table.metadata_location:
        return None
    if columns is None:
        return cached.frame
    names = list(dict.fromkeys(name for name, *_ in columns))
    if not set(names) <= set(cached.frame.columns):
        return None
    return cached.frame.select(*(in_backticks([name]) for name in names))


def cache_rows(
    spark: SparkSession, source: NamedTable, level: StorageLevel, *, is_lazy: bool
) -> None:
    """Caches the rows of a table for the queries that follow in the session.

    Args:
        is_lazy: leave reading to the first query.
    """
    forget_rows(spark, source.name)
    rows = chosen_rows(spark, source.table._state, query_options(spark, {}), TRUE, None)
    frame = rows.persist(level)
    if not is_lazy:
        with describing(f"CACHE TABLE {source.table.name}"):
            frame.count()
    _tables(spark)[source.name] = _Cached(source.table.metadata_location, frame)


def forget_rows(spark: SparkSession, name: CatalogName) -> None:
    """Frees the cached rows of a table, if there are any."""
    cached = _tables(spark).pop(name, None)
    if cached is not None:
        cached.frame.unpersist()


def forget_all_rows(spark: SparkSession) -> None:
    """Frees the cached rows of all tables."""
    for name in list(_tables(spark)):
        forget_rows(spark, name)


def _tables(spark: SparkSession) -> dict[CatalogName, _Cached]:
    return cast(dict[CatalogName, _Cached], session_of(spark).kept.setdefault(_CACHED, {}))
