"""Runs CACHE TABLE, UNCACHE TABLE, CLEAR CACHE and REFRESH TABLE."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.errors import InvalidStatementError, NoSuchTableError, UnsupportedFeatureError
from icebergds.spark.patches import own
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.cached import cache_rows, forget_all_rows, forget_rows
from icebergds.statements.queries.query import our_frame
from icebergds.statements.queries.relations import table_or_view
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_properties
from icebergds.suggestions import did_you_mean

_LEVELS = sorted(name for name in vars(StorageLevel) if name.isupper())
_DEFAULT_LEVEL = StorageLevel.MEMORY_AND_DISK


def cache_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CACHE [LAZY] TABLE name [OPTIONS (...)] [[AS] query]`.

    A query's result becomes a temporary view of Spark's.
    """
    cursor.expect("CACHE")
    is_lazy = cursor.take("LAZY")
    cursor.expect("TABLE")
    parts = read_name(scope, cursor)
    options = read_properties(cursor.group()) if cursor.take("OPTIONS") else {}
    if not cursor.is_done:
        cursor.take("AS")
        return _cache_query(scope, cursor, arguments, parts, options, is_lazy=is_lazy)
    name = scope.table(parts)
    if name is None:
        return None
    cache_whole(scope, name, _level(options), is_lazy=is_lazy)
    return nothing(scope.spark)


def cache_whole(
    scope: NameScope, name: CatalogName, level: StorageLevel | None, *, is_lazy: bool
) -> None:
    """Caches the rows of a table by its name.

    Args:
        level: None for Spark's default.
        is_lazy: leave reading to the first query.

    Raises:
        NoSuchTableError: there is no such table.
        UnsupportedFeatureError: it is a view, or a part of a table.
    """
    source = table_or_view(scope, name)
    if isinstance(source, View) or source.metadata_table is not None or source.options:
        raise UnsupportedFeatureError(
            f"CACHE TABLE {name}: only whole tables are cached by name; cache the rows as a "
            f"temporary view: CACHE TABLE cached AS SELECT * FROM {name}"
        )
    cache_rows(scope.spark, source, level or _DEFAULT_LEVEL, is_lazy=is_lazy)


def uncache_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `UNCACHE TABLE [IF EXISTS] name`; does nothing if the table is not cached."""
    cursor.expect("UNCACHE", "TABLE")
    may_be_missing = cursor.take("IF", "EXISTS")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    cursor.expect_end()
    forget_rows(scope.spark, name)
    try:
        table_or_view(scope, name)
    except NoSuchTableError:
        if not may_be_missing:
            raise
    return nothing(scope.spark)


def clear_cache(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CLEAR CACHE`, first for our tables, then for Spark's."""
    cursor.expect("CLEAR", "CACHE")
    cursor.expect_end()
    forget_all_rows(scope.spark)
    return None


def refresh_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `REFRESH TABLE name`; every statement reads the current state anyway."""
    cursor.expect("REFRESH", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    cursor.expect_end()
    table_or_view(scope, name)
    forget_rows(scope.spark, name)
    return nothing(scope.spark)


def _cache_query(
    scope: NameScope,
    cursor: Cursor,
    arguments: Arguments,
    parts: tuple[str, ...],
    options: Mapping[str, str],
    *,
    is_lazy: bool,
) -> DataFrame | None:
    level = _level(options)
    frame = our_frame(scope, cursor.rest(), arguments)
    if frame is None:
        return None
    if len(parts) > 1:
        raise InvalidStatementError(
            f"CACHE TABLE {'.'.join(parts)} AS makes a temporary view, whose name has no other "
            f"parts: CACHE TABLE {parts[-1]} AS ..."
        )
    frame.createTempView(parts[0])
    own(scope.spark, "catalog").cacheTable(parts[0], level)
    if not is_lazy:
        scope.spark.table(parts[0]).count()
    return nothing(scope.spark)


def _level(options: Mapping[str, str]) -> StorageLevel:
    level = _DEFAULT_LEVEL
    for name, value in options.items():
        if name.lower() != "storagelevel":
            raise InvalidStatementError(f"CACHE TABLE has no option {name!r}, only 'storageLevel'")
        if value.upper() not in _LEVELS:
            near = did_you_mean(value, _LEVELS) or f"there are {', '.join(_LEVELS)}"
            raise InvalidStatementError(f"storage level {value!r} does not exist; {near}")
        level = getattr(StorageLevel, value.upper())
    return level
