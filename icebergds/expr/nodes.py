"""Defines the nodes of filters and their semantics.

A filter is written with `Predicate` nodes, which name columns; `bind.bind` turns them into
`BoundPredicate` nodes, which carry field ids. Evaluators, projections and masks take bound filters.

A row is selected if the whole filter is true for it, in the three-valued logic of SQL:

* comparisons, `in`, `not_in`, `starts_with` and `not_starts_with` are unknown for a null column,
  so neither they nor their negations select it; a null literal makes a comparison unknown for
  every row;
* `is_null`, `not_null`, `is_nan` and `not_nan` are never unknown: null is not NaN;
* NaN equals NaN and is greater than every other value (Spark's order), and -0.0 equals 0.0;
* strings compare by their UTF-8 bytes, byte strings and uuids by unsigned bytes, false before true;
* `in` of no values is false and `not_in` of no values is true, also for null.

`InBuckets` is only in bound filters that choose files: rows are not tested for it.

Negation is exact on unbound filters: `not_` moves it into the operations. It is not defined on
bound filters: binding has already turned unknown into false.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from typing import Any

from icebergds.spec.transforms import DayTransform, Transform, YearTransform
from icebergds.spec.types import IcebergType


class Operation(StrEnum):
    """The operation of a predicate."""

    LT = "lt"
    LT_EQ = "lt_eq"
    GT = "gt"
    GT_EQ = "gt_eq"
    EQ = "eq"
    NOT_EQ = "not_eq"
    IN = "in"
    NOT_IN = "not_in"
    IS_NULL = "is_null"
    NOT_NULL = "not_null"
    IS_NAN = "is_nan"
    NOT_NAN = "not_nan"
    STARTS_WITH = "starts_with"
    NOT_STARTS_WITH = "not_starts_with"


UNARY = frozenset({Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN})
SETS = frozenset({Operation.IN, Operation.NOT_IN})

NEGATED: dict[Operation, Operation] = {
    Operation.LT: Operation.GT_EQ,
    Operation.EQ: Operation.NOT_EQ,
    Operation.GT: Operation.LT_EQ,
    Operation.IN: Operation.NOT_IN,
    Operation.IS_NULL: Operation.NOT_NULL,
    Operation.IS_NAN: Operation.NOT_NAN,
    Operation.STARTS_WITH: Operation.NOT_STARTS_WITH,
}
NEGATED.update({negated: op for op, negated in NEGATED.items()})

MIRRORED: dict[Operation, Operation] = {
    Operation.EQ: Operation.EQ,
    Operation.NOT_EQ: Operation.NOT_EQ,
    Operation.LT: Operation.GT,
    Operation.LT_EQ: Operation.GT_EQ,
    Operation.GT: Operation.LT,
    Operation.GT_EQ: Operation.LT_EQ,
}
"""What a comparison becomes when its sides are swapped."""


@dataclass(frozen=True, slots=True)
class AlwaysTrue:
    """Selects every row."""

    def __str__(self) -> str:
        return "true"


@dataclass(frozen=True, slots=True)
class AlwaysFalse:
    """Selects no row."""

    def __str__(self) -> str:
        return "false"


@dataclass(frozen=True, slots=True)
class And:
    """Selects the rows that both sides select; build it with `and_`."""

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"({self.left} and {self.right})"


@dataclass(frozen=True, slots=True)
class Or:
    """Selects the rows that either side selects; build it with `or_`."""

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"({self.left} or {self.right})"


@dataclass(frozen=True, slots=True)
class Not:
    """Selects the rows for which its child is false, but not those for which it is unknown."""

    child: Expr

    def __str__(self) -> str:
        return f"not {self.child}"


@dataclass(frozen=True, slots=True)
class Term:
    """What a predicate compares if it is not a column's own value: a transform of it.

    Attributes:
        is_local: whether it is Spark's `date` or `year`, which take the time zone of the predicate
            and count years from year 0; otherwise it is Iceberg's transform, in UTC.
    """

    transform: Transform
    is_local: bool = False

    def __str__(self) -> str:
        return "date" if self == LOCAL_DAY else str(self.transform)


LOCAL_DAY = Term(DayTransform(), is_local=True)
LOCAL_YEAR = Term(YearTransform(), is_local=True)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate on a column by name.

    `name` is a path of parts joined with dots, as `names.quote_name` writes it. `values` are
    plain Python values: bool, int, float, Decimal, str, bytes, UUID, date, time, datetime, or
    None; one for a comparison or a prefix, any number for `in` and `not_in`, none otherwise.
    `time_zone` is the zone of values without one, for columns whose values are instants. With a
    `term`, values are compared with its result; then `op` is a comparison, `in` or `not_in`.
    """

    op: Operation
    name: str
    values: tuple[Any, ...] = ()
    time_zone: str | None = None
    term: Term | None = None

    @property
    def subject(self) -> str:
        """What is compared, for messages."""
        return self.name if self.term is None else f"{self.term}({self.name})"

    def __str__(self) -> str:
        return _describe(self.op, self.subject, self.values)


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """A predicate on a column by field id.

    `values` are in the in-memory representation of `field_type` (see `spec.types`), never None and
    never NaN; those of `in` and `not_in` are kept sorted and distinct.
    """

    op: Operation
    field_id: int
    field_type: IcebergType
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.op in SETS:
            object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    @property
    def value(self) -> Any:
        """The single value of a comparison or a prefix."""
        return self.values[0]

    def __str__(self) -> str:
        return _describe(self.op, f"#{self.field_id}", self.values)


@dataclass(frozen=True, slots=True)
class InBuckets:
    """Selects the rows whose values are in buckets of the transform `bucket[count]`.

    Only the partitions of files are tested for it; everything else takes filters that are
    `relaxed`.

    Attributes:
        field_id: of the column.
        buckets: sorted and distinct.
    """

    field_id: int
    count: int
    buckets: tuple[int, ...]

    def __str__(self) -> str:
        return f"bucket({self.count}, #{self.field_id}) in {self.buckets}"


Expr = AlwaysTrue | AlwaysFalse | And | Or | Not | Predicate | BoundPredicate | InBuckets

TRUE = AlwaysTrue()
FALSE = AlwaysFalse()


def and_(*operands: Expr) -> Expr:
    """The conjunction of any number of operands, constants removed; TRUE if there are none."""
    return _connect(And, operands, neutral=TRUE, absorbing=FALSE)


def or_(*operands: Expr) -> Expr:
    """The disjunction of any number of operands, constants removed; FALSE if there are none."""
    return _connect(Or, operands, neutral=FALSE, absorbing=TRUE)


def not_(operand: Expr) -> Expr:
    """The negation, moved into the operations of the predicates; not defined on bound filters."""
    match operand:
        case AlwaysTrue():
            return FALSE
        case AlwaysFalse():
            return TRUE
        case Not(child):
            return child
        case And():
            return or_(*(not_(part) for part in conjuncts(operand)))
        case Or():
            return and_(*(not_(part) for part in disjuncts(operand)))
        case Predicate():
            return replace(operand, op=NEGATED[operand.op])
        case BoundPredicate() | InBuckets():
            raise unbound_expected(operand)


def conjuncts(expr: Expr) -> list[Expr]:
    """The operands of a chain of `And`, in order; the expression itself if it is not an `And`."""
    return _operands(And, expr)


def disjuncts(expr: Expr) -> list[Expr]:
    """The operands of a chain of `Or`, in order; the expression itself if it is not an `Or`."""
    return _operands(Or, expr)


def map_leaves(
    expr: Expr,
    leaf: Callable[[BoundPredicate], Expr],
    in_buckets: Callable[[InBuckets], Expr] | None = None,
) -> Expr:
    """Replaces every predicate of a bound filter and simplifies the result.

    Args:
        in_buckets: replaces `InBuckets`; if not given, the filter must not contain any.
    """
    match expr:
        case And():
            return and_(*(map_leaves(part, leaf, in_buckets) for part in conjuncts(expr)))
        case Or():
            return or_(*(map_leaves(part, leaf, in_buckets) for part in disjuncts(expr)))
        case BoundPredicate():
            return leaf(expr)
        case InBuckets() if in_buckets is not None:
            return in_buckets(expr)
        case AlwaysTrue() | AlwaysFalse():
            return expr
        case _:
            raise bound_expected(expr)


def relaxed(expr: Expr) -> Expr:
    """A bound filter without `InBuckets`, which selects at least the same rows."""
    return map_leaves(expr, lambda predicate: predicate, lambda _: TRUE)


def evaluate(expr: Expr, leaf: Callable[[BoundPredicate], bool]) -> bool:
    """Evaluates a bound filter, given the value of each predicate."""
    match expr:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case And(left, right):
            return evaluate(left, leaf) and evaluate(right, leaf)
        case Or(left, right):
            return evaluate(left, leaf) or evaluate(right, leaf)
        case BoundPredicate():
            return leaf(expr)
        case _:
            raise bound_expected(expr)


def contains(values: Sequence[Any], value: Any) -> bool:
    """Whether the sorted values of an `in` contain a value that is neither null nor NaN."""
    at = bisect_left(values, value)
    return at < len(values) and bool(values[at] == value)


def bound_expected(expr: Expr) -> TypeError:
    """The error for a filter that is not bound."""
    return TypeError(f"{expr} is not bound: bind it to a schema first (expr.bind.bind)")


def unbound_expected(expr: Expr) -> TypeError:
    """The error for a bound filter where an unbound one is required."""
    return TypeError(f"{expr} is already bound: negate and combine filters before binding them")


def _connect(
    node: type[And] | type[Or], operands: Sequence[Expr], *, neutral: Expr, absorbing: Expr
) -> Expr:
    parts = [part for operand in operands for part in _operands(node, operand) if part != neutral]
    if absorbing in parts:
        return absorbing
    # Balanced, so that filters with thousands of operands stay far from the recursion limit.
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [reduce(node, pair) for pair in pairs]
    return parts[0] if parts else neutral


def _operands(node: type[And] | type[Or], expr: Expr) -> list[Expr]:
    found: list[Expr] = []
    stack = [expr]
    while stack:
        top = stack.pop()
        if isinstance(top, node):
            stack += (top.right, top.left)
        else:
            found.append(top)
    return found


def _describe(op: Operation, subject: str, values: tuple[Any, ...]) -> str:
    if op in UNARY:
        return f"{subject} {op}"
    if op in SETS:
        shown = ", ".join(repr(value) for value in values[:10])
        return f"{subject} {op} ({shown}{', ...' if len(values) > 10 else ''})"
    return f"{subject} {op} {', '.join(repr(value) for value in values)}"
