"""Converts conditions of Spark Connect to predicates on a table's columns.

Nothing is resolved on this side, so that only comparisons are converted whose meaning does not
depend on how Spark coerces types. Other parts become `TRUE`: Spark evaluates the whole condition
for every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import inf
from typing import Any

import numpy as np
from pyspark.sql.connect.expressions import (
    ColumnReference,
    Expression,
    LiteralExpression,
    SQLExpression,
    UnresolvedFunction,
)
from pyspark.sql.types import BooleanType, DataType, DecimalType as SparkDecimalType

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.names import quote_name, resolve, split_name
from icebergds.expr.nodes import (
    FALSE,
    MIRRORED,
    TRUE,
    And,
    Expr,
    Not,
    Operation,
    Or,
    Predicate,
    and_,
    conjuncts,
    disjuncts,
    not_,
    or_,
)
from icebergds.expr.sql import like
from icebergds.operations.conditions import Setting, plannable_condition
from icebergds.spark.row_level.condition_text import unqualified
from icebergds.spark.types import READ_AS_ANOTHER_TYPE
from icebergds.spec.schema import Schema
from icebergds.spec.types import DecimalType, NestedField, StructType, TypeId

_COMPARISONS = {
    "==": Operation.EQ,
    "=": Operation.EQ,
    ">": Operation.GT,
    ">=": Operation.GT_EQ,
    "<": Operation.LT,
    "<=": Operation.LT_EQ,
}
_ZONE = "spark.sql.session.timeZone"
# The texts of years beyond 9999 have another order.
_DATES_AS_TEXT = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
# Types of literals that Spark compares with a column without changing any value of it.
_SAME_VALUES: dict[TypeId, frozenset[str]] = {
    TypeId.INT: _INTEGERS | {"double"},
    TypeId.LONG: _INTEGERS,
    TypeId.FLOAT: frozenset({"float", "double"}),
    TypeId.DOUBLE: frozenset({"float", "double"}),
    TypeId.BOOLEAN: frozenset({"boolean"}),
    TypeId.STRING: frozenset({"string"}),
    TypeId.BINARY: frozenset({"binary"}),
    TypeId.DATE: frozenset({"date"}),
    TypeId.TIMESTAMP: frozenset({"timestamp_ntz"}),
    TypeId.TIMESTAMPTZ: frozenset({"timestamp"}),
}
# Text that Spark reads as one date.
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)


def converted(
    condition: Any,
    schema: Schema,
    columns: Sequence[NestedField],
    setting: Setting,
) -> Expr:
    """A bound predicate that is true for every row for which a condition is.

    Args:
        condition: a Column, or text.
        schema: the table's.
        columns: those that are read, under the names that the condition uses.
        setting: of the session, by which it reads text and dates; not asked without.
    """
    converter = _Converter(schema, columns, setting)
    if isinstance(condition, str):
        known = converter.of_text(condition) or TRUE
    else:
        expression = getattr(condition, "_expr", None)
        known = TRUE if expression is None else converter.at_least(expression)
    return bind(known, schema)


def converted_exactly(
    condition: Expression, schema: Schema, setting: Setting, names: Names
) -> tuple[Expr | None, Expr]:
    """The same condition as a predicate, and one that is true for every row for which it is.

    Neither is bound. The first one is None if only Spark evaluates the condition.

    Args:
        condition: which Spark has analyzed: its names are known not to be ambiguous.
        schema: the table's.
        setting: of the session, by which it reads text and dates.
        names: what qualifies columns in the condition.
    """
    converter = _Converter(schema, schema.fields, setting, names)
    exact = converter.exact(condition)
    at_least = converter.at_least(condition) if exact is None else exact
    return FALSE if at_least == FALSE else exact, at_least


def equal_names(
    condition: Expression, names: Names
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The names that a condition says are equal, with their qualifiers.

    Args:
        names: what qualifies columns in the condition, which is about other rows, too.
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
        other: the name of other rows that the condition is about; None if there are none.
    """

    alias: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class _Converter:
    _schema: Schema
    _columns: Sequence[NestedField]
    _setting: Setting
    _names: Names = Names()

    def of_text(self, text: str) -> Expr | None:
        # Whatever its case, a name is one of these; another column may have just this name.
        read = Schema(
            tuple(each for each in self._columns if each.field_id in self._schema.paths_by_id)
        )
        found = plannable_condition(text, read, self._setting(_ZONE), self._setting)
        return None if found is None else self._as_in_table(found, read)

    def at_least(self, node: Expression) -> Expr:
        """What is true for every row for which the node is."""
        match node:
            case UnresolvedFunction(_name="and", _args=[left, right]):
                return and_(self.at_least(left), self.at_least(right))
            case UnresolvedFunction(_name="or", _args=[left, right]):
                return or_(self.at_least(left), self.at_least(right))
            case UnresolvedFunction(_name="in", _args=[_]):
                return FALSE
        exact = self.exact(node)
        return TRUE if exact is None else exact

    def exact(self, node: Expression) -> Expr | None:
        """The same condition, which binds to the schema; None if there is none."""
        exact = self._exact(node)
        try:
            return None if exact is None or bind(exact, self._schema) is None else exact
        except InvalidFilterError:
            return None

    def _exact(self, node: Expression) -> Expr | None:
        """The same condition, which may not bind to the schema; None if there is none."""
        match node:
            case SQLExpression():
                return None if self._names.other else self.of_text(self._unqualified(node._expr))
            case LiteralExpression(_value=bool(value)):
                return TRUE if value else FALSE
            case ColumnReference():
                return self._of_values(Operation.EQ, node, [LiteralExpression(True, BooleanType())])
            case UnresolvedFunction(_name="<=>", _args=[left, right]):
                return self._null_safe(left, right)
            case UnresolvedFunction(_name="isNaN" | "isnan", _args=[child]):
                return self._null_test(Operation.IS_NAN, child)
            case UnresolvedFunction(_name="like", _args=[column, pattern]):
                return self._like(column, pattern)
            case UnresolvedFunction(_name="and" | "or", _args=[left, right]):
                one, other = self._exact(left), self._exact(right)
                if one is None or other is None:
                    return None
                return and_(one, other) if node._name == "and" else or_(one, other)
            case UnresolvedFunction(_name="not", _args=[child]):
                inner = self._exact(child)
                return None if inner is None else not_(inner)
            case UnresolvedFunction(_name="isNull", _args=[child]):
                return self._null_test(Operation.IS_NULL, child)
            case UnresolvedFunction(_name="isNotNull", _args=[child]):
                return self._null_test(Operation.NOT_NULL, child)
            # Settings say whether no values at all are null to a null, which counts for `NOT`.
            case UnresolvedFunction(_name="in", _args=[column, *values]) if values:
                return self._of_values(Operation.IN, column, values)
            case UnresolvedFunction(_name="startsWith", _args=[column, prefix]):
                return self._of_values(Operation.STARTS_WITH, column, [prefix])
            case UnresolvedFunction(_args=[left, right]) if node._name in _COMPARISONS:
                operation = _COMPARISONS[node._name]
                found = self._of_values(operation, left, [right])
                return found or self._of_values(MIRRORED[operation], right, [left])
            case _:
                return None

    def _as_in_table(self, found: Expr, read: Schema) -> Expr:
        """A condition on the columns that are read, with the names that the table has for them."""
        match found:
            case And() | Or():
                parts = conjuncts(found) if isinstance(found, And) else disjuncts(found)
                named = [self._as_in_table(part, read) for part in parts]
                return and_(*named) if isinstance(found, And) else or_(*named)
            case Not(child):
                return not_(self._as_in_table(child, read))
            case Predicate():
                field = resolve(found.name, read, case_sensitive=False)
                return replace(found, name=quote_name(self._schema.paths_by_id[field.field_id]))
            case _:
                return found

    def _unqualified(self, text: str) -> str:
        return text if self._names.alias is None else unqualified(text, self._names.alias)

    def _like(self, column: Expression, pattern: Expression) -> Expr | None:
        equal = self._of_values(Operation.EQ, column, [pattern])
        if not isinstance(equal, Predicate) or not isinstance(equal.values[0], str):
            return None
        return like(equal.name, equal.values[0], "\\")

    def _null_safe(self, left: Expression, right: Expression) -> Expr | None:
        different = self._of_values(Operation.NOT_EQ, left, [right])
        different = different or self._of_values(Operation.NOT_EQ, right, [left])
        if not isinstance(different, Predicate):
            return None
        is_null = Predicate(Operation.IS_NULL, different.name)
        # not (a <=> x) is (a != x or a is null).
        return is_null if different.values == (None,) else not_(or_(different, is_null))

    def _null_test(self, operation: Operation, node: Expression) -> Expr | None:
        name = self._name(self._field(node))
        return None if name is None else Predicate(operation, name)

    def _of_values(
        self, operation: Operation, column: Expression, values: Sequence[Expression]
    ) -> Expr | None:
        """A comparison of a column with literals; None if they are something else."""
        field = self._field(column)
        name = self._name(field)
        if field is None or name is None:
            return None
        found = []
        for value in values:
            if not isinstance(value, LiteralExpression) or not self._is_comparable(field, value):
                return None
            found.append(_python_value(value))
        return Predicate(operation, name, tuple(found))

    def _is_comparable(self, field: NestedField, literal: LiteralExpression) -> bool:
        """Whether a comparison with the literal is one of the column's own values."""
        if literal._value is None:
            return True
        name = literal._dataType.simpleString()
        if isinstance(field.field_type, DecimalType):
            # Spark compares them as decimals that hold both, if these have no more than 38 digits.
            return _digits_of_both(field.field_type, literal._dataType) <= 38
        type_id = field.field_type.type_id if hasattr(field.field_type, "type_id") else None
        if type_id is None or type_id in READ_AS_ANOTHER_TYPE:
            return False
        if type_id is TypeId.DATE and name == "string":
            are_texts = (self._setting(_DATES_AS_TEXT) or "").lower() == "true"
            return not are_texts and bool(_DATE.fullmatch(literal._value))
        return name in _SAME_VALUES.get(type_id, frozenset())

    def _name(self, field: NestedField | None) -> str | None:
        path = None if field is None else self._schema.paths_by_id.get(field.field_id)
        return None if path is None else quote_name(path)

    def _field(self, node: Expression) -> NestedField | None:
        """The column that a node names, at the top level or in structs; None for others."""
        if not isinstance(node, ColumnReference) or node._is_metadata_column:
            return None
        if node._plan_id is not None and self._names.other is not None:
            # Named through a DataFrame, which is that of the other rows.
            return None
        try:
            parts = split_name(node._unparsed_identifier)
        except InvalidFilterError:
            return None
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


def _digits_of_both(one: DecimalType, other: DataType) -> float:
    """The digits of a decimal type that holds all values of both types; of others, too many."""
    if isinstance(other, SparkDecimalType):
        whole, scale = other.precision - other.scale, other.scale
    elif other.simpleString() in _INTEGERS:
        whole, scale = 19, 0
    else:
        return inf
    return max(one.precision - one.scale, whole) + max(one.scale, scale)


def _python_value(literal: LiteralExpression) -> Any:
    value = literal._value
    match literal._dataType.simpleString():
        case _ if value is None:
            return None
        case "date":
            return _EPOCH_DAY + timedelta(days=value)
        case "timestamp_ntz":
            return _EPOCH + timedelta(microseconds=value)
        case "timestamp":
            return _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=value)
        case "float":
            return float(np.float32(value))
        case _:
            return value
