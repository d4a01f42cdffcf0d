"""Checks the body of a catalog's function, and writes it as an expression of a struct.

The body is written into queries, so it must not name anything but its parameters: another name
could be that of a column of the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import Token, TokenKind, sql_tokens
from icebergds.spark.types import spark_type
from icebergds.spec.functions import FunctionDefinition, FunctionMetadata, FunctionVersion
from icebergds.spec.types import IcebergType, ListType, MapType, StructType
from icebergds.statements.queries.outline import outline_of
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.parameters import literal

_DIALECT = "spark"


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """How calls of a function with some number of arguments are written.

    Attributes:
        parameters: the names of the fields of the struct of arguments.
        variable: stands for the struct.
        arguments: on the variable: a struct of the arguments with the parameters' types.
        result: on the variable with these types: the function's value.
    """

    parameters: tuple[str, ...]
    variable: str
    arguments: str
    result: str


def body_of(name: str, function: FunctionMetadata, count: int) -> FunctionBody:
    """The body of a function for calls with `count` arguments.

    Args:
        name: the function's name in messages.

    Raises:
        InvalidStatementError: the function takes other numbers of arguments.
        UnsupportedFeatureError: it, or its body, is of a kind that is not supported.
    """
    definition = _definition(name, function, count)
    version = definition.current_version()
    tokens = _tokens(name, _sql(name, version))
    variable = "_p"
    while any(token.identifier.lower() == variable for token in tokens if token.is_identifier):
        variable = f"_{variable}"
    fields = tuple(f"p{at}" for at in range(count))
    names = [parameter.name for parameter in definition.parameters]
    if len({each.lower() for each in names}) < count:
        raise _refused(name, f"its parameters {', '.join(names)} differ by case alone")
    values = {
        each.lower(): f"{variable}.{field}" for each, field in zip(names, fields, strict=True)
    }
    result = _written(name, tokens, values)
    if version.null_for_null and fields:
        is_null = " OR ".join(f"{value} IS NULL" for value in values.values())
        result = f"IF({is_null}, NULL, {result})"
    typed = (
        f"'{field}', {_as_parameter(name, parameter.name, parameter.parameter_type, value)}"
        for field, parameter, value in zip(
            fields, definition.parameters, values.values(), strict=True
        )
    )
    return FunctionBody(
        fields,
        variable,
        f"named_struct({', '.join(typed)})",
        f"CAST({result} AS {_type_text(definition.return_type)})",
    )


def signatures(function: FunctionMetadata) -> Iterator[str]:
    """The definitions of a function as text, such as `(x int, y string) int: adds them`."""
    for each in function.definitions:
        parameters = (f"{one.name} {_shown(one.parameter_type)}" for one in each.parameters)
        doc = each.doc or function.doc
        known = ", ".join(one.dialect for one in each.current_version().sqls) or "none"
        yield (
            f"({', '.join(parameters)}) {_shown(each.return_type)}"
            f"{': ' + doc if doc else ''} (dialects: {known})"
        )


def _definition(name: str, function: FunctionMetadata, count: int) -> FunctionDefinition:
    """The definition with so many parameters."""
    if function.secure:
        raise _refused(name, "it is a secure function, whose body users must not see")
    found = [each for each in function.definitions if len(each.parameters) == count]
    if not found:
        known = "; ".join(f"({each.definition_id})" for each in function.definitions)
        raise InvalidStatementError(
            f"function {name} has no definition for {count} arguments; it takes {known or 'none'}"
        )
    if len(found) > 1:
        known = "; ".join(f"({each.definition_id})" for each in found)
        raise _refused(name, f"several definitions take {count} arguments: {known}")
    if found[0].function_type != "udf":
        raise _refused(name, "it gives rows, not a value; only functions with one value are called")
    return found[0]


def _sql(name: str, version: FunctionVersion) -> str:
    for each in version.sqls:
        if each.dialect.lower() == _DIALECT:
            return each.sql
    known = ", ".join(each.dialect for each in version.sqls) or "none"
    raise _refused(name, f"it has no body in the dialect {_DIALECT}, only in {known}")


def _tokens(name: str, sql: str) -> tuple[Token, ...]:
    found = sql_tokens(sql)
    if not found:
        raise _refused(name, f"its body cannot be read: {sql}")
    return found


def _written(name: str, tokens: tuple[Token, ...], values: Mapping[str, str]) -> str:
    """A body with the parameters' values, without comments."""
    starts = _starts_of_parameters(name, tokens, values)
    lambdas = {token.identifier.lower() for token in _variables(tokens)}
    pieces: list[str] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        if before is not None and before.end != token.start:
            pieces.append(" ")
        if token.start in starts:
            pieces.append(values[token.identifier.lower()])
            continue
        if token.is_identifier and not _is_harmless(tokens, at, lambdas):
            raise _refused(name, f"its body names {token.text}, which is not a parameter")
        pieces.append(token.text)
    return f"({''.join(pieces)})"


def _starts_of_parameters(
    name: str, tokens: tuple[Token, ...], values: Mapping[str, str]
) -> frozenset[int]:
    """Where a body names its parameters.

    Raises:
        UnsupportedFeatureError: it is not an expression, or contains what is not supported.
    """
    from sqlglot.expressions import (
        UDTF,
        AggFunc,
        Column,
        Condition,
        Explode,
        Parameter,
        Paren,
        Placeholder,
        Query,
        Star,
        Window,
    )

    text = Cursor("", tokens)
    outline = outline_of(text)
    tree: Any = None if outline is None else outline.parsed()
    if outline is None or tree is None:
        raise _refused(name, "its body cannot be parsed as an expression")
    refused: dict[str, tuple[Any, ...]] = {
        "a sub-query": (Query,),
        "a window function": (Window,),
        "an aggregate function": (AggFunc,),
        "a function that gives rows": (UDTF, Explode),
        "a star or a placeholder": (Star, Placeholder, Parameter),
    }
    for what, kinds in refused.items():
        if next(tree.find_all(*kinds), None) is not None:
            raise _refused(name, f"its body contains {what}")
    if not isinstance(tree, Condition | Paren):
        raise _refused(name, "its body cannot be parsed as an expression")
    starts = set()
    for column in tree.find_all(Column):
        first = column.parts[0]
        if str(first.name).lower() not in values:
            raise _refused(name, f"its body names {first.name}, which is not a parameter")
        starts.add(outline.places[first.meta["start"]])
    return frozenset(starts)


def _variables(tokens: tuple[Token, ...]) -> Iterator[Token]:
    """The variables of lambda functions."""
    for at, token in enumerate(tokens):
        if not token.is_sign("->"):
            continue
        if tokens[at - 1].is_identifier:
            yield tokens[at - 1]
            continue
        back = at - 2
        while back >= 0 and not tokens[back].is_sign("("):
            if tokens[back].is_identifier:
                yield tokens[back]
            back -= 1


# What Spark cannot take for a column where sqlglot does not, either.
_KEYWORDS = frozenset(
    """
    AND OR NOT IS NULL TRUE FALSE CASE WHEN THEN ELSE END IN BETWEEN LIKE ILIKE RLIKE REGEXP ESCAPE
    AS DISTINCT FROM DIV INTERVAL CURRENT_DATE CURRENT_TIMESTAMP LOCALTIMESTAMP CURRENT_USER
    """.split()  # noqa: SIM905
)
_UNITS = frozenset(
    """
    YEAR YEARS QUARTER QUARTERS MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND
    SECONDS MILLISECOND MILLISECONDS MICROSECOND MICROSECONDS DAYOFWEEK DAYOFYEAR DOW DOY
    """.split()  # noqa: SIM905
)


def _is_harmless(tokens: tuple[Token, ...], at: int, lambdas: set[str]) -> bool:
    """Whether an identifier that is not a parameter can only mean what is not a column.

    It is a field, an unqualified function, a variable of a lambda, a keyword, a type or a unit.
    """
    token = tokens[at]
    before = tokens[at - 1] if at else None
    then = tokens[at + 1] if at + 1 < len(tokens) else None
    is_called = then is not None and then.is_sign("(")
    if before is not None and before.is_sign("."):
        return not is_called
    if is_called or token.identifier.lower() in lambdas:
        return True
    if token.is_word(*_KEYWORDS):
        return True
    if before is not None and (before.is_word("AS") or before.is_sign("::")):
        # A type; `x AS y` is not an expression.
        return True
    if token.is_word("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "X"):
        return then is not None and then.kind is TokenKind.TEXT
    if token.is_word(*_UNITS) and at >= 2:
        is_counted = before is not None and before.kind in (TokenKind.NUMBER, TokenKind.TEXT)
        is_of_interval = is_counted and tokens[at - 2].is_word("INTERVAL")
        is_extracted = tokens[at - 2].is_word("EXTRACT") and then is not None
        return is_of_interval or (is_extracted and then is not None and then.is_word("FROM"))
    return False


def _as_parameter(name: str, parameter: str, kind: IcebergType, value: str) -> str:
    """An argument with the type of its parameter, if Spark widens to it without a cast.

    Spark knows the types of arguments, and `typeof` is a constant.
    """
    text = _type_text(kind)
    null = f"CAST(NULL AS {text})"
    problem = literal(f"function {name}: argument {parameter} is of type ")
    expected = literal(f", expected {_shown(kind)}; cast it")
    return (
        f"IF(typeof(coalesce({null}, {value})) = typeof({null}), CAST({value} AS {text}), "
        f"raise_error(concat({problem}, typeof({value}), {expected})))"
    )


def _type_text(kind: IcebergType) -> str:
    """A type in Spark's SQL."""
    match kind:
        case StructType(fields=fields):
            inner = (
                f"{in_backticks([each.name])}: {_type_text(each.field_type)}" for each in fields
            )
            return f"STRUCT<{', '.join(inner)}>"
        case ListType(element_type=element):
            return f"ARRAY<{_type_text(element)}>"
        case MapType(key_type=key, value_type=value):
            return f"MAP<{_type_text(key)}, {_type_text(value)}>"
    return spark_type(kind).simpleString()


def _shown(kind: IcebergType) -> str:
    return spark_type(kind).simpleString()


def _refused(name: str, why: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"function {name} cannot be called: {why}")
