"""Reads the conditions with which procedures select files."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

from icebergds.api.table import Table
from icebergds.errors import InvalidFilterError, InvalidStatementError
from icebergds.expr.bind import bind
from icebergds.expr.conditions import Conditions
from icebergds.expr.nodes import Expr
from icebergds.expr.sql import Transforms, parse_condition, parse_filter
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spark.session import session_zone
from icebergds.spec.schema import Schema
from icebergds.statements.commands.procedures.signature import Call
from icebergds.statements.queries.functions import calls_namesakes, find_calls, names_transform
from icebergds.statements.text.cursor import Cursor


def where_of(call: Call, table: Table) -> str | Expr | None:
    """The condition of the argument `where`; as written, if it only compares columns.

    If it has transforms such as `lake.system.bucket(4, id) = 1`, or the current time, it is bound
    to the table's schema: what it implies for partitions and column values.

    Raises:
        InvalidStatementError: a catalog has no such function, the function takes other arguments,
            or its comparison cannot select files.
    """
    text, zone, schema = call.get("where"), session_zone(call.scope.spark), table.schema()
    if text is None:
        return None
    try:
        bind(parse_filter(text, time_zone=zone), schema, case_sensitive=False)
    except InvalidFilterError as error:
        found = _of_functions(call, text, schema, zone)
        if found is None and (named := names_transform(text)):
            raise InvalidFilterError(
                f"{error}. Iceberg's function is {call.catalog}.system.{named}"
            ) from error
        return text if found is None else found
    return str(text)


def _of_functions(call: Call, text: str, schema: Schema, zone: str | None) -> Expr | None:
    """The condition, if every part of it can be interpreted."""
    tokens = sql_tokens(text)
    if not tokens:
        return None
    cursor = Cursor(text, tokens)
    if calls_namesakes(call.scope, cursor):
        return None
    calls = find_calls(call.scope, cursor)
    try:
        tree, condition = parse_condition(
            text, transforms=Transforms.QUALIFIED, now=datetime.now(UTC)
        )
    except InvalidFilterError:
        return None
    others: list[Any] = []
    settle = partial(bind, schema=schema, case_sensitive=False)
    chosen = Conditions(tree, zone).at_least(condition, settle, others.append)
    if others and calls:
        raise InvalidStatementError(
            f"where = {text!r}: to choose files, compare {calls[0].function} of a column of the "
            "table with constants, by =, <, <=, >, >= or IN"
        )
    return None if others else chosen
