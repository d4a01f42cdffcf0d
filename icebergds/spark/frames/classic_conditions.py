"""Converts conditions that classic Spark has analyzed to predicates on a table's columns.

Spark has resolved columns and coerced types by then, so none of its rules are repeated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field as attribute
from decimal import Decimal
from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.conditions import Constant, Operator, Piece
from icebergds.expr.nodes import Expr, Operation
from icebergds.spark.frames.known_conditions import (
    bound_condition,
    column_of,
    exact_condition,
    value_of,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

_OPERATORS = {
    "And": "and",
    "Or": "or",
    "Not": "not",
    "EqualTo": Operation.EQ,
    "EqualNullSafe": "null_safe",
    "GreaterThan": Operation.GT,
    "GreaterThanOrEqual": Operation.GT_EQ,
    "LessThan": Operation.LT,
    "LessThanOrEqual": Operation.LT_EQ,
    "In": Operation.IN,
    "IsNaN": Operation.IS_NAN,
    "IsNull": Operation.IS_NULL,
    "IsNotNull": Operation.NOT_NULL,
    "StartsWith": Operation.STARTS_WITH,
}
# Nodes whose value is the same in every query; the current time, for one, is foldable but not so.
_CONSTANT = frozenset(
    {
        "Literal",
        "Cast",
        "Add",
        "Subtract",
        "Multiply",
        "UnaryMinus",
        "DateAdd",
        "DateSub",
        "DateAddYMInterval",
        "DateAddInterval",
        "ExtractANSIIntervalDays",
        "TimeAdd",
        "TimestampAddInterval",
        "TimestampAddYMInterval",
        "MakeDate",
    }
)
# Casts that change no value: comparing the result is the same as comparing the column.
_WIDER = frozenset({("int", "bigint"), ("float", "double")})
_DIGITS = {"int": 10, "bigint": 19}


def converted(condition: Any, schema: Schema, columns: Mapping[int, NestedField]) -> Expr:
    """A bound predicate that is true for every row for which a condition is.

    Args:
        condition: an analyzed Catalyst expression, a JVM object.
        schema: the table's schema.
        columns: the columns that are read, by the expression ids of their attributes.
    """
    return bound_condition(_Tree(schema, columns), condition, schema)


def converted_exactly(
    condition: Any, schema: Schema, columns: Mapping[int, NestedField]
) -> tuple[Expr | None, Expr]:
    """The condition as an exact predicate, and one that is true at least for the same rows.

    Neither is bound. The first is None if only Spark can evaluate the condition. The arguments are
    those of `converted`.
    """
    return exact_condition(_Tree(schema, columns), condition, schema)


def equal_names(
    condition: Any, schema: Schema, columns: Mapping[int, NestedField], others: Set[int]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pairs of a table column and a column of other rows that a condition requires to be equal.

    Args:
        others: the expression ids of the attributes of the other rows.

    Other arguments are those of `converted`.
    """
    match _kind(condition):
        case "And":
            yield from equal_names(condition.left(), schema, columns, others)
            yield from equal_names(condition.right(), schema, columns, others)
        case "EqualTo":
            tree, sides = _Tree(schema, columns), (condition.left(), condition.right())
            for one, other in (sides, sides[::-1]):
                field, named = tree.field(_unwidened(one)), _path(_unwidened(other), others)
                path = None if field is None else schema.paths_by_id.get(field.field_id)
                if path is not None and named is not None:
                    yield path, named


def _path(node: Any, attributes: Set[int]) -> tuple[str, ...] | None:
    """The name of one of these attributes or of a field inside it; None for other nodes."""
    match _kind(node):
        case "AttributeReference":
            return (str(node.name()),) if node.exprId().id() in attributes else None
        case "GetStructField":
            parent = _path(node.child(), attributes)
            return None if parent is None else (*parent, str(node.extractFieldName()))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Tree:
    _schema: Schema
    _columns: Mapping[int, NestedField]
    _shared: dict[int, Any] = attribute(default_factory=dict)
    """What each `CommonExpressionRef` stands for, by its id."""

    def piece(self, node: Any) -> Piece | None:
        kind = _kind(node)
        match kind:
            case "Like":
                return Operator("like", (node.left(), node.right(), str(node.escapeChar())))
            case "Between":
                return self.piece(node.replacement())
            case "With":
                for each in _listed(node.defs()):
                    self._shared[each.id().id()] = each.child()
                return self.piece(node.child())
            case _ if kind in _OPERATORS:
                return Operator(_OPERATORS[kind], tuple(_listed(node.children())))
        column = column_of(self.field(_unwidened(node)), self._schema)
        return _constant(node, kind) if column is None else column

    def unusable(self, node: Any) -> InvalidFilterError:
        return InvalidFilterError("only Spark evaluates a part of the condition")

    def field(self, node: Any) -> NestedField | None:
        """The column that a node reads, at the top level or in structs; None for others."""
        match _kind(node):
            case "CommonExpressionRef":
                shared = self._shared.get(node.id().id())
                return None if shared is None else self.field(_unwidened(shared))
            case "AttributeReference":
                return self._columns.get(node.exprId().id())
            case "GetStructField":
                parent = self.field(node.child())
                if parent is None or not isinstance(parent.field_type, StructType):
                    return None
                field: NestedField = parent.field_type.fields[node.ordinal()]
                return field
            case _:
                return None


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _type(node: Any) -> str:
    return str(node.dataType().simpleString())


def _unwidened(node: Any) -> Any:
    """Strips a cast that changes no value; returns other nodes as they are."""
    if _kind(node) != "Cast":
        return node
    child = node.child()
    return child if _is_wider(_type(child), _type(node)) else node


def _is_wider(before: str, after: str) -> bool:
    if before == after or (before, after) in _WIDER:
        return True
    digits, scale = _decimal(after) or (0, 0)
    if before in _DIGITS:
        return digits - scale >= _DIGITS[before]
    known = _decimal(before)
    return known is not None and known[1] <= scale and known[0] - known[1] <= digits - scale


def _decimal(name: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type; None for other types."""
    if not name.startswith("decimal("):
        return None
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _constant(node: Any, kind: str) -> Constant | None:
    """The Python value of a constant node; None for other nodes."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not _is_constant(node, kind):
        return None
    try:
        value = node.eval(None)
    except (Py4JError, PySparkException):
        # Spark raises the same error if it evaluates the condition.
        return None
    if value is None:
        return Constant(None)
    name = _type(node)
    if name == "string":
        value = str(value.toString())
    elif name == "binary":
        value = bytes(value)
    elif name.startswith("decimal("):
        value = Decimal(value.toString())
    return value_of(name, value)


def _is_constant(node: Any, kind: str) -> bool:
    if kind not in _CONSTANT:
        return False
    return all(_is_constant(child, _kind(child)) for child in _listed(node.children()))


def _listed(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))
