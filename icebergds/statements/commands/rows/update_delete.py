"""Runs UPDATE, DELETE and TRUNCATE TABLE."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from icebergds.errors import UnsupportedFeatureError
from icebergds.statements.commands.rows.assignments import expression_until, read_assignments
from icebergds.statements.commands.rows.target import (
    newer_options,
    read_alias,
    read_options,
    read_target,
)
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.expressions import open_expressions
from icebergds.statements.results import deleted_rows, nothing, updated_rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def update(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `UPDATE table [[AS] alias] [WITH (options)] SET column = value, ... [WHERE condition]`.

    Returns:
        How many rows were updated: `num_affected_rows`.

    Errors are those of `Table.update`.
    """
    cursor.expect("UPDATE")
    target = read_target(scope, cursor, newer_options)
    if target is None:
        return None
    target = replace(target, alias=read_alias(cursor, "SET"))
    target = replace(target, given=read_options(cursor)).within(scope, cursor)
    cursor.expect("SET")
    with open_expressions(scope, arguments, common, target.qualifiers()) as expressions:
        assigned = expression_until(cursor, "WHERE")
        values = read_assignments(assigned, target, expressions.text, "update")
        condition = None
        if not cursor.is_done:
            cursor.expect("WHERE")
            condition = expressions.text(cursor.rest())
        counts = target.table.update(
            values,
            condition,
            alias=target.called,
            spark=scope.spark,
            **target.write_arguments(scope),
        )
    return updated_rows(scope.spark, counts)


def delete(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `DELETE FROM table [[AS] alias] [WITH (options)] [WHERE condition]`.

    Returns:
        How many rows were deleted: `num_affected_rows`; null if only an upper bound is known.

    Errors are those of `Table.delete`.
    """
    cursor.expect("DELETE", "FROM")
    target = read_target(scope, cursor, newer_options)
    if target is None:
        return None
    target = replace(target, alias=read_alias(cursor, "WHERE"))
    target = replace(target, given=read_options(cursor)).within(scope, cursor)
    with open_expressions(scope, arguments, common, target.qualifiers()) as expressions:
        condition = "true"
        if not cursor.is_done:
            cursor.expect("WHERE")
            condition = expressions.text(cursor.rest())
        counts = target.table.delete(
            condition, alias=target.called, spark=scope.spark, **target.write_arguments(scope)
        )
    return deleted_rows(scope.spark, counts)


def truncate(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `TRUNCATE TABLE table`, which deletes all rows.

    Errors are those of `Table.delete`.
    """
    cursor.expect("TRUNCATE", "TABLE")
    target = read_target(scope, cursor, newer_options)
    if target is None:
        return None
    if cursor.is_at("PARTITION"):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: TRUNCATE TABLE ... PARTITION is not supported; use DELETE "
            "FROM ... WHERE with the values of the partition"
        )
    cursor.expect_end()
    target.table.delete("true", spark=scope.spark, **target.write_arguments(scope))
    return nothing(scope.spark)
