"""MERGE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.spark.row_level.conditions import Value
from icebergds.spark.row_level.merge import MergeBuilder
from icebergds.statements.commands.rows.assignments import add_value, read_assignments
from icebergds.statements.commands.rows.clauses import expression_until
from icebergds.statements.commands.rows.merge_source import (
    all_rows,
    merge_into_table_of_spark,
    read_merge_source,
    told_apart,
)
from icebergds.statements.commands.rows.one_side import qualify_shared
from icebergds.statements.commands.rows.target import Target, read_alias, read_target
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.expressions import Expressions, open_expressions
from icebergds.statements.results import merged_rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

_MATCHED, _NOT_MATCHED = "when matched", "when not matched"
_BY_SOURCE = "when not matched by source"


def merge(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `MERGE [WITH SCHEMA EVOLUTION] INTO table USING source ON condition WHEN ...`.

    Returns:
        `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and `num_inserted_rows`.

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
    target = target.within(scope, cursor)
    rows = all_rows(scope, arguments, common, source.relation)
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
        if evolves and target.may_evolve:
            builder = builder.with_schema_evolution()
        sides = _Sides(target, source.alias, frozenset(rows.columns), expressions)
        while not cursor.is_done:
            builder = _with_clause(builder, cursor, sides)
        counts = builder.execute()
    return merged_rows(scope.spark, counts)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two sides of a merge, and how expressions on them are written."""

    target: Target
    source_alias: str
    source_columns: frozenset[str]
    expressions: Expressions

    def text(self, rows: str, expression: Cursor) -> str:
        """An expression of a clause: where one side has no row, columns are the other's."""
        if rows == _MATCHED:
            return self.expressions.text(expression)
        alias = self.target.called if rows == _BY_SOURCE else self.source_alias
        columns = {field.name.lower() for field in self.target.table.schema().fields}
        shared = columns & {name.lower() for name in self.source_columns}
        firsts = {each[0] for each in self.expressions.qualifiers}
        known = {self.target.called.lower(), self.source_alias.lower(), *firsts}
        return self.expressions.text(expression, qualify_shared(expression, alias, shared, known))


def _with_clause(builder: MergeBuilder, cursor: Cursor, sides: _Sides) -> MergeBuilder:
    """Reads `WHEN ... THEN ...` and adds it."""
    rows = _rows(cursor)
    text = partial(sides.text, rows)
    condition = text(expression_until(cursor, "THEN")) if cursor.take("AND") else None
    cursor.expect("THEN")
    action = cursor.take_any("UPDATE", "DELETE", "INSERT")
    if action == "DELETE":
        if rows == _BY_SOURCE:
            return builder.when_not_matched_by_source_delete(condition)
        return builder.when_matched_delete(condition)
    if action == "UPDATE":
        cursor.expect("SET")
        if cursor.take_sign("*"):
            return builder.when_matched_update_all(condition)
        listed = expression_until(cursor, "WHEN")
        values = read_assignments(listed, sides.target, text, f"merge: {rows} update")
        if rows == _BY_SOURCE:
            return builder.when_not_matched_by_source_update(values, condition)
        return builder.when_matched_update(values, condition)
    if cursor.take_sign("*"):
        return builder.when_not_matched_insert_all(condition)
    values = _inserted(cursor, sides.target, text, f"merge: {rows} insert")
    return builder.when_not_matched_insert(values, condition)


def _rows(cursor: Cursor) -> str:
    cursor.expect("WHEN")
    if cursor.take("MATCHED"):
        return _MATCHED
    if not cursor.take("NOT"):
        cursor.expect_sign("!")
    cursor.expect("MATCHED")
    if cursor.take("BY", "SOURCE"):
        return _BY_SOURCE
    cursor.take("BY", "TARGET")
    return _NOT_MATCHED


def _inserted(
    cursor: Cursor, target: Target, text: Callable[[Cursor], str], statement: str
) -> dict[str, Value]:
    """Reads `(column, ...) VALUES (value, ...)`; Spark has counted them."""
    columns = cursor.group().items()
    cursor.expect("VALUES")
    values: dict[str, Value] = {}
    whole = {field.field_id for field in target.table.schema().fields}
    for name, value in zip(columns, cursor.group().items(), strict=True):
        shown = name.written
        field = target.column(name.name("a column"), statement)
        if field.field_id not in whole:
            raise InvalidStatementError(
                f"{statement}: {shown} is a field of a column; give the value of the column"
            )
        add_value(values, field, value, target, text, statement)
    return values
