"""Reads EXECUTE IMMEDIATE, which runs a statement whose text an expression gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_tokens import Token, sql_tokens
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.queries.references import find_references
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Immediate:
    """The statement to run, and the values of its parameters, by name or in order."""

    text: str
    parameters: Any = None


def read_immediate(scope: NameScope, cursor: Cursor) -> Immediate | None:
    """Reads `EXECUTE IMMEDIATE text [INTO variable, ...] [USING value [AS name], ...]`.

    None if Spark is to run it: the text cannot be found, or its results are for variables.

    Raises:
        UnsupportedFeatureError: results of a query on tables of ours are for variables.
    """
    cursor.expect("EXECUTE", "IMMEDIATE")
    expression = cursor.until("INTO", "USING")
    has_variables = cursor.take("INTO")
    if has_variables:
        cursor.until("USING")
    try:
        [row] = spark_sql(scope.spark, f"SELECT {expression.written}", Arguments()).collect()
        text = row[0]
        tokens = sql_tokens(text) if isinstance(text, str) else None
        if not tokens:
            return None
        if has_variables:
            _refuse_ours(scope, Cursor(text, tokens))
            return None
        return Immediate(text, _parameters(scope, cursor, tokens))
    except PySparkException:
        # Spark says what is wrong.
        return None


def _refuse_ours(scope: NameScope, query: Cursor) -> None:
    for name in _of_ours(scope, query):
        raise UnsupportedFeatureError(
            f"EXECUTE IMMEDIATE ... INTO of a query on {name} is not supported; use SET VAR "
            "variable = (query)"
        )


def _of_ours(scope: NameScope, query: Cursor) -> Iterator[CatalogName]:
    for reference in find_references(query):
        name = scope.table(reference.name)
        if name is not None:
            yield name


def _parameters(scope: NameScope, cursor: Cursor, tokens: tuple[Token, ...]) -> Any:
    if not cursor.take("USING"):
        return None
    given = cursor.rest()
    while given.is_at_sign("(") and (group := _copy(given).group()).end + 1 == given.end:
        given = group
    values = spark_sql(scope.spark, f"SELECT {given.written}", Arguments())
    [row] = values.collect()
    if any(token.is_sign("?") for token in tokens):
        return list(row)
    return dict(zip(values.columns, row, strict=True))


def _copy(cursor: Cursor) -> Cursor:
    return Cursor(cursor.statement, cursor.tokens, cursor.at, cursor.end)
