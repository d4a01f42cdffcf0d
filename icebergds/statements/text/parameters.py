"""Writes the values of parameters as literals, for statements that Spark does not run itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import Token


def with_literals(
    text: str, tokens: Sequence[Token], parameters: Any, *, has_escapes: bool = True
) -> str:
    """The text with the values of parameters instead of `:name` and `?`.

    Args:
        parameters: values by name, or in order.
        has_escapes: as for `literal`.

    Raises:
        InvalidStatementError: a parameter has no value, or one that cannot be a literal.
    """
    return _with_literals(text, tokens, parameters, frozenset(range(len(tokens))), has_escapes)[0]


def with_versions(
    text: str, tokens: Sequence[Token], parameters: Any, *, has_escapes: bool = True
) -> tuple[str, Any]:
    """The text with values for the parameters of versions and times only, and the others.

    These follow AS OF, or a bound of CHANGES FROM.

    Arguments and errors are those of `with_literals`.
    """
    behind = frozenset(
        at
        for index in range(2, len(tokens))
        if _is_before_version(tokens[index - 2], tokens[index - 1])
        for at in range(index, _end_of_operand(tokens, index))
    )
    written, used = _with_literals(text, tokens, parameters, behind, has_escapes)
    if used:
        parameters = [value for at, value in enumerate(parameters) if at not in used]
    return written, parameters


def _is_before_version(first: Token, second: Token) -> bool:
    if first.is_word("FROM", "TO"):
        return second.is_word("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
    return first.is_word("AS") and second.is_word("OF")


def _with_literals(
    text: str, tokens: Sequence[Token], parameters: Any, chosen: Set[int], has_escapes: bool
) -> tuple[str, Set[int]]:
    """The text with some parameters as literals, and which of the parameters `?` were replaced.

    Args:
        chosen: the positions of the tokens that these parameters begin with.
    """
    pieces: list[str] = []
    used = set[int]()
    at = position = 0
    for index, token in enumerate(tokens):
        is_chosen, end = index in chosen, token.end
        if token.is_sign("?"):
            position += 1
            if not is_chosen:
                continue
            value = _positional(parameters, position - 1)
            used.add(position - 1)
        elif is_chosen and token.is_sign(":") and _is_marker(tokens, index):
            name = tokens[index + 1].text
            value = _named(parameters, name)
            end = tokens[index + 1].end
        else:
            continue
        before = " " if _is_of_word(text[token.start - 1 : token.start]) else ""
        after = " " if _is_of_word(text[end : end + 1]) else ""
        written = literal(value, has_escapes=has_escapes)
        pieces += [text[at : token.start], before, written, after]
        at = end
    return "".join([*pieces, text[at:]]), used


def _end_of_operand(tokens: Sequence[Token], start: int) -> int:
    """The end of a marker, a function call, or a group of parentheses."""
    at, depth = start, 0
    while at < len(tokens) and (tokens[at].is_identifier or tokens[at].is_sign(".")):
        at += 1
    for end in range(at, len(tokens)):
        depth += tokens[end].is_sign("(") - tokens[end].is_sign(")")
        if depth <= 0:
            return end + 1
    return len(tokens)


def literal(value: Any, *, has_escapes: bool = True) -> str:
    """A value as a Spark SQL literal, of the type that Spark gives the value.

    Args:
        has_escapes: whether the session reads backslashes in text as escape sequences, Spark's
            default.

    Raises:
        InvalidStatementError: the value has no literal.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            # A second minus would begin a comment.
            return f"({value})" if value < 0 else str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return f"CAST('{value}' AS DECIMAL({_digits(value)}))"
        case str():
            return _text(value, has_escapes=has_escapes)
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case datetime():
            # Like Spark, reads a time without a zone in the time zone of this process.
            return f"TIMESTAMP '{value.astimezone().isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    raise InvalidStatementError(
        f"a parameter is a {type(value).__name__}; expected None, a bool, a number, text, bytes, a "
        "date or a datetime"
    )


def _text(value: str, *, has_escapes: bool) -> str:
    if not has_escapes and any(piece in value for piece in ("'", "\\", "${")):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    # Spark would replace ${name} with the value of a setting or an environment variable.
    plain = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{plain}'"


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _digits(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
    return f"{max(len(digits), scale, 1)}, {scale}"


def _is_marker(tokens: Sequence[Token], index: int) -> bool:
    """Whether a name directly follows a colon that does not select a field."""
    if index + 1 >= len(tokens) or not tokens[index + 1].is_identifier:
        return False
    if tokens[index + 1].start != tokens[index].end:
        return False
    if not index or tokens[index - 1].end != tokens[index].start:
        return True
    return not (tokens[index - 1].is_identifier or tokens[index - 1].is_sign(")", "]"))


def _positional(parameters: Any, position: int) -> Any:
    if not isinstance(parameters, Sequence) or position >= len(parameters):
        raise InvalidStatementError(
            f"parameter ? number {position + 1} has no value; give args=[...] with one for each"
        )
    return parameters[position]


def _named(parameters: Any, name: str) -> Any:
    if not isinstance(parameters, Mapping) or name not in parameters:
        raise InvalidStatementError(f"parameter :{name} has no value; give args={{{name!r}: ...}}")
    return parameters[name]
