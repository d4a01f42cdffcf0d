"""Reads the conditions by which procedures choose files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from icebergds.api.table import Table
from icebergds.errors import InvalidFilterError, InvalidStatementError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.expr.sql import parse_filter
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spark.session import session_zone
from icebergds.spec.schema import Schema
from icebergds.statements.commands.procedures.signature import Call
from icebergds.statements.queries.conditions import at_least, predicate_of
from icebergds.statements.queries.dates import DateTerms
from icebergds.statements.queries.functions import calls_namesakes, find_calls, names_transform
from icebergds.statements.queries.outline import outline_of
from icebergds.statements.text.cursor import Cursor

# A class of sqlglot's tree.
_Node = Any


def where_of(call: Call, table: Table) -> str | Expr | None:
    """The condition of the argument `where`: as it is written, if it compares columns alone.

    With transforms such as `lake.system.bucket(4, id) = 1`, and with dates of timestamps, it is
    bound to the table's schema: what it says of partitions and of the columns' values.

    Raises:
        InvalidStatementError: a catalog has no such function, it takes other arguments, or no files
            can be chosen by its comparison.
    """
    text, zone, schema = call.get("where"), session_zone(call.scope.spark), table.schema()
    if text is None:
        return None
    try:
        bind(parse_filter(text, time_zone=zone), schema, case_sensitive=False)
    except InvalidFilterError as error:
        found = _of_terms(call, text, schema, zone)
        if found is None and (named := names_transform(text)):
            raise InvalidFilterError(
                f"{error}. Iceberg's function is {call.catalog}.system.{named}"
            ) from error
        return text if found is None else found
    return str(text)


def _of_terms(call: Call, text: str, schema: Schema, zone: str | None) -> Expr | None:
    """The condition if every part of it is understood."""
    query = f"SELECT 1 WHERE {text}"
    tokens = sql_tokens(query)
    outline = tokens and outline_of(Cursor(query, tokens))
    tree = outline and outline.parsed()
    if not tokens or not outline or not tree or not _is_condition(tree):
        return None
    condition = Cursor(query, tokens)
    if calls_namesakes(call.scope, condition):
        return None
    calls = find_calls(call.scope, condition)
    terms, is_understood = DateTerms(outline.literals, datetime.now(UTC)), True

    def read(node: _Node) -> Expr | None:
        nonlocal is_understood
        found = predicate_of(
            node,
            outline.literals,
            schema,
            terms=terms,
            time_zone=zone,
            name_of=lambda parts: parts,
            means_the_same=lambda _: True,
        )
        is_understood = is_understood and found is not None
        return found

    chosen = at_least(tree.args["where"].this, read)
    if not is_understood and calls:
        raise InvalidStatementError(
            f"where = {text!r}: to choose files, compare {calls[0].function} of a column of the "
            "table with constants, by =, <, <=, >, >= or IN"
        )
    return chosen if is_understood else None


def _is_condition(tree: _Node) -> bool:
    """Whether nothing follows the condition."""
    given = {name for name, value in tree.args.items() if value}
    return tree.key == "select" and given == {"expressions", "where"}
