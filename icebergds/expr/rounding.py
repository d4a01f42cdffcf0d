"""Comparisons that Spark rounds before it makes them, and filters here make exactly."""

from __future__ import annotations

from icebergds.expr.names import resolve
from icebergds.expr.nodes import And, Expr, Not, Or, Predicate, conjuncts, disjuncts
from icebergds.spec.schema import Schema
from icebergds.spec.types import DOUBLE, FLOAT, LONG, DecimalType, IcebergType

# Whole numbers up to here are all different as floating-point numbers of these types.
_WHOLE_SINGLES = 2**24
_WHOLE_DOUBLES = 2**53
# So are decimals of so many digits as doubles.
_DECIMAL_DIGITS = 15


def compares_exactly(expr: Expr, schema: Schema, *, case_sensitive: bool = True) -> bool:
    """Whether Spark, too, compares the columns and the literals of a filter by their exact values.

    It turns a whole number or a decimal into the floating-point number next to it where the other
    side is one: to it the long 9007199254740993 equals `9007199254740992D`.

    Args:
        expr: a filter that binds to the schema.
    """
    match expr:
        case And() | Or():
            parts = conjuncts(expr) if isinstance(expr, And) else disjuncts(expr)
            return all(compares_exactly(p, schema, case_sensitive=case_sensitive) for p in parts)
        case Not():
            return compares_exactly(expr.child, schema, case_sensitive=case_sensitive)
        case Predicate():
            field = resolve(expr.name, schema, case_sensitive=case_sensitive)
            return not any(_rounds(field.field_type, value) for value in expr.values)
        case _:
            return True


def _rounds(field_type: IcebergType, literal: object) -> bool:
    match literal:
        case bool():
            return False
        case float() if field_type == LONG:
            return abs(literal) >= _WHOLE_DOUBLES
        case float() if isinstance(field_type, DecimalType):
            return field_type.precision > _DECIMAL_DIGITS
        case int() if field_type == FLOAT:
            return abs(literal) > _WHOLE_SINGLES
        case int() if field_type == DOUBLE:
            return abs(literal) > _WHOLE_DOUBLES
        case _:
            return False
