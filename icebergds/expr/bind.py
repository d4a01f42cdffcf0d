"""Binds filters to a schema: column names to field ids, literals to values of column types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.literals import RoundedLiteral, round_literal
from icebergds.expr.names import resolve
from icebergds.expr.nodes import (
    FALSE,
    SETS,
    TRUE,
    UNARY,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    InBuckets,
    Not,
    Operation,
    Or,
    Predicate,
    and_,
    bound_expected,
    conjuncts,
    disjuncts,
    map_leaves,
    not_,
    or_,
    unbound_expected,
)
from icebergds.expr.sql_text import predicate_text
from icebergds.expr.terms import on_column, term_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    PrimitiveType,
)


def bind(expr: Expr, schema: Schema, case_sensitive: bool = True) -> Expr:
    """Binds a filter to the fields of a schema; the result has no `Not` and exact column values.

    What the column's type already decides is simplified: on an `int`, `x < 10**12` becomes
    `x is not null` and `x = 1.5` becomes false. Raises InvalidFilterError for unknown or ambiguous
    columns, columns inside lists and maps, literals that cannot be compared with the column's type,
    and operations that the type does not support.
    """
    match expr:
        case AlwaysTrue() | AlwaysFalse():
            return expr
        case And():
            return and_(*(bind(part, schema, case_sensitive) for part in conjuncts(expr)))
        case Or():
            return or_(*(bind(part, schema, case_sensitive) for part in disjuncts(expr)))
        case Not(child):
            return bind(not_(child), schema, case_sensitive)
        case Predicate():
            field = resolve(expr.name, schema, case_sensitive)
            return _bind_predicate(expr, field) if expr.term is None else _bind_term(expr, field)
        case BoundPredicate() | InBuckets():
            raise unbound_expected(expr)


def field_ids(expr: Expr) -> frozenset[int]:
    """The ids of the fields that a bound filter refers to."""
    match expr:
        case And():
            return frozenset().union(*(field_ids(part) for part in conjuncts(expr)))
        case Or():
            return frozenset().union(*(field_ids(part) for part in disjuncts(expr)))
        case BoundPredicate(field_id=field_id):
            return frozenset((field_id,))
        case AlwaysTrue() | AlwaysFalse():
            return frozenset()
        case _:
            raise bound_expected(expr)


def _bind_predicate(predicate: Predicate, field: NestedField) -> Expr:
    op, field_type = predicate.op, field.field_type
    count = len(predicate.values)
    if op not in SETS and count != (0 if op in UNARY else 1):
        expected = "no value" if op in UNARY else "one value"
        raise InvalidFilterError(
            f"filter {predicate_text(predicate)} has {count} values; {op} takes {expected}"
        )
    unknown = field_type == UNKNOWN
    if op in (Operation.IS_NULL, Operation.NOT_NULL):
        if unknown:
            return TRUE if op is Operation.IS_NULL else FALSE
        return BoundPredicate(op, field.field_id, field_type)
    if op in (Operation.IS_NAN, Operation.NOT_NAN):
        return _bind_nan_test(predicate, field)
    if not isinstance(field_type, PrimitiveType | DecimalType | FixedType) or (
        field_type == VARIANT
    ):
        raise _unsupported(predicate, field_type, "only IS NULL and IS NOT NULL")
    if op in SETS and not count:
        return FALSE if op is Operation.IN else TRUE
    if unknown:
        return FALSE
    if op in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return _bind_prefix(predicate, field)
    try:
        literals = [
            round_literal(field_type, value, predicate.time_zone)
            for value in predicate.values
            if value is not None
        ]
    except ValueError as error:
        raise InvalidFilterError(
            f"filter {predicate_text(predicate)}: column {predicate.name} is {field_type}: {error}"
        ) from error
    # A comparison with null is unknown; so is `not_in` a list with a null, if it is not false.
    if len(literals) < count and op is not Operation.IN:
        return FALSE
    with_nan = any(literal.is_nan for literal in literals)
    if op is Operation.IN:
        return or_(_in(field, literals), _bound(Operation.IS_NAN, field) if with_nan else FALSE)
    if op is Operation.NOT_IN:
        return and_(
            _not_in(field, literals), _bound(Operation.NOT_NAN, field) if with_nan else TRUE
        )
    return _compare(op, field, literals[0])


def _bind_term(predicate: Predicate, field: NestedField) -> Expr:
    assert predicate.term is not None

    def column(leaf: BoundPredicate) -> Expr:
        found = on_column(leaf, predicate, field.field_type)
        return found if isinstance(found, InBuckets) else _bound_to(field, found)

    try:
        given = replace(field, field_type=term_type(predicate.term, field.field_type))
        return map_leaves(_bind_predicate(predicate, given), column)
    except ValueError as error:
        raise InvalidFilterError(
            f"filter {predicate_text(predicate)}: column {predicate.name} is {field.field_type}: "
            f"{error}"
        ) from error


def _bound_to(field: NestedField, expr: Expr) -> Expr:
    """Binds a condition on one field."""
    match expr:
        case And():
            return and_(*(_bound_to(field, part) for part in conjuncts(expr)))
        case Or():
            return or_(*(_bound_to(field, part) for part in disjuncts(expr)))
        case Predicate():
            return _bind_predicate(expr, field)
        case _:
            return expr


def _bind_nan_test(predicate: Predicate, field: NestedField) -> Expr:
    field_type = field.field_type
    if field_type in (FLOAT, DOUBLE):
        return _bound(predicate.op, field)
    if field_type in (INT, LONG, UNKNOWN) or isinstance(field_type, DecimalType):
        return FALSE if predicate.op is Operation.IS_NAN else TRUE
    raise _unsupported(predicate, field_type, "all operations but isnan")


def _bind_prefix(predicate: Predicate, field: NestedField) -> Expr:
    if field.field_type != STRING:
        raise _unsupported(predicate, field.field_type, "comparisons")
    prefix = predicate.values[0]
    if prefix is None:
        return FALSE
    if not isinstance(prefix, str):
        raise InvalidFilterError(
            f"filter {predicate_text(predicate)}: the prefix {prefix!r} is not a string"
        )
    if prefix:
        return _bound(predicate.op, field, prefix)
    return _bound(Operation.NOT_NULL, field) if predicate.op is Operation.STARTS_WITH else FALSE


def _compare(op: Operation, field: NestedField, literal: RoundedLiteral) -> Expr:
    match op:
        case Operation.EQ:
            return _equal(field, literal)
        case Operation.NOT_EQ:
            return _not_equal(field, literal)
        case Operation.LT | Operation.LT_EQ:
            return _below(op, field, literal)
        case _:
            return _above(op, field, literal)


def _equal(field: NestedField, literal: RoundedLiteral) -> Expr:
    if literal.is_nan:
        return _bound(Operation.IS_NAN, field)
    return _bound(Operation.EQ, field, literal.floor) if literal.is_exact else FALSE


def _not_equal(field: NestedField, literal: RoundedLiteral) -> Expr:
    if literal.is_nan:
        return and_(_bound(Operation.NOT_NULL, field), _bound(Operation.NOT_NAN, field))
    if literal.is_exact:
        return _bound(Operation.NOT_EQ, field, literal.floor)
    return _bound(Operation.NOT_NULL, field)


def _below(op: Operation, field: NestedField, literal: RoundedLiteral) -> Expr:
    if literal.is_nan:
        not_null = _bound(Operation.NOT_NULL, field)
        if op is Operation.LT_EQ:
            return not_null
        return and_(not_null, _bound(Operation.NOT_NAN, field))
    if literal.is_exact:
        return _bound(op, field, literal.floor)
    if literal.ceiling is None:
        return _bound(Operation.NOT_NULL, field)
    return FALSE if literal.floor is None else _bound(Operation.LT_EQ, field, literal.floor)


def _above(op: Operation, field: NestedField, literal: RoundedLiteral) -> Expr:
    if literal.is_nan:
        return _bound(Operation.IS_NAN, field) if op is Operation.GT_EQ else FALSE
    if literal.is_exact:
        return _bound(op, field, literal.floor)
    if literal.floor is None:
        return _bound(Operation.NOT_NULL, field)
    return FALSE if literal.ceiling is None else _bound(Operation.GT_EQ, field, literal.ceiling)


def _in(field: NestedField, literals: list[RoundedLiteral]) -> Expr:
    values = {literal.floor for literal in literals if literal.is_exact}
    if len(values) > 1:
        return BoundPredicate(Operation.IN, field.field_id, field.field_type, tuple(values))
    return or_(*(_bound(Operation.EQ, field, value) for value in values))


def _not_in(field: NestedField, literals: list[RoundedLiteral]) -> Expr:
    values = {literal.floor for literal in literals if literal.is_exact}
    if len(values) > 1:
        return BoundPredicate(Operation.NOT_IN, field.field_id, field.field_type, tuple(values))
    if values:
        return _bound(Operation.NOT_EQ, field, *values)
    return _bound(Operation.NOT_NULL, field)


def _bound(op: Operation, field: NestedField, *values: Any) -> BoundPredicate:
    return BoundPredicate(op, field.field_id, field.field_type, values)


def _unsupported(predicate: Predicate, field_type: IcebergType, usable: str) -> InvalidFilterError:
    return InvalidFilterError(
        f"filter {predicate_text(predicate)}: column {predicate.name} is {field_type}, which does "
        f"not support this; it supports {usable}"
    )
