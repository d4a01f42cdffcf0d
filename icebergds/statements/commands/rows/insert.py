"""Runs INSERT."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.sql_tokens import Token
from icebergds.spark.row_level.matching_changes import MatchedBy
from icebergds.spark.session import session_setting
from icebergds.spark.sql_constants import constant_text
from icebergds.spec.types import NestedField, is_scalar
from icebergds.statements.commands.rows.inserted_columns import (
    InsertedColumns,
    read_column_list,
    read_partition_values,
    with_columns,
)
from icebergds.statements.commands.rows.replaced_rows import (
    ReplacedRows,
    newer_clauses,
    read_alias_of_replaced,
    read_aliased_query,
    read_replaced_rows,
    refuse_contradictions,
    unqualified,
)
from icebergds.statements.commands.rows.target import (
    StatementTarget,
    read_options,
    read_target,
)
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.expressions import Expressions, open_expressions
from icebergds.statements.queries.functions import replace_functions
from icebergds.statements.results import inserted_rows
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_pieces, written
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.user_text import Piece

_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(
    scope: NameScope,
    cursor: Cursor,
    arguments: Arguments,
    common: CommonTables = NONE,
    source: Cursor | None = None,
) -> DataFrame | None:
    """Runs INSERT INTO and INSERT OVERWRITE in all forms that Spark has for catalog tables.

    Args:
        source: the clause `FROM relation`, if the statement begins with it.

    Returns:
        How many rows were inserted: `num_affected_rows` and `num_inserted_rows`.

    Raises:
        InvalidDataError: the columns of the query do not match those of the table.
        InvalidStatementError: REPLACE does not go together with another clause.

    Other errors are those of `Table.append` and `Table.overwrite`.
    """
    cursor.expect("INSERT")
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    is_overwrite = cursor.take("OVERWRITE")
    if is_overwrite and is_at_directory(cursor):
        return None
    if not is_overwrite:
        cursor.expect("INTO")
    cursor.take("TABLE")
    target = read_target(scope, cursor, newer_clauses)
    if target is None:
        return None
    alias = read_alias_of_replaced(cursor)
    target = replace(target, given=read_options(cursor))
    has_partition = cursor.is_at("PARTITION")
    partition = read_partition_values(scope, cursor, target)
    if cursor.take("IF", "NOT", "EXISTS"):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: INSERT ... IF NOT EXISTS is not supported"
        )
    evolves = evolves and target.may_evolve
    columns = InsertedColumns(target, partition, evolves=evolves)
    if cursor.take("BY", "NAME"):
        columns = columns.by_name()
    elif (names := read_column_list(cursor)) is not None:
        columns = columns.listed(names)
    place = cursor.at
    replaced, query_alias = read_replaced_rows(cursor), None
    if replaced is not None:
        if is_overwrite or has_partition:
            cursor.at = place
            raise cursor.error("a query")
        refuse_contradictions(target, replaced, alias, has_list=columns.names is not None)
    if replaced is not None and replaced.kind == "ON":
        query, query_alias = read_aliased_query(cursor)
    else:
        query = cursor.rest()
    if source is None:
        pieces = with_defaults(query, columns)
    else:
        pieces = [written(source), Piece(" ", 0, is_users=False), written(query)]
    found = common.query(scope, arguments, query.statement, pieces)
    rows = with_columns(found, columns)
    given = target.write_arguments(scope)
    if evolves:
        given["options"]["merge-schema"] = "true"
    if replaced is not None:
        behind = cursor.part(place)
        named = replace(target, alias=alias).within(scope, behind)
        with ExitStack() as until_done:
            if replaced.kind != "WHERE":
                # A query may give other rows each time: those that are inserted replace others.
                until_done.callback(found.persist().unpersist)
            expressions = until_done.enter_context(
                open_expressions(scope, arguments, common, named.qualifiers())
            )
            matching = _matching(replaced, found, rows, query_alias, named, expressions)
            if matching is not None:
                counts = target.table._replace_rows(rows, matching, named.called, **given)
            else:
                assert replaced.condition is not None, "only USING has none"
                functions = replace_functions(scope, replaced.condition)
                condition = unqualified(replaced.condition, target, list(functions))
                counts = target.table.overwrite(rows, condition, **given)
    elif not is_overwrite:
        counts = target.table.append(rows, **given)
    elif _is_dynamic(scope):
        counts = target.table.dynamic_partition_overwrite(rows, **given)
    else:
        counts = target.table.overwrite(rows, partition.condition(), **given)
    return inserted_rows(scope.spark, counts)


_NEW_ROWS = "icebergds_new_rows"


def _matching(
    replaced: ReplacedRows,
    found: DataFrame,
    rows: DataFrame,
    query_alias: str | None,
    target: StatementTarget,
    expressions: Expressions,
) -> str | MatchedBy | None:
    """Which rows are replaced, if only Spark can say; None for a condition on the table alone.

    Args:
        found: the result of the query.
        rows: the same with the names of the table's columns.

    Raises:
        InvalidStatementError: USING names a column that the table or the new rows do not have, or
            the alias of the query is that of the table.
    """
    if replaced.kind == "USING":
        names = [target.column((name,), "insert").name for name in replaced.columns]
        given = {name.lower() for name in rows.columns}
        if missing := [name for name in names if name.lower() not in given]:
            raise InvalidStatementError(
                f"table {target.named.name}: REPLACE USING names column {missing[0]}, which the "
                f"new rows do not have (they have {', '.join(rows.columns)})"
            )
        return MatchedBy(rows, names, _NEW_ROWS)
    assert replaced.condition is not None, "only USING has none"
    if replaced.kind == "WHERE":
        return expressions.text(replaced.condition) if replaced.has_sub_query else None
    if query_alias is not None and query_alias.lower() == target.called.lower():
        raise InvalidStatementError(
            f"table {target.named.name}: REPLACE ON: the table and the query are both called "
            f"{query_alias}; give them different aliases"
        )
    return MatchedBy(found, expressions.text(replaced.condition), query_alias)


def is_at_directory(cursor: Cursor) -> bool:
    """Whether INSERT OVERWRITE writes files to a directory, not a table."""
    if cursor.is_at("LOCAL", "DIRECTORY"):
        return True
    then = cursor.peek(1)
    return cursor.is_at("DIRECTORY") and (
        then is not None and (then.is_word("USING") or then.text[0] in "'\"")
    )


def _is_dynamic(scope: NameScope) -> bool:
    mode = session_setting(scope.spark)(_MODE)
    return mode is not None and mode.lower() == "dynamic"


_ENDS_OF_SELECT = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "LATERAL", "WINDOW"),
    *("UNION", "INTERSECT", "EXCEPT", "MINUS", "SORT", "CLUSTER", "DISTRIBUTE"),
)


def with_defaults(query: Cursor, columns: InsertedColumns) -> list[Piece]:
    """The text of a query, in pieces, with the columns' defaults instead of DEFAULT.

    As in Spark, DEFAULT is a whole value of VALUES, or of the SELECT that gives the rows.

    Raises:
        UnsupportedFeatureError: a nested column has a default.
    """
    if columns.is_by_name:
        return [written(query)]
    inner = query
    while inner.is_at_sign("(") and (group := _copy(inner).group()).end + 1 == inner.end:
        inner = group
    fields = columns.fields()
    found: list[Replacement] = []
    for row in _rows(_copy(inner)):
        for value, field in zip(row, fields, strict=False):
            if (token := _only_token(value)) is not None and token.is_word("DEFAULT"):
                found.append(Replacement(Span(token.start, token.end), _text(field)))
    return spliced_pieces(query, found)


def _rows(query: Cursor) -> Iterator[list[Cursor]]:
    """The values in each row of VALUES, or of a SELECT."""
    if query.take("VALUES"):
        for row in query.items():
            yield row.group().items() if row.is_at_sign("(") else [row]
    elif query.take("SELECT"):
        yield query.until(*_ENDS_OF_SELECT).items()


def _only_token(value: Cursor) -> Token | None:
    return value.peek() if value.at + 1 == value.end else None


def _copy(cursor: Cursor) -> Cursor:
    return cursor.part()


def _text(field: NestedField) -> str:
    value = field.write_default
    if value is None:
        return "NULL"
    if not is_scalar(field.field_type):
        raise UnsupportedFeatureError(
            f"write defaults of nested columns are not supported, and column {field.name!r} has "
            "one; give it a value"
        )
    return constant_text(field.field_type, value)
