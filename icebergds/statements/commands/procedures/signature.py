"""Defines what a procedure takes and returns (`Procedure`), and a call of one (`Call`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeAlias

from icebergds.statements.names.scope import NameScope

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ArgumentType(Enum):
    """The type of an argument, as SQL writes it."""

    STRING = "STRING"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    """Its values are milliseconds since 1970."""
    STRING_MAP = "MAP<STRING, STRING>"
    STRING_ARRAY = "ARRAY<STRING>"
    BIGINT_ARRAY = "ARRAY<BIGINT>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure; one that is not required is null by default."""

    name: str
    type: ArgumentType
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a procedure.

    Attributes:
        catalog: the name of the catalog of the procedure.
        values: values of the arguments that are given and not null, by parameter name.
    """

    scope: NameScope
    catalog: str
    values: Mapping[str, Any]

    def __getitem__(self, parameter: str) -> Any:
        """The value of a required argument."""
        return self.values[parameter]

    def get(self, parameter: str, default: Any = None) -> Any:
        """The value of an argument, or a default if it is not given or null."""
        return self.values.get(parameter, default)

    def moment(self, parameter: str) -> datetime | int | None:
        """The value of a TIMESTAMP argument; in milliseconds if it is beyond the year 9999."""
        milliseconds: int | None = self.values.get(parameter)
        if milliseconds is None:
            return None
        try:
            return _EPOCH + timedelta(milliseconds=milliseconds)
        except OverflowError:
            return milliseconds


Rows: TypeAlias = Iterable[Sequence[Any]]
"""The rows of a result."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure in the namespace `system`.

    Attributes:
        parameters: in the order of positional arguments.
        columns: names and types of the result's columns, as Spark SQL writes them.
        summary: what it does, in a sentence.
    """

    name: str
    parameters: tuple[Parameter, ...]
    columns: str
    run: Callable[[Call], Rows]
    summary: str


def required(name: str, argument_type: ArgumentType = ArgumentType.STRING) -> Parameter:
    return Parameter(name, argument_type, is_required=True)


def optional(name: str, argument_type: ArgumentType = ArgumentType.STRING) -> Parameter:
    return Parameter(name, argument_type)
