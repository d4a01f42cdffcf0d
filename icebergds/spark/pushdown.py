"""Converts filters that Spark pushes down to predicates, for loads with `pushdown` = `true`.

Spark evaluates all of them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pyspark.sql import datasource as spark

from icebergds.errors import InvalidFilterError
from icebergds.expr.conditions import Constant, Operator, Piece
from icebergds.expr.names import quote_name, resolve
from icebergds.expr.nodes import Expr, Operation, and_
from icebergds.spark.frames.known_conditions import bound_condition, column_of
from icebergds.spark.reader import IcebergReader
from icebergds.spec.schema import Schema

# Decimals with this many digits or more may have been rounded on the way to Python.
_EXACT_DECIMAL_DIGITS = 28
_OPERATORS: dict[type[spark.Filter], str] = {
    spark.EqualNullSafe: "null_safe",
    spark.EqualTo: Operation.EQ,
    spark.GreaterThan: Operation.GT,
    spark.GreaterThanOrEqual: Operation.GT_EQ,
    spark.LessThan: Operation.LT,
    spark.LessThanOrEqual: Operation.LT_EQ,
    spark.IsNull: Operation.IS_NULL,
    spark.IsNotNull: Operation.NOT_NULL,
    spark.In: Operation.IN,
    spark.StringStartsWith: Operation.STARTS_WITH,
}


class PushdownReader(IcebergReader):
    """A reader that accepts pushed filters; used with `option("pushdown", "true")`."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Adds the usable filters to the filter of the scan; Spark evaluates all of them again."""
        schema = self._plan.table_schema
        pushed = and_(*(bound_spark_filter(item, schema) for item in filters))
        self._plan = replace(self._plan, row_filter=and_(self._plan.row_filter, pushed))
        yield from filters


def bound_spark_filter(pushed: spark.Filter, schema: Schema) -> Expr:
    """A bound predicate that is true for every row for which Spark's filter is true."""
    return bound_condition(_Tree(schema), pushed, schema)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Spark's filters, whose nodes are filters, and the columns' paths and values in them."""

    _schema: Schema

    def piece(self, node: Any) -> Piece | None:
        if isinstance(node, spark.Not):
            return Operator("not", (node.child,))
        kind = _OPERATORS.get(type(node))
        column = None if kind is None else self._column(node.attribute)
        if kind is None or column is None:
            return None
        values = node.value if kind == Operation.IN else (getattr(node, "value", _NONE),)
        constants = [_constant(value) for value in values if value is not _NONE]
        return None if None in constants else Operator(kind, (column, *constants))

    def unusable(self, node: Any) -> InvalidFilterError:
        return InvalidFilterError("only Spark evaluates a part of the filter")

    def _column(self, path: tuple[str, ...]) -> Piece | None:
        return column_of(resolve(quote_name(path), self._schema), self._schema)


_NONE = object()


def _constant(value: Any) -> Constant | None:
    is_rounded = isinstance(value, Decimal) and len(value.as_tuple().digits) >= (
        _EXACT_DECIMAL_DIGITS
    )
    return None if is_rounded else Constant(value)
