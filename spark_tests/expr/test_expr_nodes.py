"""Building and negating filters."""

from __future__ import annotations

import pickle

import pytest

from icebergds.expr.nodes import (
    FALSE,
    NEGATED,
    TRUE,
    And,
    BoundPredicate,
    Not,
    Operation,
    Or,
    Predicate,
    and_,
    conjuncts,
    disjuncts,
    map_leaves,
    not_,
    or_,
)
from icebergds.spec.types import INT, DecimalType

A, B, C = (Predicate(Operation.EQ, name, (1,)) for name in "abc")


def test_connectives_remove_constants():
    assert and_() == TRUE
    assert or_() == FALSE
    assert and_(A, TRUE) == A
    assert and_(A, FALSE, B) == FALSE
    assert or_(A, FALSE) == A
    assert or_(A, TRUE, B) == TRUE


def test_connectives_keep_order_and_flatten():
    assert conjuncts(and_(A, and_(B, C))) == [A, B, C]
    assert disjuncts(or_(or_(A, B), C)) == [A, B, C]
    assert conjuncts(or_(A, B)) == [or_(A, B)]


def test_thousands_of_alternatives_are_a_shallow_tree():
    wide = or_(*(Predicate(Operation.EQ, "a", (value,)) for value in range(5000)))
    depth, node = 0, wide
    while isinstance(node, Or):
        depth, node = depth + 1, node.left
    assert depth <= 13
    assert pickle.loads(pickle.dumps(wide)) == wide


@pytest.mark.parametrize("op", list(Operation))
def test_every_operation_has_a_negation(op):
    assert NEGATED[NEGATED[op]] is op
    assert not_(not_(Predicate(op, "a"))) == Predicate(op, "a")


def test_negation_moves_inwards():
    not_a, not_b = Predicate(Operation.NOT_EQ, "a", (1,)), Predicate(Operation.NOT_EQ, "b", (1,))
    assert not_(And(A, B)) == Or(not_a, not_b)
    assert not_(Or(A, Not(B))) == And(not_a, B)
    assert not_(TRUE) == FALSE
    assert not_(FALSE) == TRUE


def test_negation_keeps_the_time_zone():
    zoned = Predicate(Operation.LT, "a", ("2020-01-01",), "Europe/Paris")
    assert not_(zoned) == Predicate(Operation.GT_EQ, "a", ("2020-01-01",), "Europe/Paris")


def test_bound_filters_are_not_negated():
    with pytest.raises(TypeError, match="before binding"):
        not_(BoundPredicate(Operation.EQ, 1, INT, (1,)))


def test_values_of_in_are_sorted_and_distinct():
    assert BoundPredicate(Operation.IN, 1, INT, (3, 1, 3, 2)).values == (1, 2, 3)
    assert BoundPredicate(Operation.NOT_IN, 1, INT, (3, 1, 3, 2)).values == (1, 2, 3)


def test_map_leaves_simplifies():
    low, high = (BoundPredicate(Operation.EQ, 1, INT, (value,)) for value in (1, 2))
    assert map_leaves(or_(low, high), lambda leaf: FALSE if leaf == low else leaf) == high
    assert map_leaves(and_(low, high), lambda leaf: FALSE if leaf == low else leaf) == FALSE


def test_filters_read_as_text():
    assert str(and_(A, or_(B, Not(C)))) == "(a eq 1 and (b eq 1 or not c eq 1))"
    many = BoundPredicate(Operation.IN, 7, DecimalType(4, 2), tuple(range(20)))
    assert str(many) == "#7 in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)"
    assert str(Predicate(Operation.IS_NULL, "a.b")) == "a.b is_null"
