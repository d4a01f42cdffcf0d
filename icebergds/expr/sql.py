"""Reads filters that are written as Spark SQL conditions.

Text literals and names are read here, by Spark's rules; sqlglot, imported with the first filter,
parses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from icebergds.errors import InvalidFilterError
from icebergds.expr.conditions import Column, Conditions, Operator, Piece
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import LOCAL_DAY, LOCAL_YEAR, Expr, Operation, Term
from icebergds.expr.sql_literals import SqlConstants, extract_literals, has_only
from icebergds.spec.transforms import (
    MAX_WIDTH,
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)

# A class of sqlglot's tree; the class hierarchy differs between its versions.
_Node = Any


NameOf: TypeAlias = Callable[[tuple[str, ...]], tuple[str, ...]]
"""Maps the parts of a name to the path of a column; InvalidFilterError if it is not a column."""


def as_written(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The path of a column that is named by its path."""
    return parts


class Transforms(Enum):
    """The names by which a condition may call Iceberg's transforms."""

    NONE = 0
    QUALIFIED = 1
    """`system.days(ts)` or `lake.system.days(ts)`."""
    OF_ROWS = 2
    """Also `days(ts)`, but not buckets: rows are not tested for these."""


def parse_filter(
    text: str, *, time_zone: str | None = None, transforms: Transforms = Transforms.NONE
) -> Expr:
    """Parses a condition of Spark SQL into an unbound filter.

    Supported are comparisons of a column with a literal (=, ==, !=, <>, <, <=, >, >=, <=>), IN,
    BETWEEN, IS NULL, IS TRUE, IS DISTINCT FROM, LIKE with only a trailing % as wildcard, isnull,
    isnotnull, isnan, startswith, columns of type boolean, TRUE, FALSE, 1 = 1, AND, OR, NOT and
    parentheses. `date(ts)`, `year(ts)` and Iceberg's transforms may stand for a column, sums of
    dates and intervals for a literal. Nested fields are `a.b.c`; names with dots or other special
    characters must be in backticks.

    `time_zone` is Spark's session time zone, a region such as `Europe/Paris` or an offset such as
    `+02:00`: the zone of dates, timestamps and text without one if they are compared with columns
    that hold instants. Without it, binding such a filter fails.

    Raises InvalidFilterError for everything else, naming the unsupported part.
    """
    tree, condition = parse_condition(text, transforms=transforms)
    try:
        return Conditions(tree, time_zone).exact(condition)
    except (ValueError, ArithmeticError) as error:
        raise _malformed_number(text, error) from error
    except RecursionError:
        raise _too_deep(text) from None


def parse_condition(
    text: str,
    *,
    name_of: NameOf = as_written,
    transforms: Transforms = Transforms.NONE,
    now: datetime | None = None,
) -> tuple[SqlTree, Any]:
    """Parses a condition of Spark SQL; returns the tree and its root, to read with `Conditions`.

    Arguments are those of `SqlTree`.

    Raises:
        InvalidFilterError: it is not a condition.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Condition

    outline, literals = extract_literals(text)
    if "{" in outline:
        raise InvalidFilterError(
            f"filter {text!r}: braces are not allowed in a condition of Spark SQL"
        )
    tree = SqlTree(literals, name_of, transforms, now, text)
    try:
        return tree, sqlglot.parse_one(outline, read="spark", into=Condition)
    except (ValueError, ArithmeticError) as error:
        raise _malformed_number(text, error) from error
    except SqlglotError as error:
        highlights = [found["highlight"] for found in getattr(error, "errors", ())]
        place = f", at or before {tree.restored(highlights[0])}" if highlights else ""
        raise InvalidFilterError(
            f"filter {text!r} is not a condition of Spark SQL{place}; write one condition, such as"
            " \"id > 5 AND name LIKE 'a%'\""
        ) from error
    except RecursionError:
        raise _too_deep(text) from None


def column_parts(node: _Node) -> tuple[str, ...] | None:
    """The parts of the name of a column that sqlglot has parsed; None for anything else."""
    match node.key:
        case "identifier":
            return (str(node.this),)
        case "column" if has_only(node, "this", "table", "db", "catalog"):
            named = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
        case "dot" if has_only(node, "this", "expression"):
            named = [node.this, node.expression]
        case _:
            return None
    parts = [column_parts(part) for part in named if part]
    if any(part is None for part in parts):
        return None
    return tuple(name for part in parts if part is not None for name in part)


def term_of(
    node: _Node, transforms: Transforms = Transforms.QUALIFIED
) -> tuple[tuple[str, ...], Term | None] | None:
    """The column name in a node, and the term that the node applies: None for the column itself.

    Returns None for other nodes.
    """
    match node.key:
        case "column" | "dot" if (parts := column_parts(node)) is not None:
            return parts, None
        case "cast" | "trycast" if has_only(node, "this", "to"):
            inner = term_of(node.this, transforms) if node.args["to"].this.name == "DATE" else None
            return None if inner is None else _local(inner, LOCAL_DAY)
        case "tsordstodate" if has_only(node, "this", "safe"):
            inner = term_of(node.this, transforms)
            return None if inner is None else _local(inner, LOCAL_DAY)
        case "year" if has_only(node, "this"):
            inner = term_of(node.this, transforms)
            return None if inner is None else _local(inner, LOCAL_YEAR)
        case "dot" if node.expression.key == "anonymous" and transforms is not Transforms.NONE:
            return _transformed(node.expression, transforms)
        case "anonymous" if transforms is Transforms.OF_ROWS:
            return _transformed(node, transforms)
        # sqlglot takes this for Oracle's function.
        case "trunc" if transforms is Transforms.OF_ROWS and has_only(node, "this", "decimals"):
            return _with_width("truncate", node.this, node.args.get("decimals"))
        case _:
            return None


def as_node(parts: Sequence[str], term: Term | None) -> _Node:
    """A node of sqlglot's tree that `term_of` reads as this term."""
    from sqlglot.expressions import (
        Anonymous,
        Cast,
        Column as SqlColumn,
        DataType,
        Dot,
        Literal,
        Year,
        to_identifier,
    )

    names = [to_identifier(part, quoted=True) for part in parts]
    kinds = ("this", "table", "db", "catalog")
    column: _Node = SqlColumn(**dict(zip(kinds, reversed(names[:4]), strict=False)))
    for field in names[4:]:
        column = Dot(this=column, expression=field)
    if term is None:
        return column
    if term == LOCAL_YEAR:
        return Year(this=column)
    if term == LOCAL_DAY:
        # `DataType.build` parses text.
        return Cast(this=column, to=DataType(this=DataType.Type.DATE, nested=False))
    match term.transform:
        case BucketTransform(width) | TruncateTransform(width):
            arguments = [Literal.number(width), column]
        case _:
            arguments = [column]
    name = next(name for name, kind in _TRANSFORMS.items() if isinstance(term.transform, kind))
    return Dot(this=to_identifier("system"), expression=Anonymous(this=name, expressions=arguments))


_TRANSFORMS = {
    "years": YearTransform,
    "months": MonthTransform,
    "days": DayTransform,
    "hours": HourTransform,
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
}
_Found = tuple[tuple[str, ...], Term | None]


def _local(inner: _Found, term: Term) -> _Found | None:
    parts, found = inner
    return (parts, term) if found in (None, LOCAL_DAY) else None


def _transformed(call: _Node, transforms: Transforms) -> _Found | None:
    name, arguments = str(call.name).lower(), call.expressions
    if name == "bucket" and transforms is Transforms.OF_ROWS:
        return None
    if name in ("bucket", "truncate"):
        return _with_width(name, *arguments) if len(arguments) == 2 else None
    parts = column_parts(arguments[0]) if len(arguments) == 1 else None
    if parts is None or name not in _TRANSFORMS:
        return None
    return parts, Term(_TRANSFORMS[name]())


def _with_width(name: str, width: _Node, column: _Node | None) -> _Found | None:
    parts = None if column is None else column_parts(column)
    if parts is None or width.key != "literal" or width.is_string or not width.is_int:
        return None
    number = int(width.this)
    if not 0 < number <= MAX_WIDTH:
        return None
    return parts, Term(BucketTransform(number) if name == "bucket" else TruncateTransform(number))


# The kind of an operator, and sqlglot's names of its parts.
_OPERATORS: dict[str, tuple[str, ...]] = {
    "not": ("not", "this"),
    "eq": (Operation.EQ, "this", "expression"),
    "neq": (Operation.NOT_EQ, "this", "expression"),
    "lt": (Operation.LT, "this", "expression"),
    "lte": (Operation.LT_EQ, "this", "expression"),
    "gt": (Operation.GT, "this", "expression"),
    "gte": (Operation.GT_EQ, "this", "expression"),
    "nullsafeeq": ("null_safe", "this", "expression"),
    "between": ("between", "this", "low", "high"),
    "startswith": (Operation.STARTS_WITH, "this", "expression"),
    "isnan": (Operation.IS_NAN, "this"),
}
_NULL_TESTS = {"isnull": Operation.IS_NULL, "isnotnull": Operation.NOT_NULL}


@dataclass(frozen=True, slots=True)
class SqlTree:
    """A tree that sqlglot has parsed, from a text with placeholders for literals.

    Nodes are identified by the key of their class. A node with arguments other than those known
    here is refused: new versions of sqlglot add arguments that change the meaning.

    Attributes:
        literals: the values of the placeholders (`extract_literals`).
        now: the current time, for conditions that are read with `at_least`.
        text: for messages.
    """

    literals: Sequence[str | bytes]
    name_of: NameOf
    transforms: Transforms
    now: datetime | None = None
    text: str = ""

    def piece(self, node: _Node) -> Piece | None:
        key = node.key
        if key == "paren" and has_only(node, "this"):
            return self.piece(node.this)
        if key in _OPERATORS:
            kind, *names = _OPERATORS[key]
            parts = tuple(node.args[name] for name in names) if has_only(node, *names) else None
            return None if parts is None else Operator(kind, parts)
        match key:
            case "and" | "or":
                operands = _operands(node)
                return None if operands is None else Operator(key, tuple(operands))
            case "nullsafeneq" if has_only(node, "this", "expression"):
                return Operator("not", (Operator("null_safe", (node.this, node.expression)),))
            case "is" if has_only(node, "this", "expression"):
                if node.expression.key in ("null", "boolean"):
                    return Operator("null_safe", (node.this, node.expression))
                return None
            case "in":
                is_list = node.expressions and has_only(node, "this", "expressions")
                return Operator(Operation.IN, (node.this, *node.expressions)) if is_list else None
            case "like":
                return _like(node, "\\")
            case "escape" if has_only(node, "this", "expression") and node.this.key == "like":
                escape = getattr(self._constants.constant(node.expression), "value", None)
                is_one = isinstance(escape, str) and len(escape) == 1
                return _like(node.this, str(escape)) if is_one else None
            case "anonymous" if str(node.this).lower() in _NULL_TESTS:
                test = _NULL_TESTS[str(node.this).lower()]
                return Operator(test, tuple(node.expressions))
        found = term_of(node, self.transforms)
        if found is None:
            return self._constants.constant(node)
        parts, term = found
        return Column(quote_name(self.name_of(parts)), term)

    def unusable(self, node: _Node) -> InvalidFilterError:
        return InvalidFilterError(
            f"filter {self.text!r}: {self._fragment(node)} is not supported; filters support"
            " comparisons of a column with a literal, IN, BETWEEN, IS NULL, LIKE 'prefix%', isnull,"
            " isnotnull, isnan, startswith, boolean columns, AND, OR and NOT"
        )

    def restored(self, sql: str) -> str:
        """A piece of SQL with its placeholders replaced by the original literals."""

        def literal(match: re.Match[str]) -> str:
            value = self.literals[int(match[1])]
            return f"X'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'"

        return re.sub(r"'@(\d+)'", literal, sql)

    @property
    def _constants(self) -> SqlConstants:
        return SqlConstants(self.literals, self._unsupported, self.now)

    def _unsupported(self, node: _Node, reason: str) -> InvalidFilterError:
        return InvalidFilterError(f"filter {self.text!r}: {self._fragment(node)} {reason}")

    def _fragment(self, node: _Node) -> str:
        return self.restored(node.sql(dialect="spark"))


def _like(node: _Node, escape: str) -> Operator | None:
    if not has_only(node, "this", "expression", "negate"):
        return None
    found = Operator("like", (node.this, node.expression, escape))
    return Operator("not", (found,)) if node.args.get("negate") else found


def _operands(node: _Node) -> list[_Node] | None:
    """The operands of a chain of one connective, which may be long and nests to the left."""
    operands: list[_Node] = []
    key, rest = node.key, node
    while rest.key == key:
        if not has_only(rest, "this", "expression"):
            return None
        operands.append(rest.expression)
        rest = rest.this
    return [rest, *reversed(operands)]


def _malformed_number(text: str, error: Exception) -> InvalidFilterError:
    return InvalidFilterError(
        f"filter {text[:200]!r} contains a number that cannot be parsed: {error}"
    )


def _too_deep(text: str) -> InvalidFilterError:
    return InvalidFilterError(
        f"filter {text[:200]!r}... is nested too deeply; write alternatives as IN (...)"
    )
