"""Writes bound filters as JSON (REST catalog specification: Expression)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icebergds.expr.nodes import (
    SETS,
    TRUE,
    UNARY,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    InBuckets,
    Operation,
    Or,
    and_,
    bound_expected,
    conjuncts,
    disjuncts,
    or_,
)
from icebergds.spec.json.values import to_json
from icebergds.spec.schema import Schema
from icebergds.spec.types import DecimalType, IcebergType, TypeId

# Other implementations compare or read values of other types differently: NaN is not the
# greatest number for them, and bytes as text are not bytes.
_TYPES = frozenset(
    {
        TypeId.BOOLEAN,
        TypeId.INT,
        TypeId.LONG,
        TypeId.DATE,
        TypeId.TIMESTAMP,
        TypeId.TIMESTAMPTZ,
        TypeId.STRING,
    }
)


def filter_to_json(row_filter: Expr, schema: Schema) -> Any:
    """The JSON of a filter that selects at least the rows of a bound one.

    Predicates that JSON cannot express, or that other implementations evaluate differently, are
    left out.

    Args:
        schema: has the names of the columns.
    """
    return _to_json(_expressible(row_filter, schema), schema, to_json)


def anonymous_filter_to_json(row_filter: Expr, schema: Schema) -> Any:
    """The JSON of a bound filter for reports: values are replaced by their kind and size.

    Args:
        schema: has the names of the columns.
    """
    return _to_json(row_filter, schema, _anonymous)


def _expressible(expr: Expr, schema: Schema) -> Expr:
    match expr:
        case And():
            return and_(*(_expressible(part, schema) for part in conjuncts(expr)))
        case Or():
            return or_(*(_expressible(part, schema) for part in disjuncts(expr)))
        case BoundPredicate():
            return expr if _is_expressible(expr, schema) else TRUE
        case InBuckets():
            return TRUE
        case AlwaysTrue() | AlwaysFalse():
            return expr
        case _:
            raise bound_expected(expr)


def _is_expressible(predicate: BoundPredicate, schema: Schema) -> bool:
    field = schema.find_field(predicate.field_id)
    # A name with a dot might mean a nested column.
    if field is None or schema.parents_by_id.get(predicate.field_id) is not None:
        return False
    if "." in field.name or not _is_known(predicate.field_type):
        return False
    # Other implementations compare text by UTF-16, which orders it differently beyond ASCII.
    return all(not isinstance(value, str) or value.isascii() for value in predicate.values)


def _is_known(field_type: IcebergType) -> bool:
    if isinstance(field_type, DecimalType):
        return field_type.scale >= 0
    return getattr(field_type, "type_id", None) in _TYPES


def _to_json(expr: Expr, schema: Schema, literal: Callable[[IcebergType, Any], Any]) -> Any:
    match expr:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case And(left, right) | Or(left, right):
            return {
                "type": "and" if isinstance(expr, And) else "or",
                "left": _to_json(left, schema, literal),
                "right": _to_json(right, schema, literal),
            }
        case BoundPredicate(op, field_id, field_type, values):
            predicate = {"type": _NAMES[op], "term": schema.find_name(field_id)}
            if op in UNARY:
                return predicate
            literals = list(dict.fromkeys(literal(field_type, value) for value in values))
            return (
                {**predicate, "values": literals}
                if op in SETS
                else {
                    **predicate,
                    "value": literals[0],
                }
            )
        case InBuckets():
            return True
        case _:
            raise bound_expected(expr)


def _anonymous(field_type: IcebergType, value: Any) -> str:
    type_id = getattr(field_type, "type_id", None)
    if type_id in (TypeId.INT, TypeId.LONG):
        return f"({len(str(abs(value)))}-digit-int)"
    return "(float)" if type_id in (TypeId.FLOAT, TypeId.DOUBLE) else f"({field_type})"


_NAMES = {op: op.value.replace("_", "-") for op in Operation}
