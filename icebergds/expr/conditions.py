"""Reads conditions from any kind of tree, with one set of rules.

A tree says what each of its nodes is: a column, a constant, or an operator on other nodes. It also
resolves names. What it does not understand, and comparisons of values that the rules do not know,
are left to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol, TypeAlias

from icebergds.errors import InvalidFilterError
from icebergds.expr.nodes import (
    FALSE,
    LOCAL_DAY,
    MIRRORED,
    TRUE,
    Expr,
    Operation,
    Predicate,
    Term,
    and_,
    not_,
    or_,
)

UNREADABLE = (InvalidFilterError, ValueError, ArithmeticError, IndexError, RecursionError)
"""Errors of reading a condition; nothing is known about the condition then."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: as `Predicate` has it.
        term: the transform of it that is compared; None for its own values.
        is_comparable: whether constants of the condition may be values of the column.
    """

    name: str
    term: Term | None = None
    is_comparable: bool = True


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as `Predicate` has it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Later:
    """A time that is known only at evaluation, but is not before a day."""

    day: date


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator on nodes of the tree, or on pieces.

    Attributes:
        kind: an `Operation`, or one of `and`, `or`, `not`, `between`, `null_safe` (equality) and
            `like`, whose third part is the escape character.
    """

    kind: str
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A condition that has been read already."""

    condition: Expr


Piece: TypeAlias = Column | Constant | Later | Operator | Known


class Tree(Protocol):
    """A tree from which conditions are read."""

    def piece(self, node: Any) -> Piece | None:
        """What a node is; None if it is not understood."""

    def unusable(self, node: Any) -> InvalidFilterError:
        """The error for a node that is not understood."""


def _unchanged(condition: Expr) -> Expr:
    return condition


@dataclass(frozen=True, slots=True)
class Conditions:
    """Reads the conditions of a tree.

    Attributes:
        time_zone: the zone of values without one (`Predicate`).
    """

    tree: Tree
    time_zone: str | None = None

    def exact(self, node: Any) -> Expr:
        """The same condition.

        Raises:
            InvalidFilterError: a part is not understood.
        """
        match self._piece(node):
            case Constant(bool(value)):
                return TRUE if value else FALSE
            case Known(condition):
                return condition
            case Column() as column if column.term is None:
                return self._predicate(Operation.EQ, column, True)
            case Operator("and", parts):
                return and_(*map(self.exact, parts))
            case Operator("or", parts):
                return or_(*map(self.exact, parts))
            case Operator("not", (part,)):
                return not_(self.exact(part))
            case Operator("between", parts):
                return and_(*map(self.exact, _bounds(*parts)))
            case Operator("null_safe", (left, right)):
                return self._null_safe(node, left, right)
            case Operator("like", (column, pattern, escape)):
                return self._like(node, column, pattern, escape)
            case Operator(Operation.IS_NULL | Operation.NOT_NULL | Operation.IS_NAN as op, (part,)):
                return self._predicate(Operation(op), self._column(part))
            case Operator(Operation.STARTS_WITH, (column, prefix)):
                value = self._value(prefix)
                return self._predicate(Operation.STARTS_WITH, self._column(column), value)
            # A setting decides whether null IN no values is null, which matters under `NOT`.
            case Operator(Operation.IN, (column, *values)) if values:
                found = [self._value(value) for value in values]
                return self._predicate(Operation.IN, self._subject(column), *found)
            case Operator(kind, (left, right)) if kind in MIRRORED:
                return self._compared(node, Operation(kind), left, right)
        raise self._unusable(node)

    def at_least(
        self,
        node: Any,
        settle: Callable[[Expr], Expr] = _unchanged,
        unknown: Callable[[Any], None] = lambda _: None,
    ) -> Expr:
        """A filter that is true for every row for which a condition is.

        Args:
            settle: converts each part that is understood; raises InvalidFilterError if it cannot.
            unknown: called for each part about which nothing is known.
        """
        try:
            # Trees may be slow to say what a node is.
            piece = self._piece(node) or node
            match piece:
                case Operator("and" | "or" as kind, parts):
                    join = and_ if kind == "and" else or_
                    return join(*(self.at_least(part, settle, unknown) for part in parts))
                case Operator("between", parts):
                    bounds = _bounds(*parts)
                    return and_(*(self.at_least(part, settle, unknown) for part in bounds))
                case Operator(Operation.IN, (_,)):
                    return FALSE
                case Operator(kind, (left, right)) if kind in MIRRORED:
                    sides = self._piece(left) or left, self._piece(right) or right
                    later = _later(Operation(kind), *sides)
                    return settle(self.exact(later or Operator(kind, sides)))
                case _:
                    return settle(self.exact(piece))
        except UNREADABLE:
            unknown(node)
            return TRUE

    def conjuncts(self, node: Any) -> list[Any]:
        """The parts of a condition that must all be true."""
        try:
            piece = self._piece(node)
        except UNREADABLE:
            return [node]
        if not isinstance(piece, Operator) or piece.kind != "and":
            return [node]
        return [each for part in piece.parts for each in self.conjuncts(part)]

    def _compared(self, node: Any, op: Operation, left: Any, right: Any) -> Expr:
        match self._piece(left), self._piece(right):
            case (Column() as column, _):
                value = self._value(right)
            case (_, Column() as column):
                op, value = MIRRORED[op], self._value(left)
            case (Constant(one), Constant(other)) if type(one) is type(other) is int:
                return TRUE if _holds(op, one, other) else FALSE
            case _:
                raise self._unusable(node)
        return self._predicate(op, column, value)

    def _null_safe(self, node: Any, left: Any, right: Any) -> Expr:
        equal = self._compared(node, Operation.EQ, left, right)
        if not isinstance(equal, Predicate) or equal.term is not None:
            raise self._unusable(node)
        column = Column(equal.name)
        if equal.values == (None,):
            return self._predicate(Operation.IS_NULL, column)
        # Two predicates, because the negation selects nulls.
        return and_(self._predicate(Operation.NOT_NULL, column), equal)

    def _like(self, node: Any, column: Any, pattern: Any, escape: str) -> Expr:
        """LIKE, if the pattern has no wildcard except a trailing %."""
        text = self._value(pattern)
        found = _prefix(text, escape) if isinstance(text, str) else None
        if found is None:
            raise self._unusable(node)
        prefix, is_open_ended = found
        named = self._column(column)
        # Without a wildcard EQ would be enough, but STARTS_WITH refuses columns that are not text.
        starts = self._predicate(Operation.STARTS_WITH, named, prefix)
        if is_open_ended:
            return starts
        return and_(starts, self._predicate(Operation.EQ, named, prefix))

    def _predicate(self, op: Operation, column: Column, *values: Any) -> Expr:
        if values and not column.is_comparable:
            raise InvalidFilterError(f"values of {column.name} are not compared here")
        return Predicate(op, column.name, values, self.time_zone, column.term)

    def _subject(self, node: Any) -> Column:
        piece = self._piece(node)
        if not isinstance(piece, Column):
            raise self._unusable(node)
        return piece

    def _column(self, node: Any) -> Column:
        piece = self._subject(node)
        if piece.term is not None:
            raise self._unusable(node)
        return piece

    def _value(self, node: Any) -> Any:
        piece = self._piece(node)
        if not isinstance(piece, Constant):
            raise self._unusable(node)
        return piece.value

    def _unusable(self, node: Any) -> InvalidFilterError:
        if isinstance(node, Piece):
            return InvalidFilterError("a part of the condition is not understood")
        return self.tree.unusable(node)

    def _piece(self, node: Any) -> Piece | None:
        return node if isinstance(node, Piece) else self.tree.piece(node)


def _later(op: Operation, left: Any, right: Any) -> Operator | None:
    """What follows from a comparison with a later-known time; None for other comparisons."""
    match left, right:
        case (Column() as column, Later(day)):
            pass
        case (Later(day), Column() as column):
            op = MIRRORED[op]
        case _:
            return None
    if op not in _NOT_BEFORE or column.term not in (None, LOCAL_DAY):
        return None
    return Operator(Operation.GT_EQ, (replace(column, term=LOCAL_DAY), Constant(day)))


_NOT_BEFORE = (Operation.EQ, Operation.GT, Operation.GT_EQ)


def _bounds(value: Any, low: Any, high: Any) -> Sequence[Operator]:
    return Operator(Operation.GT_EQ, (value, low)), Operator(Operation.LT_EQ, (value, high))


def _holds(op: Operation, one: int, other: int) -> bool:
    match op:
        case Operation.EQ:
            return one == other
        case Operation.NOT_EQ:
            return one != other
        case Operation.LT:
            return one < other
        case Operation.LT_EQ:
            return one <= other
        case Operation.GT:
            return one > other
        case _:
            return one >= other


def _prefix(pattern: str, escape: str) -> tuple[str, bool] | None:
    """The literal prefix of a LIKE pattern, and whether a % follows it; None for other patterns."""
    prefix: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                return None
            prefix.append(escaped)
        elif character == "%":
            return None if set(characters) - {"%"} else ("".join(prefix), True)
        elif character == "_":
            return None
        else:
            prefix.append(character)
    return "".join(prefix), False
