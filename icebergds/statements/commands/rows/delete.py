"""DELETE."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from icebergds.statements.commands.rows.target import read_alias, read_target
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.expressions import open_expressions
from icebergds.statements.results import deleted_rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def delete(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `DELETE FROM table [[AS] alias] [WHERE condition]`.

    Returns:
        How many rows were deleted: `num_affected_rows`; null if only an upper bound is known.

    Errors are those of `Table.delete`.
    """
    cursor.expect("DELETE", "FROM")
    target = read_target(scope, cursor)
    if target is None:
        return None
    target = replace(target, alias=read_alias(cursor, "WHERE")).within(scope, cursor)
    with open_expressions(scope, arguments, common, target.qualifiers()) as expressions:
        condition = "true"
        if not cursor.is_done:
            cursor.expect("WHERE")
            condition = expressions.text(cursor.rest())
        counts = target.table.delete(
            condition, alias=target.called, spark=scope.spark, **target.write_arguments(scope)
        )
    return deleted_rows(scope.spark, counts)
