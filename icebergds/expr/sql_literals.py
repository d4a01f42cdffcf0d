"""Parses literals of Spark SQL by Spark's rules: text, bytes, and casts of literals."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.literals import NAMED_FLOAT, NUMBER, parse_timestamp, to_single
from icebergds.spec.values.dates import parse_date, parse_time
from icebergds.spec.values.decimals import unscaled


def extract_literals(text: str) -> tuple[str, list[str | bytes]]:
    """Replaces text and binary literals by placeholders '@0', '@1', ...; returns both.

    Versions of sqlglot differ in how they unescape literals; here Spark's rules apply.
    """
    outline: list[str] = []
    literals: list[str | bytes] = []
    for token in _TOKEN.finditer(text):
        piece = token.group()
        match token.lastgroup:
            case "raw":
                literals.append(piece[2:-1])
            case "hex":
                literals.append(_unhex(piece[2:-1], text))
            case "string":
                literals.append(_unescape(piece[1:-1], piece[0], text))
            case "open":
                raise InvalidFilterError(f"filter {text!r}: {piece} is not closed")
            case "comment" | "end":
                raise InvalidFilterError(
                    f"filter {text!r}: {piece} is not supported; a filter is one condition, without"
                    " comments"
                )
            case _:
                outline.append(piece)
                continue
        outline.append(f"'@{len(literals) - 1}'")
    return "".join(outline), literals


def cast(value: Any, target: str, parameters: list[int]) -> Any:
    """The value of CAST(value AS target), for lossless casts and casts to FLOAT and DOUBLE.

    Of text, only what Spark casts to the same value whether it follows ANSI or not.

    `target` is sqlglot's name of the type. Raises ValueError, OverflowError or
    decimal.InvalidOperation for other casts.
    """
    if target in _INTEGER_BITS:
        if isinstance(value, str) and not _WHOLE.fullmatch(value):
            raise ValueError(f"{value!r} is not a whole number")
        number = unscaled(_decimal(value), 0)
        limit = 2 ** (_INTEGER_BITS[target] - 1)
        if not -limit <= number < limit:
            raise ValueError(f"{value} is not a {target.lower()}")
        return number
    if target in ("FLOAT", "DOUBLE"):
        if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
            raise ValueError(f"{value!r} is not a number")
        if isinstance(value, str) and not (NUMBER.fullmatch(value) or NAMED_FLOAT.fullmatch(value)):
            raise ValueError(f"{value!r} is not a number")
        return _single(value) if target == "FLOAT" else float(value)
    if target == "DECIMAL":
        precision, scale = [*(parameters or [10]), 0][:2]
        decimal = _decimal(value)
        if abs(unscaled(decimal, scale)) >= 10**precision:
            raise ValueError(f"{value} has more than {precision} digits")
        return decimal
    if target == "BINARY" and isinstance(value, str | bytes):
        return value if isinstance(value, bytes) else value.encode()
    if isinstance(value, str):
        if target == "TEXT":
            return value
        if target == "BOOLEAN" and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if target == "DATE":
            return _date(value)
        if target == "TIME":
            return _time(value)
        if target in _TIMESTAMPS:
            return _timestamp(value, target)
    raise ValueError(f"a filter cannot cast {value!r} to {target}")


_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
# Halfway from the greatest single to the next power of two.
_INFINITE_SINGLE = (2 - 2**-24) * 2.0**127
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIMESTAMPS = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})
_TOKEN = re.compile(
    r"""
      (?P<name>`(?:[^`]|``)*`)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<hex>[xX](?:'[^']*'|"[^"]*"))
    | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<open>['"`])
    | (?P<comment>--|/\*)
    | (?P<end>;)
    | (?P<other>\w+|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)|'{2}|\"{2}", re.DOTALL)
_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def _unhex(digits: str, text: str) -> bytes:
    try:
        return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
    except ValueError:
        raise InvalidFilterError(f"filter {text!r}: X'{digits}' is not hexadecimal") from None


def _unescape(body: str, quote: str, text: str) -> str:
    """Unescapes a text literal by Spark's rules; \\% and \\_ are left for LIKE."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code is None:
            # A doubled quote of the literal's own kind is one quote.
            return quote if match[0] == 2 * quote else match[0]
        if len(code) > 1:
            return chr(int(code[1:], 16) if code[0] in "uU" else int(code, 8))
        return f"\\{code}" if code in "%_" else _CHARACTERS.get(code, code)

    try:
        # Characters beyond 16 bits may be written as a surrogate pair.
        value = _ESCAPED.sub(character, body)
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except (ValueError, OverflowError):
        raise InvalidFilterError(
            f"filter {text!r}: '{body}' has an escape sequence that is not a valid character"
        ) from None


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(value, str) and not NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is not a number")
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _single(value: str | int | float | Decimal) -> float:
    """The single-precision number nearest to a value; infinite beyond the greatest, as in Java."""
    number = float(value)
    if math.isnan(number) or math.isinf(number):
        return number
    if abs(number) >= _INFINITE_SINGLE:
        return math.copysign(math.inf, number)
    single = to_single(number)
    other = 2 * number - single
    is_between = other != single and to_single(other) == other
    if is_between and Fraction(value) != Fraction(number):
        raise ValueError(f"{value} is too near to the middle between two floats")
    return single


def _date(text: str) -> date:
    return date(1970, 1, 1) + timedelta(days=parse_date(text))


def _time(text: str) -> time:
    return (datetime(1970, 1, 1) + timedelta(microseconds=parse_time(text))).time()


def _timestamp(text: str, target: str) -> datetime:
    moment = parse_timestamp(text)
    if target == "TIMESTAMPNTZ" and moment.tzinfo is not None:
        raise ValueError(f"{text!r} has a time zone but TIMESTAMP_NTZ has none")
    return moment
