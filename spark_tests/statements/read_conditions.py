"""What a condition of a query says of the rows of a table, as a bound filter."""

from __future__ import annotations

import datetime as dt

from icebergds.expr.nodes import Expr
from icebergds.expr.sql import SqlTree, Transforms
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.operations.conditions import default_setting, means_the_same
from icebergds.spec.schema import Schema
from icebergds.spec.types import DATE, INT, STRING, TIMESTAMP, TIMESTAMPTZ, NestedField
from icebergds.statements.queries.conditions import said_by
from icebergds.statements.queries.outline import outline_of
from icebergds.statements.text.cursor import Cursor

SCHEMA = Schema(
    tuple(
        NestedField(number, name, kind, required=False)
        for number, (name, kind) in enumerate(
            [("d", DATE), ("ts", TIMESTAMPTZ), ("ntz", TIMESTAMP), ("n", INT), ("t", STRING)], 1
        )
    )
)
_NOW = dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC)


def read_condition(condition: str) -> Expr:
    """What is true for every row of a table with `SCHEMA` for which the condition is."""
    tokens = sql_tokens(f"SELECT 1 FROM x WHERE {condition}")
    assert tokens is not None
    outline = outline_of(Cursor("", tokens), [])
    assert outline is not None
    tree = outline.parsed()
    assert tree is not None
    return said_by(
        tree.args["where"].this,
        SqlTree(outline.literals, lambda parts: parts, Transforms.QUALIFIED, _NOW),
        SCHEMA,
        time_zone="UTC",
        means_the_same=lambda parsed: means_the_same(parsed, SCHEMA, default_setting),
    )
