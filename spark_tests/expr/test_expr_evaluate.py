"""What bound predicates select."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, literals_of, operations_of, values_of

from icebergds.expr.evaluate import holds, matches
from icebergds.expr.nodes import (
    FALSE,
    NEGATED,
    TRUE,
    BoundPredicate,
    Operation,
    Predicate,
    and_,
    or_,
)
from icebergds.spec.types import BINARY, BOOLEAN, DOUBLE, INT, STRING

NULL_TESTS = (Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN)
COMPARISONS = [op for op in Operation if op not in NULL_TESTS]


def ask(op: Operation, value: Any, *literals: Any, of: Any = DOUBLE) -> bool:
    return holds(BoundPredicate(op, 1, of, literals), value)


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_never_select_null(op):
    assert not ask(op, None, "a", of=STRING)


@pytest.mark.parametrize(
    ("op", "selected"),
    [("is_null", True), ("not_null", False), ("is_nan", False), ("not_nan", True)],
)
def test_null_is_null_and_not_nan(op, selected):
    assert ask(Operation(op), None) is selected


@pytest.mark.parametrize(
    ("op", "selected"),
    [
        ("lt", False),
        ("lt_eq", False),
        ("gt", True),
        ("gt_eq", True),
        ("eq", False),
        ("not_eq", True),
        ("in", False),
        ("not_in", True),
    ],
)
@pytest.mark.parametrize("literal", [5.0, math.inf])
def test_nan_is_greater_than_every_other_value(op, selected, literal):
    assert ask(Operation(op), math.nan, literal) is selected


@pytest.mark.parametrize(
    ("op", "selected"),
    [("is_null", False), ("not_null", True), ("is_nan", True), ("not_nan", False)],
)
def test_nan_is_nan_and_not_null(op, selected):
    assert ask(Operation(op), math.nan) is selected


@pytest.mark.parametrize("op", ["eq", "in", "lt_eq", "gt_eq"])
def test_negative_zero_equals_zero(op):
    assert ask(Operation(op), -0.0, 0.0)
    assert not ask(NEGATED[Operation(op)], -0.0, 0.0)


@pytest.mark.parametrize(
    ("less", "greater"), [("\uffff", "\U00010000"), ("a", "aa"), ("Z", "a"), ("", "\0")]
)
def test_strings_are_in_the_order_of_their_utf8_bytes(less, greater):
    assert ask(Operation.LT, less, greater, of=STRING)
    assert less.encode() < greater.encode()


def test_byte_strings_are_unsigned():
    assert ask(Operation.GT, b"\x80", b"\x7f", of=BINARY)


def test_false_is_less_than_true():
    assert ask(Operation.LT, False, True, of=BOOLEAN)


def test_prefixes_are_exact():
    assert ask(Operation.STARTS_WITH, "abc", "ab", of=STRING)
    assert not ask(Operation.STARTS_WITH, "a", "ab", of=STRING)
    assert ask(Operation.NOT_STARTS_WITH, "a", "ab", of=STRING)


def test_connectives_combine_fields():
    one = BoundPredicate(Operation.EQ, 1, INT, (1,))
    two = BoundPredicate(Operation.EQ, 2, INT, (2,))
    row = {1: 1, 2: 3}
    assert matches(or_(one, two), row.__getitem__)
    assert not matches(and_(one, two), row.__getitem__)
    assert matches(TRUE, row.__getitem__)
    assert not matches(FALSE, row.__getitem__)


def test_unbound_filters_are_refused():
    with pytest.raises(TypeError, match="bind it to a schema first"):
        matches(Predicate(Operation.EQ, "a", (1,)), {}.__getitem__)


@given(st.data())
def test_of_a_value_either_a_predicate_or_its_negation_holds(data):
    field_type = data.draw(st.sampled_from(SCALAR_TYPES))
    op = data.draw(st.sampled_from(operations_of(field_type)))
    literal = data.draw(literals_of(field_type))
    value = data.draw(values_of(field_type))
    assert ask(op, value, literal, of=field_type) != ask(NEGATED[op], value, literal, of=field_type)
