"""Runs MERGE."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks, quote_name
from icebergds.spark.row_level.conditions import Value
from icebergds.spark.row_level.merge import MergeBuilder
from icebergds.statements.commands.rows.assignments import (
    add_value,
    expression_until,
    read_assignments,
)
from icebergds.statements.commands.rows.target import (
    StatementTarget,
    newer_options,
    read_alias,
    read_options,
    read_target,
)
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.expressions import Expressions, open_expressions
from icebergds.statements.queries.naming import long_qualifiers
from icebergds.statements.queries.outline import outline_of
from icebergds.statements.queries.query import replace_tables
from icebergds.statements.results import merged_rows
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_sql, written
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.user_text import Piece

_MATCHED, _NOT_MATCHED = "when matched", "when not matched"
_BY_SOURCE = "when not matched by source"


def merge(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `MERGE [WITH SCHEMA EVOLUTION] INTO table [[AS] alias] [WITH (options)] USING ...`.

    Returns:
        `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and `num_inserted_rows`.

    Errors are those of `Table.merge`.
    """
    cursor.expect("MERGE")
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target = read_target(scope, cursor, newer_options)
    if target is None:
        return _merge_into_table_of_spark(scope, cursor, arguments, common)
    target = replace(target, alias=read_alias(cursor, "USING"))
    target = replace(target, given=read_options(cursor))
    cursor.expect("USING")
    target, source = _told_apart(target, _read_merge_source(scope, cursor))
    target = target.within(scope, cursor)
    rows = _all_rows(scope, arguments, common, source.relation)
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
    """The two sides of a merge; writes expressions on them."""

    target: StatementTarget
    source_alias: str
    source_columns: frozenset[str]
    expressions: Expressions

    def text(self, rows: str, expression: Cursor) -> str:
        """An expression of a clause; if one side has no row, column names refer to the other."""
        if rows == _MATCHED:
            return self.expressions.text(expression)
        alias = self.target.called if rows == _BY_SOURCE else self.source_alias
        columns = {field.name.lower() for field in self.target.table.schema().fields}
        shared = columns & {name.lower() for name in self.source_columns}
        firsts = {each[0] for each in self.expressions.qualifiers}
        known = {self.target.called.lower(), self.source_alias.lower(), *firsts}
        return self.expressions.text(expression, _qualify_shared(expression, alias, shared, known))


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
    cursor: Cursor, target: StatementTarget, text: Callable[[Cursor], str], statement: str
) -> dict[str, Value]:
    """Reads `(column, ...) VALUES (value, ...)`; Spark has checked that the numbers match."""
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


def _qualify_shared(
    expression: Cursor, alias: str, shared: Collection[str], qualifiers: Collection[str]
) -> list[Replacement]:
    """Qualifies columns that both sides have, which would be ambiguous otherwise.

    Args:
        shared: names of columns of both sides, in lower case.
        qualifiers: existing qualifiers of columns, in lower case.

    Returns:
        Nothing if the expression cannot be analysed.
    """
    if not shared:
        return []
    outline = outline_of(expression, ())
    tree = None if outline is None else outline.parsed()
    if outline is None or tree is None:
        return []
    from sqlglot.expressions import Column, Select

    found = []
    for column in tree.find_all(Column):
        first = column.parts[0]
        name = first.name.lower()
        start = first.meta.get("start")
        is_qualified = len(column.parts) > 1 and name in qualifiers
        if name not in shared or is_qualified or start not in outline.places:
            continue
        if column.find_ancestor(Select) is None:
            place = outline.places[start]
            found.append(Replacement(Span(place, place), f"{in_backticks([alias])}."))
    return found


_UNNAMED = "icebergds_source"


@dataclass(frozen=True, slots=True)
class _MergeSource:
    """The source of a merge.

    Attributes:
        relation: as written.
        alias: its name in the texts for Spark.
        name: its parts as written, if it has a name and no alias.
        full_name: set if it is a table or view of ours.
    """

    relation: Cursor
    alias: str
    name: tuple[str, ...] = ()
    full_name: CatalogName | None = None

    def qualifiers(self) -> dict[tuple[str, ...], str]:
        """Replacements for longer qualifiers of its columns."""
        alias = in_backticks([self.alias])
        names = [self.name]
        if self.full_name is not None:
            names.append((self.full_name.catalog, *self.full_name.parts))
        return {each: alias for name in names for each in long_qualifiers(name)}


def _read_merge_source(scope: NameScope, cursor: Cursor) -> _MergeSource:
    """Reads `table [WITH (options)] [[AS] alias]` or `(query) [[AS] alias]`."""
    start = cursor.at
    name: tuple[str, ...] = ()
    if cursor.is_at_sign("("):
        cursor.group()
    elif cursor.take_sign("{"):
        while not cursor.take_sign("}"):
            cursor.next()
    else:
        name = _skip_table(scope, cursor)
    relation = cursor.part(start, cursor.at)
    alias = read_alias(cursor, "ON")
    if alias is not None or not name:
        return _MergeSource(relation, alias or _UNNAMED)
    return _MergeSource(relation, name[-1], name, scope.table(name))


def _skip_table(scope: NameScope, cursor: Cursor) -> tuple[str, ...]:
    """Reads a name, and the options after it."""
    name = read_name(scope, cursor)
    if cursor.take("WITH"):
        cursor.group()
    return name


def _all_rows(
    scope: NameScope, arguments: Arguments, common: CommonTables, relation: Cursor
) -> DataFrame:
    """The rows of a relation.

    Errors are those of `run_query`.
    """
    query = [Piece("SELECT * FROM ", relation.span.start, is_users=False), written(relation)]
    return common.query(scope, arguments, relation.statement, query)


def _told_apart(
    target: StatementTarget, source: _MergeSource
) -> tuple[StatementTarget, _MergeSource]:
    """Both sides with their full names, if the last parts of these are the same."""
    if target.alias is not None or not source.name or target.called.lower() != source.alias.lower():
        return target, source
    whole = str(source.full_name) if source.full_name is not None else quote_name(source.name)
    return replace(target, shown=str(target.named.name)), replace(source, alias=whole)


def _merge_into_table_of_spark(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables
) -> DataFrame | None:
    """Merges a table of ours into one of Spark's own; None if the source is Spark's, too.

    Args:
        cursor: after the name of the target.
    """
    read_alias(cursor, "USING")
    read_options(cursor)
    cursor.expect("USING")
    if cursor.is_at_sign("(", "{"):
        return None
    start = cursor.at
    name = _skip_table(scope, cursor)
    is_common = len(name) == 1 and name[0].lower() in common.names
    if is_common or scope.table(name) is None:
        return None
    source = cursor.part(start, cursor.at)
    frame = _all_rows(scope, arguments, common, source)
    alias = read_alias(cursor, "ON")
    text = f" AS {in_backticks([name[-1]])}" if alias is None else ""
    whole = cursor.part(0)
    found = [*replace_tables(scope, whole, arguments), Replacement(source.span, text, frame)]
    found.sort(key=lambda each: each.span.start)
    return spliced_sql(scope.spark, whole.statement, whole.span, found, arguments)
