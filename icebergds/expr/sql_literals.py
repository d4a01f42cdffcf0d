"""Reads Spark SQL constants by Spark's rules: literals, casts of them, and date arithmetic.

Dates are computed, such as `DATE '1994-01-01' + INTERVAL 1 YEAR`. The current time is later when
Spark evaluates a condition, so only a lower limit of it is known.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.conditions import Constant, Later
from icebergds.expr.literals import NAMED_FLOAT, NUMBER, parse_timestamp, to_single
from icebergds.spec.values.dates import parse_date, parse_time
from icebergds.spec.values.decimals import unscaled

# A class of sqlglot's tree.
_Node = Any

_UNITS = {"DAY": (0, 1), "WEEK": (0, 7), "MONTH": (1, 0), "QUARTER": (3, 0), "YEAR": (12, 0)}
_HOURS = ("HOUR", "MINUTE", "SECOND")
# The current date differs between time zones, and begins before now.
_MARGIN = timedelta(days=2)


def extract_literals(text: str) -> tuple[str, list[str | bytes]]:
    """Replaces text and binary literals by placeholders '@0', '@1', ...; returns both.

    Versions of sqlglot differ in how they unescape literals; here Spark's rules apply. Numbers with
    the suffix BD become casts of a placeholder: sqlglot before 30.29 drops their fraction digits.
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
            case "exact":
                literals.append(piece[:-2])
                outline.append(f"CAST('@{len(literals) - 1}' AS {_exact_type(piece[:-2])})")
                continue
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

    Text is accepted only if Spark casts it to the same value with and without ANSI mode.

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


def has_only(node: _Node, *arguments: str) -> bool:
    """Whether a node has no other arguments: new versions of sqlglot add some, with a meaning."""
    return not any(value for name, value in node.args.items() if name not in arguments)


@dataclass(frozen=True, slots=True)
class SqlConstants:
    """Evaluates constants.

    Attributes:
        literals: the values of placeholders for text (`extract_literals`).
        error: makes the error for a node whose value is not supported, with the reason.
        now: the current time; None if it must not be used.
    """

    literals: Sequence[str | bytes]
    error: Callable[[_Node, str], InvalidFilterError]
    now: datetime | None = None

    def constant(self, node: _Node) -> Constant | Later | None:
        """The value of a node; None if it is not a constant that is supported.

        Raises:
            InvalidFilterError: the constant has no such value.
        """
        match node.key:
            case "null":
                return Constant(None)
            case "boolean":
                return Constant(bool(node.this))
            case "paren":
                return self.constant(node.this) if has_only(node, "this") else None
            case "literal":
                return Constant(self._text(node) if node.is_string else self._number(node))
            case "neg":
                return _negated(self.constant(node.this)) if has_only(node, "this") else None
            case "cast" | "trycast":
                return self._cast(node)
            case "tsordstodate" if has_only(node, "this", "safe"):
                return self._cast_to(node, "DATE", [])
            case "add" | "sub" | "addmonths" | "tsordsadd":
                found = self._date(node)
                return self._later(node) if found is None else Constant(found)
            case _:
                return self._later(node)

    def integer(self, node: _Node) -> int | None:
        """The value of a whole number; None for anything else."""
        match node.key:
            case "mul":
                left, right = self.integer(node.this), self.integer(node.expression)
                return None if left is None or right is None else left * right
            case "neg":
                value = self.integer(node.this)
                return None if value is None else -value
            case "literal":
                text = str(self._text(node))
                return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else None
            case _:
                return None

    def _text(self, node: _Node) -> str | bytes:
        text = str(node.this)
        # Number literals with the suffix BD also arrive as casts of text, without a placeholder.
        return self.literals[int(text[1:])] if text.startswith("@") else text

    def _number(self, node: _Node) -> int | float | Decimal:
        text = str(node.this)
        if "e" in text.lower():
            value = float(text)
            if math.isinf(value):
                raise self.error(node, "does not fit a double")
            return value
        return Decimal(text) if "." in text else int(text)

    def _cast(self, node: _Node) -> Constant | None:
        target = node.args["to"]
        is_plain = target.key == "datatype" and has_only(target, "this", "expressions", "nested")
        if not is_plain or not has_only(node, "this", "to"):
            return None
        return self._cast_to(node, target.this.name, [int(str(p.this)) for p in target.expressions])

    def _cast_to(self, node: _Node, target: str, parameters: list[int]) -> Constant | None:
        given = self.constant(node.this)
        if not isinstance(given, Constant) or given.value is None:
            return given if isinstance(given, Constant) else None
        try:
            return Constant(cast(given.value, target, parameters))
        except (ValueError, InvalidOperation, OverflowError) as error:
            raise self.error(node, f"is not supported: {error}") from error

    def _date(self, node: _Node) -> date | None:
        """The date that a sum evaluates to; None if it is not a date."""
        start = self.constant(node.this)
        if not isinstance(start, Constant) or type(start.value) is not date:
            return None
        match node.key:
            case "addmonths" if has_only(node, "this", "expression"):
                return _later_date(start.value, self.integer(node.expression), 0)
            case "tsordsadd" if str(node.args.get("unit") or "DAY").upper() == "DAY":
                return _later_date(start.value, 0, self.integer(node.expression))
            case "add" | "sub" if has_only(node, "this", "expression"):
                sign, step = (1 if node.key == "add" else -1), node.expression
                if step.key == "literal":
                    days = self.integer(step)
                    return None if days is None else _later_date(start.value, 0, sign * days)
                amount, unit = self._interval(step)
                if amount is None or unit not in _UNITS:
                    return None
                months, days = _UNITS[unit]
                return _later_date(start.value, sign * amount * months, sign * amount * days)
            case _:
                return None

    def _interval(self, node: _Node) -> tuple[int | None, str]:
        """The amount and the unit of an interval; None for anything else."""
        unit = node.args.get("unit")
        if node.key != "interval" or unit is None:
            return None, ""
        return self.integer(node.this), str(unit.name).upper().removesuffix("S")

    def _later(self, node: _Node) -> Later | None:
        moment = None if self.now is None else self._moment(node, self.now)
        return None if moment is None else Later((moment - _MARGIN).date())

    def _moment(self, node: _Node, now: datetime) -> datetime | None:
        """The approximate time of an expression relative to now."""
        match node.key:
            case "paren":
                return self._moment(node.this, now)
            case "currentdate" | "currenttimestamp":
                return now
            case "anonymous" if str(node.this).lower() == "now" and not node.expressions:
                return now
            case "add" | "sub":
                length = self._length(node.expression, 1 if node.key == "add" else -1)
            case "tsordsadd":
                days = self.integer(node.expression)
                length = None if days is None else timedelta(days=days)
            case _:
                return None
        start = self._moment(node.this, now)
        return None if start is None or length is None else start + length

    def _length(self, step: _Node, sign: int) -> timedelta | None:
        """The least length of an interval, or of a number of days; more before than after now."""
        amount, unit = self._interval(step)
        if step.key == "literal":
            amount, unit = self.integer(step), "DAY"
        if amount is None or abs(amount) > 100_000:
            return None
        amount *= sign
        if unit in _HOURS:
            return timedelta(**{f"{unit.lower()}s": amount})
        if unit not in _UNITS:
            return None
        months, days = _UNITS[unit]
        return timedelta(days=amount * ((31 if amount < 0 else 28) * months + days))


_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
# Halfway between the greatest float and the next power of two.
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
    | (?P<exact>(?<![\w.])(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[bB][dD]\b)
    | (?P<other>\w+|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)|'{2}|\"{2}", re.DOTALL)
_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def _exact_type(number: str) -> str:
    """The type of a decimal literal: that of its digits."""
    _, digits, exponent = Decimal(number).as_tuple()
    scale = max(0, -int(exponent))
    return f"DECIMAL({max(len(digits) + max(0, int(exponent)), scale)}, {scale})"


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


def _negated(given: Constant | Later | None) -> Constant | None:
    match given:
        case Constant(Decimal() as value):
            return Constant(value.copy_negate())  # the operator would round
        case Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
            return Constant(-value)
        case _:
            return None


def _later_date(start: date, months: int | None, days: int | None) -> date | None:
    """A date some months and days later; None beyond the years 1 to 9999."""
    if months is None or days is None:
        return None
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    try:
        last = calendar.monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 0
        moved = date(year, month + 1, min(start.day, last))
        return moved + timedelta(days=days)
    except (ValueError, OverflowError):
        return None
