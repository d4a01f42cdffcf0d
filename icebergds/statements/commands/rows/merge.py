"""MERGE."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.spark.row_level.conditions import Value
from icebergds.spark.row_level.merge import MergeBuilder
from icebergds.statements.commands.rows.assignments import add_value, read_assignments
from icebergds.statements.commands.rows.clauses import expression_until
from icebergds.statements.commands.rows.merge_source import (
    merge_into_table_of_spark,
    read_merge_source,
    told_apart,
)
from icebergds.statements.commands.rows.target import Target, read_alias, read_target
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.expressions import Expressions, open_expressions
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def merge(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `MERGE [WITH SCHEMA EVOLUTION] INTO table USING source ON condition WHEN ...`.

    Errors are those of `Table.merge`.
    """
    cursor.expect("MERGE")
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target = read_target(scope, cursor)
    if target is None:
        return merge_into_table_of_spark(scope, cursor, arguments, common)
    target = replace(target, alias=read_alias(cursor, "USING"))
    cursor.expect("USING")
    target, source = told_apart(target, read_merge_source(scope, cursor))
    rows = common.query(scope, arguments, f"SELECT * FROM {source.written}")
    qualifiers = {**target.qualifiers(), **source.qualifiers()}
    with open_expressions(scope, arguments, common, qualifiers) as expressions:
        cursor.expect("ON")
        builder = target.table.merge(
            rows,
            expressions.text(expression_until(cursor, "WHEN")),
            source_alias=source.alias,
            target_alias=target.called,
            **target.write_arguments(scope),
        )
        if evolves:
            builder = builder.with_schema_evolution()
        while not cursor.is_done:
            builder = _with_clause(builder, cursor, target, expressions)
        builder.execute()
    return nothing(scope.spark)


def _with_clause(
    builder: MergeBuilder, cursor: Cursor, target: Target, expressions: Expressions
) -> MergeBuilder:
    """Reads `WHEN ... THEN ...` and adds it."""
    rows = _rows(cursor)
    condition = None
    if cursor.take("AND"):
        condition = expressions.text(expression_until(cursor, "THEN"))
    cursor.expect("THEN")
    action = cursor.take_any("UPDATE", "DELETE", "INSERT")
    statement = f"merge: {rows} {(action or '').lower()}"
    match rows, action:
        case "when matched", "DELETE":
            return builder.when_matched_delete(condition)
        case "when not matched by source", "DELETE":
            return builder.when_not_matched_by_source_delete(condition)
        case "when matched", "UPDATE":
            cursor.expect("SET")
            if cursor.take_sign("*"):
                return builder.when_matched_update_all(condition)
            listed = expression_until(cursor, "WHEN")
            values = read_assignments(listed, target, expressions, statement)
            return builder.when_matched_update(values, condition)
        case "when not matched by source", "UPDATE":
            cursor.expect("SET")
            listed = expression_until(cursor, "WHEN")
            values = read_assignments(listed, target, expressions, statement)
            return builder.when_not_matched_by_source_update(values, condition)
        case "when not matched", "INSERT":
            if cursor.take_sign("*"):
                return builder.when_not_matched_insert_all(condition)
            values = _inserted(cursor, target, expressions, statement)
            return builder.when_not_matched_insert(values, condition)
    raise cursor.error("UPDATE SET, DELETE or INSERT")


def _rows(cursor: Cursor) -> str:
    cursor.expect("WHEN")
    if cursor.take("MATCHED"):
        return "when matched"
    if not cursor.take("NOT"):
        cursor.expect_sign("!")
    cursor.expect("MATCHED")
    if cursor.take("BY", "SOURCE"):
        return "when not matched by source"
    cursor.take("BY", "TARGET")
    return "when not matched"


def _inserted(
    cursor: Cursor, target: Target, expressions: Expressions, statement: str
) -> dict[str, Value]:
    """Reads `(column, ...) VALUES (value, ...)`."""
    columns = cursor.group().items()
    cursor.expect("VALUES")
    given = cursor.group().items()
    if len(columns) != len(given):
        raise InvalidStatementError(
            f"{statement}: table {target.named.name}: {len(columns)} columns are listed, but there "
            f"are {len(given)} values"
        )
    values: dict[str, Value] = {}
    for name, value in zip(columns, given, strict=True):
        field = target.column(name.name("a column"), statement)
        add_value(values, field, value, target, expressions, statement)
    return values
