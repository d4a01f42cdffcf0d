"""Converts conditions of Spark Connect to predicates on a table's columns.

The client resolves nothing, so only comparisons are converted whose meaning does not depend on how
Spark coerces types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect.expressions import (
    ColumnReference,
    Expression,
    LiteralExpression,
    SQLExpression,
    UnresolvedFunction,
)

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.conditions import Constant, Known, Operator, Piece
from icebergds.expr.names import quote_name, split_name
from icebergds.expr.nodes import TRUE, Expr, Operation
from icebergds.operations.conditions import Setting, compares_the_same, plannable_condition
from icebergds.spark.frames.known_conditions import (
    bound_condition,
    column_of,
    exact_condition,
    value_of,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

# The kind of an operator, and how many arguments it has; None for any number.
_OPERATORS: dict[str, tuple[str, int | None]] = {
    "and": ("and", 2),
    "or": ("or", 2),
    "not": ("not", 1),
    "==": (Operation.EQ, 2),
    "=": (Operation.EQ, 2),
    ">": (Operation.GT, 2),
    ">=": (Operation.GT_EQ, 2),
    "<": (Operation.LT, 2),
    "<=": (Operation.LT_EQ, 2),
    "<=>": ("null_safe", 2),
    "in": (Operation.IN, None),
    "isNaN": (Operation.IS_NAN, 1),
    "isnan": (Operation.IS_NAN, 1),
    "isNull": (Operation.IS_NULL, 1),
    "isNotNull": (Operation.NOT_NULL, 1),
    "startsWith": (Operation.STARTS_WITH, 2),
}
ZONE = "spark.sql.session.timeZone"


def converted(
    condition: Any,
    schema: Schema,
    columns: Sequence[NestedField],
    setting: Setting,
) -> Expr:
    """A bound predicate that is true for every row for which a condition is.

    Args:
        condition: a Column, or text.
        schema: the table's schema.
        columns: those that are read, under the names that the condition uses.
        setting: the session's settings for parsing text and dates; asked only if needed.
    """
    tree = _Tree(schema, columns, setting)
    if isinstance(condition, str):
        return bind(tree.of_text(condition) or TRUE, schema)
    expression = getattr(condition, "_expr", None)
    return TRUE if expression is None else bound_condition(tree, expression, schema, tree.is_alike)


def exactly(
    condition: Any, schema: Schema, columns: Sequence[NestedField], setting: Setting
) -> Expr | None:
    """A bound predicate that is true for just the rows for which a condition is, if there is one.

    Arguments are those of `converted`.
    """
    tree = _Tree(schema, columns, setting)
    if isinstance(condition, str):
        exact = tree.of_text(condition)
    else:
        expression = getattr(condition, "_expr", None)
        if expression is None:
            return None
        exact, _ = exact_condition(tree, expression, schema, tree.is_alike)
    return None if exact is None else bind(exact, schema)


def converted_exactly(
    condition: Expression, schema: Schema, setting: Setting, names: Names
) -> tuple[Expr | None, Expr]:
    """The condition as an exact predicate, and one that is true at least for the same rows.

    Neither is bound. The first is None if only Spark can evaluate the condition.

    Args:
        condition: analyzed by Spark, so that none of its names is ambiguous.
        schema: the table's schema.
        setting: the session's settings for parsing text and dates.
        names: what qualifies columns in the condition.
    """
    tree = _Tree(schema, schema.fields, setting, names)
    return exact_condition(tree, condition, schema, tree.is_alike)


def equal_names(
    condition: Expression, names: Names
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pairs of names that a condition requires to be equal, with their qualifiers.

    Args:
        names: what qualifies columns in the condition, which also names columns of other rows.
    """
    match condition:
        case UnresolvedFunction(_name="and", _args=[left, right]):
            yield from equal_names(left, names)
            yield from equal_names(right, names)
        case UnresolvedFunction(
            _name="==" | "=", _args=[ColumnReference() as left, ColumnReference() as right]
        ):
            with suppress(InvalidFilterError):
                yield _qualified(left, names), _qualified(right, names)


def _qualified(column: ColumnReference, names: Names) -> tuple[str, ...]:
    parts = split_name(column._unparsed_identifier)
    is_of_frame = column._plan_id is not None and names.other is not None
    return (str(names.other), *parts) if is_of_frame else parts


@dataclass(frozen=True, slots=True)
class Names:
    """What qualifies columns in a condition.

    Attributes:
        alias: the name of the table; None if it has none.
        other: the alias of the other rows in the condition; None if there are none.
    """

    alias: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class _Tree:
    _schema: Schema
    _columns: Sequence[NestedField]
    _setting: Setting
    _names: Names = Names()

    def of_text(self, text: str) -> Expr | None:
        zone = self._setting(ZONE)
        return plannable_condition(text, self._schema, zone, self._setting, self._path_of)

    def is_alike(self, found: Expr) -> bool:
        return compares_the_same(found, self._schema, self._setting)

    def piece(self, node: Expression) -> Piece | None:
        match node:
            case SQLExpression() if self._names.other is None:
                found = self.of_text(node._expr)
                return None if found is None else Known(found)
            case LiteralExpression(_value=None):
                return Constant(None)
            case LiteralExpression():
                return value_of(node._dataType.simpleString(), node._value)
            case ColumnReference():
                return column_of(self._field(node), self._schema)
            case UnresolvedFunction(_name="like", _args=[column, pattern]):
                return Operator("like", (column, pattern, "\\"))
            case UnresolvedFunction(_name=name, _args=arguments) if name in _OPERATORS:
                kind, number = _OPERATORS[name]
                is_called = number is None or len(arguments) == number
                return Operator(kind, tuple(arguments)) if is_called else None
            case _:
                return None

    def unusable(self, node: Expression) -> InvalidFilterError:
        return InvalidFilterError("only Spark evaluates a part of the condition")

    def _field(self, node: Expression) -> NestedField | None:
        """The column that a node names, at the top level or in structs; None for others."""
        if not isinstance(node, ColumnReference) or node._is_metadata_column:
            return None
        if node._plan_id is not None and self._names.other is not None:
            # The column belongs to a DataFrame, which is the one with the other rows.
            return None
        try:
            return self._named(split_name(node._unparsed_identifier))
        except InvalidFilterError:
            return None

    def _path_of(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The path in the table of a column in a text."""
        field = self._named(parts)
        path = None if field is None else self._schema.paths_by_id.get(field.field_id)
        if path is None:
            raise InvalidFilterError(f"{quote_name(parts)} is not a column of the table")
        return path

    def _named(self, parts: tuple[str, ...]) -> NestedField | None:
        qualifier = parts[0].lower() if len(parts) > 1 else None
        if qualifier is not None and qualifier == (self._names.other or "").lower():
            return None
        if qualifier is not None and qualifier == (self._names.alias or "").lower():
            parts = parts[1:]
        fields, field = self._columns, None
        for part in parts:
            named = [found for found in fields if found.name.lower() == part.lower()]
            if len(named) != 1:
                return None
            field = named[0]
            fields = field.field_type.fields if isinstance(field.field_type, StructType) else ()
        return field
