"""Parses filters written as conditions of Spark SQL.

Text literals and names are read here, by Spark's rules; sqlglot, imported with the first filter,
parses the rest.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import FALSE, TRUE, Expr, Operation, Predicate, and_, not_, or_
from icebergds.expr.sql_literals import cast, extract_literals


def parse_filter(text: str, *, time_zone: str | None = None) -> Expr:
    """Parses a condition of Spark SQL into an unbound filter.

    Supported are comparisons of a column with a literal (=, ==, !=, <>, <, <=, >, >=, <=>), IN,
    BETWEEN, IS NULL, IS TRUE, IS DISTINCT FROM, LIKE with no wildcard but a trailing %, isnull,
    isnotnull, isnan, startswith, columns of type boolean, TRUE, FALSE, 1 = 1, AND, OR, NOT and
    parentheses. Nested fields are `a.b.c`; names with dots or other special characters must be in
    backticks.

    `time_zone` is Spark's session time zone, a region such as `Europe/Paris` or an offset such as
    `+02:00`: the zone of dates, timestamps and text without one if they are compared with columns
    that hold instants. Without it, binding such a filter fails.

    Raises InvalidFilterError for everything else, naming the unsupported part.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Condition

    outline, literals = extract_literals(text)
    if "{" in outline:
        raise InvalidFilterError(
            f"filter {text!r}: braces are not allowed in a condition of Spark SQL"
        )
    reader = _Reader(text, literals, time_zone)
    try:
        return reader.condition(sqlglot.parse_one(outline, read="spark", into=Condition))
    except SqlglotError as error:
        highlights = [found["highlight"] for found in getattr(error, "errors", ())]
        place = f", at or before {reader.restored(highlights[0])}" if highlights else ""
        raise InvalidFilterError(
            f"filter {text!r} is not a condition of Spark SQL{place}; write one condition, such as"
            " \"id > 5 AND name LIKE 'a%'\""
        ) from error
    except (ValueError, ArithmeticError) as error:
        raise InvalidFilterError(
            f"filter {text[:200]!r} contains a number that cannot be parsed: {error}"
        ) from error
    except RecursionError:
        raise InvalidFilterError(
            f"filter {text[:200]!r}... is nested too deeply; write alternatives as IN (...)"
        ) from None


def read_condition(
    node: Any,
    literals: list[str | bytes],
    *,
    time_zone: str | None,
    name_of: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Expr:
    """Converts a condition that sqlglot has parsed, of a text with placeholders for literals.

    Args:
        literals: what the placeholders stand for (`extract_literals`).
        name_of: the path of a column, for the parts of a name; it raises InvalidFilterError for
            names that are no columns of the table.

    Raises:
        InvalidFilterError: it is no condition that `parse_filter` supports.
    """
    try:
        return _Reader("", literals, time_zone, name_of).condition(node)
    except (ValueError, ArithmeticError, IndexError) as error:
        raise InvalidFilterError(
            f"the condition has a value that is not supported: {error}"
        ) from None


def like(name: str, pattern: str, escape: str) -> Expr | None:
    """The filter that LIKE is; None if the pattern has other wildcards than a trailing %.

    Args:
        name: a column, as `Predicate` has it.
        escape: the character that makes the next one no wildcard.
    """
    found = _prefix(pattern, escape)
    if found is None:
        return None
    prefix, is_open_ended = found
    # EQ alone would do without a wildcard, but STARTS_WITH refuses columns that are not text.
    starts = Predicate(Operation.STARTS_WITH, name, (prefix,))
    return starts if is_open_ended else and_(starts, Predicate(Operation.EQ, name, (prefix,)))


def column_parts(node: Any) -> tuple[str, ...] | None:
    """The parts of the name of a column that sqlglot has parsed; None for anything else."""
    match node.key:
        case "identifier":
            return (str(node.this),)
        case "column":
            named = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
        case "dot":
            named = [node.this, node.expression]
        case _:
            return None
    parts = [column_parts(part) for part in named if part]
    if any(part is None for part in parts):
        return None
    return tuple(name for part in parts if part is not None for name in part)


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


def _as_written(parts: tuple[str, ...]) -> tuple[str, ...]:
    return parts


_COMPARISONS = {
    "eq": (Operation.EQ, Operation.EQ),
    "neq": (Operation.NOT_EQ, Operation.NOT_EQ),
    "lt": (Operation.LT, Operation.GT),
    "lte": (Operation.LT_EQ, Operation.GT_EQ),
    "gt": (Operation.GT, Operation.LT),
    "gte": (Operation.GT_EQ, Operation.LT_EQ),
}
_OPERATORS = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
_NAMES = ("column", "dot")
# A class of sqlglot's tree; the class hierarchy differs between its versions.
_Node = Any


@dataclass(frozen=True, slots=True)
class _Reader:
    """Converts sqlglot's tree of one filter to predicates.

    Nodes are identified by the key of their class. A node with arguments other than those known
    here is refused: new versions of sqlglot add arguments that change the meaning.
    """

    text: str
    literals: list[str | bytes]
    time_zone: str | None
    name_of: Callable[[tuple[str, ...]], tuple[str, ...]] = _as_written

    def condition(self, node: _Node) -> Expr:
        match node.key:
            case "paren":
                return self.condition(self.only(node, "this").this)
            case "and":
                return and_(*(self.condition(part) for part in self.chain(node)))
            case "or":
                return or_(*(self.condition(part) for part in self.chain(node)))
            case "not":
                return not_(self.condition(self.only(node, "this").this))
            case "boolean":
                return TRUE if node.this else FALSE
            case "column" | "dot":
                return self.predicate(Operation.EQ, self.name(node), True)
            case "eq" | "neq" | "lt" | "lte" | "gt" | "gte":
                return self.comparison(node)
            case "nullsafeeq":
                return self.null_safe(*self.sides(node)[:2])
            case "nullsafeneq":
                return not_(self.null_safe(*self.sides(node)[:2]))
            case "is":
                return self.is_(node)
            case "in":
                self.only(node, "this", "expressions")
                values = [self.literal(value) for value in node.expressions]
                if not values:
                    raise self.unusable(node)
                return self.predicate(Operation.IN, self.name(node.this), *values)
            case "between":
                self.only(node, "this", "low", "high")
                name = self.name(node.this)
                return and_(
                    self.predicate(Operation.GT_EQ, name, self.literal(node.args["low"])),
                    self.predicate(Operation.LT_EQ, name, self.literal(node.args["high"])),
                )
            case "like":
                return self.like(node, "\\")
            case "escape":
                return self.like(self.only(node, "this", "expression").this, self.escape(node))
            case "startswith":
                self.only(node, "this", "expression")
                prefix = self.literal(node.expression)
                return self.predicate(Operation.STARTS_WITH, self.name(node.this), prefix)
            case "isnan":
                return self.predicate(Operation.IS_NAN, self.name(self.only(node, "this").this))
            case "anonymous":
                return self.null_test(node)
            case _:
                raise self.unusable(node)

    def comparison(self, node: _Node) -> Expr:
        if node.this.key == node.expression.key == "literal":
            return self.constant(node)
        name, value, swapped = self.sides(node)
        return self.predicate(_COMPARISONS[node.key][swapped], name, value)

    def constant(self, node: _Node) -> Expr:
        """A comparison of two whole numbers, such as 1 = 1."""
        self.only(node, "this", "expression")
        left, right = self.literal(node.this), self.literal(node.expression)
        if not (isinstance(left, int) and isinstance(right, int)):
            raise self.unusable(node)
        return TRUE if _OPERATORS[node.key](left, right) else FALSE

    def sides(self, node: _Node) -> tuple[str, Any, bool]:
        """The column and the literal of a comparison, and whether the literal comes first."""
        self.only(node, "this", "expression")
        if node.this.key in _NAMES:
            return self.name(node.this), self.literal(node.expression), False
        if node.expression.key in _NAMES:
            return self.name(node.expression), self.literal(node.this), True
        raise self.unusable(node)

    def null_safe(self, name: str, value: Any) -> Expr:
        if value is None:
            return self.predicate(Operation.IS_NULL, name)
        # Two predicates, because the negation selects nulls.
        return and_(
            self.predicate(Operation.NOT_NULL, name), self.predicate(Operation.EQ, name, value)
        )

    def is_(self, node: _Node) -> Expr:
        self.only(node, "this", "expression")
        if node.expression.key not in ("null", "boolean"):
            raise self.unusable(node)
        return self.null_safe(self.name(node.this), self.literal(node.expression))

    def null_test(self, node: _Node) -> Expr:
        self.only(node, "this", "expressions")
        function = str(node.this).lower()
        if function not in ("isnull", "isnotnull") or len(node.expressions) != 1:
            raise self.unusable(node)
        op = Operation.IS_NULL if function == "isnull" else Operation.NOT_NULL
        return self.predicate(op, self.name(node.expressions[0]))

    def escape(self, node: _Node) -> str:
        escape = self.literal(node.expression)
        if node.this.key != "like" or not isinstance(escape, str) or len(escape) != 1:
            raise self.unusable(node)
        return escape

    def like(self, node: _Node, escape: str) -> Expr:
        self.only(node, "this", "expression", "negate")
        pattern = self.literal(node.expression)
        if not isinstance(pattern, str):
            raise self.unusable(node)
        name = self.name(node.this)
        found = like(name, pattern, escape)
        if found is None:
            raise self.unusable(node)
        return not_(found) if node.args.get("negate") else found

    def predicate(self, op: Operation, name: str, *values: Any) -> Expr:
        return Predicate(op, name, values, self.time_zone)

    def name(self, node: _Node) -> str:
        return quote_name(self.name_of(tuple(self.parts(node))))

    def parts(self, node: _Node) -> Iterator[str]:
        match node.key:
            case "identifier":
                yield str(node.this)
            case "dot":
                self.only(node, "this", "expression")
                yield from self.parts(node.this)
                yield from self.parts(node.expression)
            case "column":
                self.only(node, "this", "table", "db", "catalog")
                for argument in ("catalog", "db", "table", "this"):
                    if node.args.get(argument):
                        yield from self.parts(node.args[argument])
            case _:
                raise self.unusable(node)

    def literal(self, node: _Node) -> Any:
        match node.key:
            case "null":
                return None
            case "boolean":
                return bool(node.this)
            case "paren":
                return self.literal(self.only(node, "this").this)
            case "literal":
                return self.text_literal(node) if node.is_string else self.number(node)
            case "neg":
                value = self.literal(self.only(node, "this").this)
                if isinstance(value, Decimal):
                    return value.copy_negate()  # the operator would round
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise self.unusable(node)
                return -value
            case "cast" | "trycast":
                return self.cast(node)
            case _:
                raise self.unusable(node)

    def text_literal(self, node: _Node) -> str | bytes:
        text = str(node.this)
        # Number literals with the suffix BD also arrive as casts of text, without a placeholder.
        return self.literals[int(text[1:])] if text.startswith("@") else text

    def number(self, node: _Node) -> int | float | Decimal:
        text = str(node.this)
        if "e" in text.lower():
            value = float(text)
            if math.isinf(value):
                raise InvalidFilterError(f"filter {self.text!r}: {text} does not fit a double")
            return value
        return Decimal(text) if "." in text else int(text)

    def cast(self, node: _Node) -> Any:
        self.only(node, "this", "to")
        value = self.literal(node.this)
        target = node.args["to"]
        if target.key != "datatype":
            raise self.unusable(node)
        self.only(target, "this", "expressions", "nested")
        if value is None:
            return None
        try:
            return cast(value, target.this.name, [int(str(p.this)) for p in target.expressions])
        except (ValueError, InvalidOperation, OverflowError) as error:
            raise InvalidFilterError(
                f"filter {self.text!r}: {self.fragment(node)} is not supported: {error}"
            ) from error

    def only(self, node: _Node, *arguments: str) -> _Node:
        if any(value for name, value in node.args.items() if name not in arguments):
            raise self.unusable(node)
        return node

    def chain(self, node: _Node) -> list[_Node]:
        """The operands of a chain of one connective, which may be long and nests to the left."""
        operands: list[_Node] = []
        key, rest = node.key, node
        while rest.key == key:
            self.only(rest, "this", "expression")
            operands.append(rest.expression)
            rest = rest.this
        return [rest, *reversed(operands)]

    def fragment(self, node: _Node) -> str:
        return self.restored(node.sql(dialect="spark"))

    def restored(self, sql: str) -> str:
        """A piece of SQL with its placeholders replaced by the literals again."""

        def literal(match: re.Match[str]) -> str:
            value = self.literals[int(match[1])]
            return f"X'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'"

        return re.sub(r"'@(\d+)'", literal, sql)

    def unusable(self, node: _Node) -> InvalidFilterError:
        return InvalidFilterError(
            f"filter {self.text!r}: {self.fragment(node)} is not supported; filters support"
            " comparisons of a column with a literal, IN, BETWEEN, IS NULL, LIKE 'prefix%', isnull,"
            " isnotnull, isnan, startswith, boolean columns, AND, OR and NOT"
        )
