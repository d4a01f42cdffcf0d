"""Replaces calls of the functions of catalogs: Iceberg's transforms, and those of a server.

The transforms are in a catalog's namespace `system`. Spark evaluates the replacements; the
arguments stay where they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import Token, TokenKind, sql_tokens
from icebergds.spark.bucket_function import BUCKET_FUNCTION, register_bucket_function
from icebergds.spark.patches import own
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.catalog_functions import (
    CatalogFunction,
    catalog_function,
    replaced_call,
)
from icebergds.statements.queries.transform_sql import DAYS, HOURS, MONTHS, TRUNCATED, YEARS
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.suggestions import did_you_mean
from icebergds.version import __version__

SYSTEM = "system"
"""The namespace of the functions in each catalog."""

# Parentheses after these words follow the name of something defined or written.
_BEFORE_DEFINED = ("FUNCTION", "TABLE", "VIEW", "INTO", "OVERWRITE", "EXISTS", "REPLACE")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function of a catalog.

    Attributes:
        function: its name, in lower case.
        name: the span of its whole name.
        end: where the call ends, after the parenthesis.
        arguments: as written.
        column: the column of a SELECT that contains it, if the column has no name.
        loaded: the function, if the catalog's server has it.
    """

    function: str
    name: Span
    end: int
    arguments: Sequence[Cursor]
    column: Span | None = None
    loaded: CatalogFunction | None = None


def find_calls(scope: NameScope, query: Cursor) -> list[FunctionCall]:
    """The calls of our catalogs' functions in a query or a condition, in order.

    Raises:
        InvalidStatementError: a catalog has no such function, or it takes other arguments.
    """
    cursor = query.part()
    found: list[FunctionCall] = []
    # For each open parenthesis: whether it is in the list of a SELECT, and in which column.
    lists, columns = [False], [0]
    while (token := cursor.peek()) is not None:
        before = cursor.tokens[cursor.at - 1] if cursor.at else None
        if lists[-1] and _begins_column(before):
            columns[-1] = cursor.at
        parts = _name(cursor)
        end = cursor.tokens[cursor.at - 1].end
        if token.is_sign("("):
            lists.append(False)
            columns.append(0)
        elif token.is_sign(")"):
            lists[1:], columns[1:] = lists[1:-1], columns[1:-1]
        if not parts or (before is not None and before.is_sign(".")):
            continue
        if token.is_word("SELECT", *_BEHIND_LISTS):
            lists[-1] = token.is_word("SELECT")
        is_defined = before is not None and before.is_word(*_BEFORE_DEFINED)
        is_call = cursor.is_at_sign("(") and not is_defined
        function = function_named(scope, parts) if is_call else None
        loaded = catalog_function(scope, parts) if is_call and function is None else None
        if function is not None or loaded is not None:
            behind = cursor.part()
            arguments = behind.group().items()
            if function is not None:
                _check_number(parts, function, len(arguments))
            if function in ("bucket", "truncate"):
                _check_first(parts, arguments[0])
            closed = behind.tokens[behind.at - 1].end
            around = [at for at, is_list in zip(columns, lists, strict=True) if is_list]
            column = _unnamed_column(cursor, around[-1]) if around else None
            span = Span(token.start, end)
            called = function or parts[-1].lower()
            found.append(FunctionCall(called, span, closed, arguments, column, loaded))
    return found


def function_named(scope: NameScope, parts: Sequence[str]) -> str | None:
    """The function of our catalogs that a name refers to; None for other functions.

    Raises:
        InvalidStatementError: a catalog has no such function.
    """
    *before, last = parts
    name, current = last.lower(), scope.current
    match before:
        case [catalog, namespace] if namespace.lower() == SYSTEM and scope.is_catalog(catalog):
            return _known(parts)
        case [catalog, _] if name in _FUNCTIONS and scope.is_catalog(catalog):
            raise _no_function(parts, f"did you mean {catalog}.{SYSTEM}.{name}?")
        case [catalog, namespace] if name in _FUNCTIONS and namespace.lower() == SYSTEM:
            near = did_you_mean(catalog, scope.catalogs())
            if near and not scope.is_of_spark(catalog):
                raise _no_function(parts, f"there is no catalog {catalog}; {near}")
        case [namespace] if namespace.lower() == SYSTEM and current.catalog is not None:
            return _known(parts)
        case [catalog] if name in _FUNCTIONS and scope.is_catalog(catalog):
            return name
        case [] if name in _FUNCTIONS and current.catalog is not None and not current.namespace:
            # Spark's own functions, and those of the session, take precedence.
            return None if own(scope.spark, "catalog").functionExists(last) else name
    return None


def function_names() -> Sequence[str]:
    """The functions of each catalog, in lower case."""
    return list(_FUNCTIONS)


def function_usage(function: str) -> str:
    """How a function is called, and what it returns."""
    known = _FUNCTIONS[function]
    return f"{function}({', '.join(known.parameters)}) - {known.summary}"


def names_transform(condition: str) -> str | None:
    """The first Iceberg function that a condition calls by its unqualified name."""
    tokens = sql_tokens(condition) or ()
    for before, function, behind in zip((None, *tokens), tokens, tokens[1:], strict=False):
        is_whole = before is None or not before.is_sign(".")
        if is_whole and behind.is_sign("(") and function.text.lower() in _FUNCTIONS:
            return function.text.lower()
    return None


def calls_namesakes(scope: NameScope, query: Cursor) -> bool:
    """Whether a query calls `x.bucket` or the like that is not a function of our catalogs."""
    tokens = query.tokens[query.at : query.end]
    named = {
        function.end
        for dot, function, behind in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if dot.is_sign(".")
        and behind.is_sign("(")
        and function.is_identifier
        and function.identifier.lower() in _FUNCTIONS
    }
    return bool(named) and not named <= {call.name.end for call in find_calls(scope, query)}


def replace_functions(scope: NameScope, query: Cursor) -> list[Replacement]:
    """Replacements for the calls of our catalogs' functions.

    Raises:
        InvalidStatementError: see `find_calls`; or an argument contains a sub-query.
        UnsupportedFeatureError: a server's function is not supported.
    """
    found: list[Replacement] = []
    named: set[Span] = set()
    for call in find_calls(scope, query):
        if call.loaded is not None:
            found.extend(replaced_call(call.loaded, call.name, call.arguments, call.end))
        else:
            if call.function == "bucket":
                register_bucket_function(scope.spark)
            found.extend(_FUNCTIONS[call.function].replace(call))
        if call.column is not None and call.column not in named:
            named.add(call.column)
            end, written = call.column.end, call.column.of(query.statement)
            found.append(Replacement(Span(end, end), f" AS {in_backticks([written])}"))
    return found


@dataclass(frozen=True, slots=True)
class _Function:
    """How a function is called, and what replaces a call."""

    parameters: Sequence[str]
    summary: str
    replace: Callable[[FunctionCall], Iterator[Replacement]]


def _evaluated(expression: str) -> Callable[[FunctionCall], Iterator[Replacement]]:
    """Replaces a call with an expression of `x`: the argument, or a struct of the arguments."""

    def replace(call: FunctionCall) -> Iterator[Replacement]:
        names = _FUNCTIONS[call.function].parameters
        first, *others = call.arguments
        tokens = first.tokens[first.at : call.arguments[-1].end]
        if any(token.is_word("SELECT") for token in tokens):
            raise InvalidStatementError(
                f"a sub-query cannot be an argument of {call.function}: join its result"
            )
        yield Replacement(call.name, "transform")
        start, end = first.span.start, call.end - 1
        if not others:
            yield Replacement(Span(start, start), "array(")
            yield Replacement(Span(end, call.end), f"), x -> {expression})[0]")
            return
        yield Replacement(Span(start, start), f"array(named_struct('{names[0]}', ")
        for name, before in zip(names[1:], call.arguments, strict=False):
            comma = before.tokens[before.end]
            yield Replacement(Span(comma.start, comma.end), f", '{name}', ")
        yield Replacement(Span(end, call.end), f")), x -> {expression})[0]")

    return replace


def _bucket(call: FunctionCall) -> Iterator[Replacement]:
    yield Replacement(call.name, BUCKET_FUNCTION)


def _version(call: FunctionCall) -> Iterator[Replacement]:
    yield Replacement(Span(call.name.start, call.end), f"'{__version__}'")


_FUNCTIONS: Mapping[str, _Function] = {
    "bucket": _Function(
        ("numBuckets", "value"), "The number of the value's bucket, from 0.", _bucket
    ),
    "truncate": _Function(
        ("width", "value"),
        "The first characters or bytes, or a number rounded down to a multiple of the width.",
        _evaluated(TRUNCATED),
    ),
    "years": _Function(("value",), "The years since 1970, in UTC.", _evaluated(YEARS)),
    "months": _Function(("value",), "The months since January 1970, in UTC.", _evaluated(MONTHS)),
    "days": _Function(("value",), "The date, in UTC.", _evaluated(DAYS)),
    "hours": _Function(("value",), "The hours since 1970, in UTC.", _evaluated(HOURS)),
    "iceberg_version": _Function((), "The version of this library.", _version),
}


def _name(cursor: Cursor) -> list[str]:
    """Reads a name as far as it goes, or one other token."""
    token = cursor.next()
    if not token.is_identifier:
        return []
    parts = [token.identifier]
    while cursor.is_at_sign(".") and (then := cursor.peek(1)) is not None and then.is_identifier:
        cursor.next()
        parts.append(cursor.next().identifier)
    return parts


def _known(parts: Sequence[str]) -> str:
    name = parts[-1].lower()
    if name not in _FUNCTIONS:
        hint = did_you_mean(name, _FUNCTIONS) or f"there are {', '.join(_FUNCTIONS)}"
        raise _no_function(parts, hint)
    return name


def _no_function(parts: Sequence[str], hint: str) -> InvalidStatementError:
    return InvalidStatementError(f"function {'.'.join(parts)} does not exist; {hint}")


def _check_number(parts: Sequence[str], function: str, number: int) -> None:
    parameters = _FUNCTIONS[function].parameters
    if number != len(parameters):
        raise InvalidStatementError(
            f"function {'.'.join(parts)} has {number} arguments, expected "
            f"{function}({', '.join(parameters)})"
        )


def _check_first(parts: Sequence[str], argument: Cursor) -> None:
    """Rejects a literal number of buckets, or width, that is not above 0."""
    written = argument.written.strip("() ").replace(" ", "")
    if written.removeprefix("-").isdecimal() and int(written) < 1:
        first = _FUNCTIONS[parts[-1].lower()].parameters[0]
        raise InvalidStatementError(
            f"function {'.'.join(parts)}: {first} = {written}, expected a number above 0"
        )


# Keywords that end the list of a SELECT.
_BEHIND_LISTS = frozenset(
    """
    FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION
    INTERSECT EXCEPT MINUS
    """.split()  # noqa: SIM905
)
_OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "==", "<", "<=", ">", ">=", "<>", "!=", "<=>")


def _begins_column(before: Token | None) -> bool:
    """Whether a column of a SELECT's list begins after a token."""
    return before is not None and (before.is_sign(",") or before.is_word("SELECT", "DISTINCT"))


def _unnamed_column(query: Cursor, start: int) -> Span | None:
    """The span of the column that begins at a token of a SELECT's list.

    None if it has a name, or if that is unknown: the column contains a sub-query, or something
    other than calls, columns and literals combined by operators.
    """
    column = query.part(start)
    try:
        _operand(column)
        while not _ends_column(column.peek()):
            if not column.next().is_sign(*_OPERATORS):
                return None
            _operand(column)
    except InvalidStatementError:
        return None
    tokens = query.tokens[start : column.at]
    if any(token.is_word("SELECT") for token in tokens):
        return None
    return Span(tokens[0].start, tokens[-1].end)


def _operand(column: Cursor) -> None:
    column.take_sign("-")
    token = column.peek()
    if token is not None and token.kind in (TokenKind.NUMBER, TokenKind.TEXT):
        column.next()
        return
    if not column.is_at_sign("("):
        column.name()
        if not column.is_at_sign("("):
            return
    column.group()


def _ends_column(behind: Token | None) -> bool:
    return behind is None or behind.is_sign(",", ")") or behind.is_word(*_BEHIND_LISTS)
