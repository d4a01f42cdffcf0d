"""Replaces calls of SQL functions that a catalog's server has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icebergds.errors import (
    InvalidStatementError,
    NoSuchFunctionError,
    NoSuchNamespaceError,
    UnsupportedFeatureError,
)
from icebergds.spec.functions import FunctionMetadata
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.queries.function_bodies import body_of
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span


@dataclass(frozen=True, slots=True)
class CatalogFunction:
    """A function of a catalog that a statement names."""

    name: CatalogName
    metadata: FunctionMetadata


def catalog_function(scope: NameScope, parts: Sequence[str]) -> CatalogFunction | None:
    """The function that a qualified name refers to; None if it may be Spark's.

    Functions are loaded once for a statement.

    Raises:
        NoSuchFunctionError: the name begins with a catalog of ours that has functions, but not it.

    Other errors are those of `Catalog.load_function`.
    """
    if len(parts) < 2:
        return None
    name = scope.table(tuple(parts), may_be_temporary=False)
    if name is None or len(name.parts) < 2:
        return None
    if name not in scope.functions:
        catalog = scope.catalog(name.catalog)
        try:
            found = catalog.load_function(name.parts) if catalog._has_functions() else None
        except (NoSuchFunctionError, NoSuchNamespaceError):
            if len(parts) > len(name.parts):
                raise
            found = None
        scope.functions[name] = found
    metadata = scope.functions[name]
    return None if metadata is None else CatalogFunction(name, metadata)


def replaced_call(
    function: CatalogFunction, name: Span, arguments: Sequence[Cursor], end: int
) -> Iterator[Replacement]:
    """Replacements for a call of a function, whose arguments stay where they are written.

    The arguments become a struct, once, and a lambda function's variable for the body: so they are
    evaluated once, and no name in the one can mean something of the other.

    Args:
        name: the span of its name.
        end: where the call ends, after the parenthesis.

    Raises:
        InvalidStatementError: the function has other parameters, or an argument contains a
            sub-query.
        UnsupportedFeatureError: the function, or how it is called, is not supported.
    """
    body = body_of(str(function.name), function.metadata, len(arguments))
    for each in arguments:
        tokens = each.tokens[each.at : each.end]
        if any(token.is_word("SELECT") for token in tokens):
            raise InvalidStatementError(
                f"a sub-query cannot be an argument of {function.name}: join its result"
            )
        if any(token.is_sign("=>") for token in tokens):
            raise UnsupportedFeatureError(
                f"function {function.name} cannot be called with named arguments; write them in "
                "the order of its parameters"
            )
    if not arguments:
        yield Replacement(Span(name.start, end), f"({body.result})")
        return
    yield Replacement(name, "transform(transform")
    start, close = arguments[0].span.start, end - 1
    yield Replacement(Span(start, start), f"array(named_struct('{body.parameters[0]}', ")
    for field, before in zip(body.parameters[1:], arguments, strict=False):
        comma = before.tokens[before.end]
        yield Replacement(Span(comma.start, comma.end), f", '{field}', ")
    typed = f"{body.variable} -> {body.arguments}"
    result = f"{body.variable} -> {body.result}"
    yield Replacement(Span(close, end), f")), {typed}), {result})[0]")
