"""Runs ANALYZE TABLE and ANALYZE TABLES."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.names import quote_name
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.relations import table_or_view
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def analyze_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `ANALYZE TABLE name COMPUTE STATISTICS [NOSCAN | FOR COLUMNS ... | FOR ALL COLUMNS]`.

    Estimates the numbers of distinct values, by default for all columns, like the procedure
    `compute_table_stats`. Nothing else needs to be computed, so NOSCAN does nothing.
    """
    cursor.expect("ANALYZE", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    if cursor.is_at("PARTITION"):
        raise UnsupportedFeatureError(
            f"{name}: ANALYZE TABLE ... PARTITION is not supported; leave out PARTITION, or call "
            "the procedure compute_partition_stats"
        )
    cursor.expect("COMPUTE", "STATISTICS")
    columns: list[str] | None = None
    is_without_scan = cursor.take("NOSCAN")
    if not is_without_scan and cursor.take("FOR", "COLUMNS"):
        columns = [_column(cursor)]
        while cursor.take_sign(","):
            columns.append(_column(cursor))
    elif not is_without_scan:
        cursor.take("FOR", "ALL", "COLUMNS")
    cursor.expect_end()
    _analyze(scope, name, columns, is_without_scan=is_without_scan)
    return nothing(scope.spark)


def analyze_tables(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `ANALYZE TABLES [IN namespace] COMPUTE STATISTICS [NOSCAN]`."""
    cursor.expect("ANALYZE", "TABLES")
    parts: tuple[str, ...] = ()
    if cursor.take_any("FROM", "IN") is not None:
        parts = read_name(scope, cursor, "the name of a namespace")
    namespace = scope.namespace(parts)
    if namespace is None:
        return None
    cursor.expect("COMPUTE", "STATISTICS")
    is_without_scan = cursor.take("NOSCAN")
    cursor.expect_end()
    for parts in scope.catalog(namespace.catalog).list_tables(namespace.parts):
        name = CatalogName(namespace.catalog, parts)
        _analyze(scope, name, None, is_without_scan=is_without_scan)
    return nothing(scope.spark)


def _column(cursor: Cursor) -> str:
    return quote_name([cursor.identifier("the name of a column")])


def _analyze(
    scope: NameScope, name: CatalogName, columns: list[str] | None, *, is_without_scan: bool
) -> None:
    source = table_or_view(scope, name)
    if isinstance(source, View):
        raise InvalidStatementError(f"{name} is a view, which has no statistics of its own")
    if source.metadata_table is not None or source.options:
        raise InvalidStatementError(
            f"{name}: statistics are those of tables; analyze {source.name}"
        )
    if not is_without_scan:
        source.table.compute_table_stats(columns, spark=scope.spark)
