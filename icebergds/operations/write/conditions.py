"""Parses the conditions of statements that scans can be planned with."""

from __future__ import annotations

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.expr.rounding import compares_exactly
from icebergds.expr.sql import parse_filter
from icebergds.spec.schema import Schema


def plannable_condition(condition: object, schema: Schema, time_zone: str | None) -> Expr | None:
    """Parses a condition to plan scans with; None if only Spark evaluates it correctly.

    Args:
        condition: SQL text; anything else is left to Spark.
        schema: the table's.
        time_zone: of timestamps without an offset.
    """
    if not isinstance(condition, str):
        return None
    try:
        parsed = parse_filter(condition, time_zone=time_zone)
        bind(parsed, schema, case_sensitive=False)
    except InvalidFilterError:
        return None
    return parsed if compares_exactly(parsed, schema, case_sensitive=False) else None
