"""Runs INSERT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pyspark.sql import DataFrame

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_tokens import Token, TokenKind
from icebergds.spark.session import session_setting
from icebergds.spark.sql_constants import constant_text
from icebergds.spec.types import NestedField, is_scalar
from icebergds.statements.commands.rows.inserted_columns import (
    InsertedColumns,
    read_column_list,
    with_columns,
)
from icebergds.statements.commands.rows.partition_values import read_partition_values
from icebergds.statements.commands.rows.target import StatementTarget, read_target
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.functions import replace_functions
from icebergds.statements.queries.naming import long_qualifiers, replace_qualifiers
from icebergds.statements.results import inserted_rows
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_pieces, written
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.splice import spliced
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
    target = read_target(scope, cursor)
    if target is None:
        return None
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
    condition = read_replaced_rows(cursor, target, partial(replace_functions, scope))
    query = cursor.rest()
    if source is None:
        pieces = with_defaults(query, columns)
    else:
        pieces = [written(source), Piece(" ", 0, is_users=False), written(query)]
    rows = with_columns(common.query(scope, arguments, query.statement, pieces), columns)
    given = target.write_arguments(scope)
    if evolves:
        given["options"]["merge-schema"] = "true"
    if condition is not None:
        counts = target.table.overwrite(rows, condition, **given)
    elif not is_overwrite:
        counts = target.table.append(rows, **given)
    elif _is_dynamic(scope):
        counts = target.table.dynamic_partition_overwrite(rows, **given)
    else:
        counts = target.table.overwrite(rows, partition.condition(), **given)
    return inserted_rows(scope.spark, counts)


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
    return Cursor(cursor.statement, cursor.tokens, cursor.at, cursor.end)


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


def read_replaced_rows(
    cursor: Cursor, target: StatementTarget, functions: Callable[[Cursor], Sequence[Replacement]]
) -> str | None:
    """Reads `REPLACE WHERE condition`; returns the condition without column qualifiers.

    Args:
        functions: replacements for Iceberg's functions in the condition.

    Returns None if the statement has no REPLACE WHERE.

    Raises:
        UnsupportedFeatureError: it says REPLACE USING or REPLACE ON, or has a sub-query.
    """
    start = cursor.at
    if cursor.take("AS") or not cursor.is_at("REPLACE"):
        # An alias, which is only useful for REPLACE ON.
        cursor.next()
    if cursor.is_at("REPLACE", "USING") or cursor.is_at("REPLACE", "ON"):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: INSERT INTO ... REPLACE USING and REPLACE ON are not "
            "supported; use REPLACE WHERE, or MERGE INTO"
        )
    cursor.at = start
    if not cursor.take("REPLACE", "WHERE"):
        return None
    condition = _before_query(cursor)
    if any(token.is_word("SELECT") for token in condition.tokens[condition.at : condition.end]):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: sub-queries in REPLACE WHERE are not supported; DELETE "
            "the rows first, or use MERGE INTO"
        )
    full = (target.named.name.catalog, *target.named.name.parts)
    names = [each for name in (target.name, full) for each in long_qualifiers(name)]
    columns = {field.name.lower() for field in target.table.schema().fields}
    if target.called.lower() not in columns:
        names.append((target.called.lower(),))
    qualifiers = replace_qualifiers(condition, dict.fromkeys(names, ""))
    replaced = [*qualifiers, *functions(condition)]
    return spliced(condition, sorted(replaced, key=lambda each: (each.span.start, each.span.end)))


_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
# Words that are followed by an operand.
_OPERATORS = frozenset(
    """
    AND OR NOT IN LIKE ILIKE RLIKE REGEXP IS BETWEEN EXISTS DISTINCT ANY SOME ALL DIV CASE WHEN THEN
    ELSE ESCAPE INTERVAL
    """.split()  # noqa: SIM905
)


def _before_query(cursor: Cursor) -> Cursor:
    """Reads up to the query: the condition ends with an operand, and no operand follows."""
    start, depth = cursor.at, 0
    before: Token | None = None
    while (token := cursor.peek()) is not None:
        if depth == 0 and before is not None and _ends_operand(before) and _is_at_query(cursor):
            break
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        cursor.at += 1
        before = token
    return Cursor(cursor.statement, cursor.tokens, start, cursor.at)


def _ends_operand(token: Token) -> bool:
    if token.kind is TokenKind.SIGN:
        return token.is_sign(")", "]")
    return not token.is_word(*_OPERATORS)


def _is_at_query(cursor: Cursor) -> bool:
    ahead = 0
    while (token := cursor.peek(ahead)) is not None and token.is_sign("("):
        ahead += 1
    return token is not None and token.is_word(*_QUERIES)
