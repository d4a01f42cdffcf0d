"""Converts conditions that classic Spark has analyzed to predicates on a table's columns.

Columns are resolved and types are coerced by then, so that no rule of Spark's is repeated here. A
part that cannot be converted becomes `TRUE`: Spark evaluates the whole condition for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import (
    FALSE,
    MIRRORED,
    TRUE,
    Expr,
    Operation,
    Predicate,
    and_,
    not_,
    or_,
)
from icebergds.expr.sql import like
from icebergds.spark.types import READ_AS_ANOTHER_TYPE
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

_COMPARISONS = {
    "EqualTo": Operation.EQ,
    "GreaterThan": Operation.GT,
    "GreaterThanOrEqual": Operation.GT_EQ,
    "LessThan": Operation.LT,
    "LessThanOrEqual": Operation.LT_EQ,
}
# Of values that are the same in every query; others are foldable too, such as the current time.
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
# Casts of columns that change no value, so that a comparison of the result is one of the column.
_WIDER = frozenset({("int", "bigint"), ("float", "double")})
_DIGITS = {"int": 10, "bigint": 19}
_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)


def converted(condition: Any, schema: Schema, columns: Mapping[int, NestedField]) -> Expr:
    """A bound predicate that is true for every row for which a condition is.

    Args:
        condition: an analyzed Catalyst expression, an object of the JVM.
        schema: the table's.
        columns: the columns that are read, by the ids that Spark gave their attributes.
    """
    return bind(_Converter(schema, columns).at_least(condition), schema)


def converted_exactly(
    condition: Any, schema: Schema, columns: Mapping[int, NestedField]
) -> tuple[Expr | None, Expr]:
    """The same condition as a predicate, and one that is true for every row for which it is.

    Neither is bound. The first one is None if only Spark evaluates the condition. Arguments are
    those of `converted`.
    """
    converter = _Converter(schema, columns)
    exact = converter.exact(condition)
    at_least = converter.at_least(condition) if exact is None else exact
    return FALSE if at_least == FALSE else exact, at_least


def equal_names(
    condition: Any, schema: Schema, columns: Mapping[int, NestedField], others: Set[int]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The names of columns of the table and of other rows that a condition says are equal.

    Args:
        others: the ids that Spark gave the attributes of the other rows.

    Other arguments are those of `converted`.
    """
    match _kind(condition):
        case "And":
            yield from equal_names(condition.left(), schema, columns, others)
            yield from equal_names(condition.right(), schema, columns, others)
        case "EqualTo":
            converter, sides = _Converter(schema, columns), (condition.left(), condition.right())
            for one, other in (sides, sides[::-1]):
                field, named = converter._field(_unwidened(one)), _path(_unwidened(other), others)
                path = None if field is None else schema.paths_by_id.get(field.field_id)
                if path is not None and named is not None:
                    yield path, named


def _path(node: Any, attributes: Set[int]) -> tuple[str, ...] | None:
    """The name of one of some attributes, or of a field in it; None for others."""
    match _kind(node):
        case "AttributeReference":
            return (str(node.name()),) if node.exprId().id() in attributes else None
        case "GetStructField":
            parent = _path(node.child(), attributes)
            return None if parent is None else (*parent, str(node.extractFieldName()))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Converter:
    _schema: Schema
    _columns: Mapping[int, NestedField]
    _shared: Any = None
    """What a `CommonExpressionRef` stands for."""

    def at_least(self, node: Any) -> Expr:
        """What is true for every row for which the node is."""
        match _kind(node):
            case "And":
                return and_(self.at_least(node.left()), self.at_least(node.right()))
            case "Or":
                return or_(self.at_least(node.left()), self.at_least(node.right()))
            case "Between":
                return self.at_least(node.replacement())
            case "With" if node.defs().size() == 1:
                shared = replace(self, _shared=node.defs().head().child())
                return shared.at_least(node.child())
            case "In" if node.list().isEmpty():
                return FALSE
        exact = self.exact(node)
        return TRUE if exact is None else exact

    def exact(self, node: Any) -> Expr | None:
        """The same condition, which binds to the schema; None if there is none."""
        exact = self._exact(node)
        try:
            return None if exact is None or bind(exact, self._schema) is None else exact
        except InvalidFilterError:
            return None

    def _exact(self, node: Any) -> Expr | None:
        """The same condition, which may not bind to the schema; None if there is none."""
        kind = _kind(node)
        match kind:
            case "And" | "Or":
                left, right = self._exact(node.left()), self._exact(node.right())
                if left is None or right is None:
                    return None
                return and_(left, right) if kind == "And" else or_(left, right)
            case "Not":
                child = self._exact(node.child())
                return None if child is None else not_(child)
            case "Between":
                return self._exact(node.replacement())
            case "With" if node.defs().size() == 1:
                shared = replace(self, _shared=node.defs().head().child())
                return shared._exact(node.child())
            case "Literal" if _type(node) == "boolean" and node.value() is not None:
                return TRUE if node.value() else FALSE
            case "IsNaN":
                field = self._field(_unwidened(node.child()))
                return None if field is None else self._predicate(Operation.IS_NAN, field, ())
            case "Like":
                return self._like(node)
            case "IsNull" | "IsNotNull":
                field = self._field(node.child())
                is_null = Operation.IS_NULL if kind == "IsNull" else Operation.NOT_NULL
                return None if field is None else self._predicate(is_null, field, ())
            case "AttributeReference" | "GetStructField":
                field = self._field(node)
                return None if field is None else self._predicate(Operation.EQ, field, (True,))
            case "StartsWith":
                return self._of_values(Operation.STARTS_WITH, node.left(), [node.right()])
            # Settings say whether no values at all are null to a null, which counts for `NOT`.
            case "In" if not node.list().isEmpty():
                listed = node.list()
                nodes = [listed.apply(index) for index in range(listed.size())]
                return self._of_values(Operation.IN, node.value(), nodes)
            case "EqualNullSafe":
                return self._null_safe(node.left(), node.right())
            case _ if kind in _COMPARISONS:
                operation, left, right = _COMPARISONS[kind], node.left(), node.right()
                found = self._of_values(operation, left, [right])
                return found or self._of_values(MIRRORED[operation], right, [left])
            case _:
                return None

    def _like(self, node: Any) -> Expr | None:
        equal = self._of_values(Operation.EQ, node.left(), [node.right()])
        if not isinstance(equal, Predicate) or not isinstance(equal.values[0], str):
            return None
        return like(equal.name, equal.values[0], str(node.escapeChar()))

    def _null_safe(self, left: Any, right: Any) -> Expr | None:
        different = self._of_values(Operation.NOT_EQ, left, [right])
        different = different or self._of_values(Operation.NOT_EQ, right, [left])
        if not isinstance(different, Predicate):
            return None
        is_null = Predicate(Operation.IS_NULL, different.name)
        if different.values == (None,):
            return is_null
        # not (a <=> x) is (a != x or a is null).
        return not_(or_(different, is_null))

    def _of_values(self, operation: Operation, column: Any, values: list[Any]) -> Expr | None:
        """A comparison of a column with constants; None if they are something else."""
        field = self._field(_unwidened(column))
        if field is None or getattr(field.field_type, "type_id", None) in READ_AS_ANOTHER_TYPE:
            return None
        found = [_constant(value) for value in values]
        if any(value is _UNKNOWN for value in found):
            return None
        return self._predicate(operation, field, tuple(found))

    def _predicate(
        self, operation: Operation, field: NestedField, values: tuple[Any, ...]
    ) -> Expr | None:
        path = self._schema.paths_by_id.get(field.field_id)
        return None if path is None else Predicate(operation, quote_name(path), values)

    def _field(self, node: Any) -> NestedField | None:
        """The column that a node reads, at the top level or in structs; None for others."""
        match _kind(node):
            case "CommonExpressionRef" if self._shared is not None:
                return self._field(_unwidened(self._shared))
            case "AttributeReference":
                return self._columns.get(node.exprId().id())
            case "GetStructField":
                parent = self._field(node.child())
                if parent is None or not isinstance(parent.field_type, StructType):
                    return None
                field: NestedField = parent.field_type.fields[node.ordinal()]
                return field
            case _:
                return None


class _Unknown:
    """Stands for a value that is not known while a scan is planned."""


_UNKNOWN = _Unknown()


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _type(node: Any) -> str:
    return str(node.dataType().simpleString())


def _unwidened(node: Any) -> Any:
    """What a cast that changes no value is of; other nodes as they are."""
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


def _constant(node: Any) -> Any:
    """The value of a node as Python has it; `_UNKNOWN` if it has none that is always the same."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not _is_constant(node):
        return _UNKNOWN
    try:
        value = node.eval(None)
    except (Py4JError, PySparkException):
        # Spark raises it, too, if it evaluates the condition.
        return _UNKNOWN
    return None if value is None else _python_value(_type(node), value)


def _is_constant(node: Any) -> bool:
    if _kind(node) not in _CONSTANT:
        return False
    children = node.children()
    return all(_is_constant(children.apply(index)) for index in range(children.size()))


def _python_value(name: str, value: Any) -> Any:
    match name:
        case "boolean" | "tinyint" | "smallint" | "int" | "bigint" | "double":
            return value
        case "float":
            # It came as the shortest decimal number for it, read as a double.
            return float(np.float32(value))
        case "string":
            return str(value.toString())
        case "binary":
            return bytes(value)
        case "date":
            return _moment(_EPOCH_DAY, timedelta(days=value))
        case "timestamp_ntz":
            return _moment(_EPOCH, timedelta(microseconds=value))
        case "timestamp":
            return _moment(_EPOCH.replace(tzinfo=UTC), timedelta(microseconds=value))
        case _ if name.startswith("decimal("):
            return Decimal(value.toString())
        case _:
            return _UNKNOWN


def _moment(epoch: Any, since: timedelta) -> Any:
    try:
        return epoch + since
    except OverflowError:
        return _UNKNOWN
