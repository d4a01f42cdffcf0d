"""Reads and evaluates the arguments of a CALL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import TokenKind
from icebergds.statements.commands.procedures.signature import ArgumentType, Parameter, Procedure
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.query import run_query
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor, cursor_of, literal_value
from icebergds.suggestions import did_you_mean


def match_arguments(procedure: Procedure, listed: Cursor) -> dict[str, Cursor]:
    """The arguments in the parentheses of a call, by parameter name.

    Positional arguments come first, named ones (`name => value`) after them.

    Raises:
        InvalidStatementError: an argument is unknown, given twice or positional after a named one,
            a required one is missing, or the list is malformed.
    """
    by_name = {parameter.name: parameter for parameter in procedure.parameters}
    found: dict[str, Cursor] = {}
    are_named = False
    for position, item in enumerate(listed.items()):
        name = _name_of(item)
        if name is None and (like := _compared(item)) in by_name:
            raise _error(procedure, f"argument {item.written}: expected {like} => and its value")
        if name is None and are_named:
            raise _error(
                procedure, f"argument {item.written} has no name but follows one with a name"
            )
        if name is None:
            name = _name_at(procedure, position)
        else:
            are_named = True
            if name.lower() not in by_name:
                near = did_you_mean(name, by_name)
                raise _error(procedure, f"unknown argument {name}{'; ' + near if near else ''}")
            name = name.lower()
        if name in found:
            raise _error(procedure, f"argument {name} is given twice")
        if item.is_done:
            raise item.error("the value of an argument")
        found[name] = item
    missing = [each.name for each in procedure.parameters if each.is_required]
    missing = [name for name in missing if name not in found]
    if missing:
        raise _error(procedure, f"argument {' and '.join(missing)} is missing")
    return found


def evaluate(scope: NameScope, procedure: Procedure, given: Mapping[str, Cursor]) -> dict[str, Any]:
    """The values of the arguments that are not null. Spark evaluates all but literals.

    Raises:
        InvalidStatementError: a value has a type that the parameter does not accept, Spark cannot
            evaluate it, or a required one is null or empty.
        PySparkException: Spark cannot resolve it.
    """
    asked = [each for each in procedure.parameters if each.name in given]
    values: dict[str, Any] = {}
    others: list[Parameter] = []
    for parameter in asked:
        is_literal, value = _literal(parameter.type, given[parameter.name])
        if is_literal:
            values[parameter.name] = value
        else:
            others.append(parameter)
    if others:
        values |= _evaluated(scope, procedure, others, given)
    for parameter in asked:
        value = values[parameter.name]
        if parameter.is_required and (value is None or value == ""):
            what = "NULL" if value is None else "empty"
            raise _error(procedure, f"argument {parameter.name} is {what}, but needs a value")
        _check(procedure, parameter, value)
    return {name: value for name, value in values.items() if value is not None}


_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_TEXTS = (StringType, CharType, VarcharType)
_ACCEPTED: dict[ArgumentType, tuple[type[DataType], ...]] = {
    # For example a number, as text.
    ArgumentType.STRING: (AtomicType,),
    ArgumentType.INT: (*_INTEGERS, *_TEXTS),
    ArgumentType.BIGINT: (*_INTEGERS, *_TEXTS),
    ArgumentType.DOUBLE: (*_INTEGERS, DecimalType, FloatType, DoubleType, *_TEXTS),
    ArgumentType.BOOLEAN: (BooleanType, *_TEXTS),
    ArgumentType.TIMESTAMP: (TimestampType, TimestampNTZType, DateType, *_TEXTS),
}
_INT_BOUND = 2**31


def _name_of(item: Cursor) -> str | None:
    """Reads the name of an argument, if it has one."""
    token, then = item.peek(), item.peek(1)
    if token is None or then is None or not (token.is_identifier and then.is_sign("=>")):
        return None
    name = item.identifier()
    item.expect_sign("=>")
    return name


def _compared(item: Cursor) -> str:
    """The name before an equals sign, in lower case: no argument refers to a column."""
    token, then = item.peek(), item.peek(1)
    if token is None or then is None or not (token.is_identifier and then.is_sign("=")):
        return ""
    return token.identifier.lower()


def _name_at(procedure: Procedure, position: int) -> str:
    if position >= len(procedure.parameters):
        raise _error(procedure, f"more arguments than parameters, of which there are {position}")
    return procedure.parameters[position].name


def _literal(wanted: ArgumentType, item: Cursor) -> tuple[bool, Any]:
    """Whether an argument is NULL or a literal of the wanted type, and its value."""
    rest = item.part()
    if rest.take("NULL"):
        return rest.is_done, None
    if wanted is ArgumentType.BOOLEAN:
        word = rest.take_any("TRUE", "FALSE")
        return word is not None and rest.is_done, word == "TRUE"
    token = rest.peek()
    if token is None or rest.at + 1 < rest.end:
        return False, None
    if wanted is ArgumentType.STRING and token.kind is TokenKind.TEXT:
        value = literal_value(token)
        return isinstance(value, str), value
    if wanted in (ArgumentType.BIGINT, ArgumentType.INT) and token.kind is TokenKind.NUMBER:
        digits = token.text.rstrip("lL")
        return digits.isdecimal(), int(digits) if digits.isdecimal() else None
    return False, None


def _evaluated(
    scope: NameScope,
    procedure: Procedure,
    parameters: Sequence[Parameter],
    given: Mapping[str, Cursor],
) -> dict[str, Any]:
    """Evaluates arguments in Spark, after checking their types."""
    # In parentheses, each can only be an expression.
    columns = ", ".join(
        f"({given[each.name].written}) AS {in_backticks([each.name])}" for each in parameters
    )
    frame = run_query(scope, cursor_of(f"SELECT {columns}"), Arguments())
    for parameter, field in zip(parameters, frame.schema.fields, strict=True):
        if not _accepts(parameter.type, field.dataType):
            raise _error(
                procedure,
                f"argument {parameter.name} = {given[parameter.name].written} is of type "
                f"{field.dataType.simpleString()}, expected {parameter.type.value}",
            )
    try:
        [row] = frame.selectExpr(*map(_cast, parameters)).collect()
    except PySparkException as error:
        problem = str(error).strip().split("\n")[0]
        of = " and ".join(
            f"{each.name} = {given[each.name].written} ({each.type.value})" for each in parameters
        )
        raise _error(procedure, f"argument {of}: {problem}") from error
    return {each.name: row[each.name] for each in parameters}


def _accepts(wanted: ArgumentType, given: DataType) -> bool:
    if isinstance(given, NullType):
        return True
    match wanted:
        case ArgumentType.STRING_MAP:
            # For example map('min-input-files', 2).
            return isinstance(given, MapType) and all(
                isinstance(each, AtomicType | NullType) for each in (given.keyType, given.valueType)
            )
        case ArgumentType.STRING_ARRAY:
            return isinstance(given, ArrayType) and isinstance(
                given.elementType, (*_TEXTS, NullType)
            )
        case ArgumentType.BIGINT_ARRAY:
            return isinstance(given, ArrayType) and isinstance(
                given.elementType, (*_INTEGERS, NullType)
            )
        case _:
            return isinstance(given, _ACCEPTED[wanted])


def _cast(parameter: Parameter) -> str:
    """The value of a column, cast to the parameter's type."""
    name = in_backticks([parameter.name])
    kind = ArgumentType.BIGINT if parameter.type is ArgumentType.INT else parameter.type
    value = f"CAST({name} AS {kind.value})"
    if parameter.type is ArgumentType.TIMESTAMP:
        value = f"unix_millis({value})"
    return f"{value} AS {name}"


def _check(procedure: Procedure, parameter: Parameter, value: Any) -> None:
    """Raises InvalidStatementError if a value is out of range, or contains nulls."""
    if parameter.type is ArgumentType.INT and value is not None and abs(value) >= _INT_BOUND:
        raise _error(procedure, f"argument {parameter.name} = {value} is out of the range of INT")
    inner = list(value.values()) if isinstance(value, dict) else value
    if isinstance(inner, list) and any(each is None for each in inner):
        raise _error(procedure, f"argument {parameter.name} has NULL in it")


def _error(procedure: Procedure, problem: str) -> InvalidStatementError:
    stop = "" if problem.endswith("?") else "."
    return InvalidStatementError(
        f"CALL {procedure.name}: {problem}{stop} Arguments: "
        + ", ".join(
            each.name if each.is_required else f"[{each.name}]" for each in procedure.parameters
        )
    )
