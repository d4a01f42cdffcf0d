"""Models the metadata of SQL functions (UDF spec: UDF Metadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.types import IcebergType

FUNCTION_FORMAT_VERSION = 1
"""The only format version of functions."""


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter; it may be null."""

    name: str
    parameter_type: IcebergType
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class SQLFunctionRepresentation:
    """The body of a function as the text of an expression in one dialect."""

    sql: str
    dialect: str


@dataclass(frozen=True, slots=True)
class FunctionVersion:
    """A body of a function at some time; `timestamp_ms` is in milliseconds since the epoch.

    Attributes:
        sqls: the same body in several dialects.
        null_for_null: whether the function is null if an argument is.
    """

    version_id: int
    timestamp_ms: int
    sqls: tuple[SQLFunctionRepresentation, ...]
    deterministic: bool = False
    null_for_null: bool = False


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """What a function does for one list of types of parameters.

    Attributes:
        definition_id: the types of the parameters, such as `int,list<int>`.
        function_type: `udf` for a function with one value, `udtf` for one with rows.
        return_type: of the value; a struct of the columns for a function with rows.
    """

    definition_id: str
    parameters: tuple[FunctionParameter, ...]
    return_type: IcebergType
    versions: tuple[FunctionVersion, ...]
    current_version_id: int
    function_type: str
    specific_name: str | None = None
    doc: str | None = None

    def current_version(self) -> FunctionVersion:
        return next(each for each in self.versions if each.version_id == self.current_version_id)


@dataclass(frozen=True, slots=True)
class FunctionMetadata:
    """A function, with a definition for each list of types of parameters.

    Attributes:
        secure: whether users must not see its bodies.
    """

    function_uuid: str
    definitions: tuple[FunctionDefinition, ...]
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    secure: bool = False
    doc: str | None = None
