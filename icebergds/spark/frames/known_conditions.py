"""Converts Spark's condition trees to filters (`expr.conditions`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.conditions import Column, Conditions, Constant, Tree
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import FALSE, Expr
from icebergds.spark.types import READ_AS_ANOTHER_TYPE
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField

_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)


def bound_condition(
    tree: Tree, node: Any, schema: Schema, is_alike: Callable[[Expr], bool] = lambda _: True
) -> Expr:
    """A bound predicate that is true for every row for which a condition is.

    Args:
        schema: the table's schema.
        is_alike: whether Spark compares the same values as we do.
    """

    def settle(found: Expr) -> Expr:
        bound = bind(found, schema)
        if not is_alike(found):
            raise InvalidFilterError("Spark may compare other values")
        return bound

    return Conditions(tree).at_least(node, settle)


def exact_condition(
    tree: Tree, node: Any, schema: Schema, is_alike: Callable[[Expr], bool] = lambda _: True
) -> tuple[Expr | None, Expr]:
    """The condition as an exact predicate, and one that is true at least for the same rows.

    Neither is bound. The first is None if only Spark can evaluate the condition. The arguments are
    those of `bound_condition`.
    """
    others: list[Any] = []

    def settle(found: Expr) -> Expr:
        _ = bind(found, schema)
        if not is_alike(found):
            raise InvalidFilterError("Spark may compare other values")
        return found

    at_least = Conditions(tree).at_least(node, settle, others.append)
    return None if others and at_least != FALSE else at_least, at_least


def column_of(field: NestedField | None, schema: Schema) -> Column | None:
    """A column by its name in the table; None if it has none."""
    path = None if field is None else schema.paths_by_id.get(field.field_id)
    if field is None or path is None:
        return None
    is_own = getattr(field.field_type, "type_id", None) not in READ_AS_ANOTHER_TYPE
    return Column(quote_name(path), is_comparable=is_own)


def value_of(type_name: str, value: Any) -> Constant | None:
    """The Python value of a number or text of Spark's; None if Python cannot represent it."""
    try:
        match type_name:
            case "date":
                return Constant(_EPOCH_DAY + timedelta(days=value))
            case "timestamp_ntz":
                return Constant(_EPOCH + timedelta(microseconds=value))
            case "timestamp":
                return Constant(_EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=value))
            case _ if type_name.startswith("time(") and isinstance(value, int):
                # Nanoseconds, of which Python's times hold whole thousands.
                micros, rest = divmod(value, 1000)
                moment = datetime.min + timedelta(microseconds=micros)
                return None if rest else Constant(moment.time())
            case "float":
                # Spark sent the shortest decimal for the float, which was parsed as a double.
                return Constant(float(np.float32(value)))
            case _ if type_name in _AS_IT_IS or type_name.startswith("decimal("):
                return Constant(value)
    except OverflowError:
        pass
    return None


_AS_IT_IS = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "double", "string", "binary")
)
