"""Defines the structs of the Hive Metastore's Thrift service, as far as they are used here.

Omitted fields are not read, nor sent back when a table is altered; none of them is stored for an
Iceberg table. Each struct is a dataclass, whose fields have a number and a type:

    @struct
    @dataclass(frozen=True, slots=True)
    class UnlockRequest(Struct):
        lock_id: Int64 = numbered(1)

The Thrift library encodes and decodes them with the table `thrift_spec`, derived from these. Names
of fields are not sent, and neither are fields that are None.
"""

# ruff: noqa: RUF009 -- `numbered` makes fields of dataclasses.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from thrift.protocol.TBase import TFrozenBase
from thrift.Thrift import TType


class Struct(TFrozenBase):  # type: ignore[misc]
    """Base of all structs; the Thrift library reads and writes its subclasses."""

    __slots__ = ()
    thrift_spec: ClassVar[Spec]


_S = TypeVar("_S", bound=type[Struct])


def numbered(number: int) -> Any:
    """A field of a struct, None by default.

    Args:
        number: the field's number in the service's definition.
    """
    return field(default=None, metadata={_NUMBER: number})


def struct(cls: _S) -> _S:
    """Derives the `thrift_spec` of a dataclass."""
    hints = get_type_hints(cls, include_extras=True)
    cls.thrift_spec = spec_of({f.metadata[_NUMBER]: (f.name, hints[f.name]) for f in fields(cls)})
    return cls


def spec_of(named: Mapping[int, tuple[str, Any]]) -> Spec:
    """The table of fields, from their numbers, names and types."""
    rows = {number: _row(number, name, hint) for number, (name, hint) in named.items()}
    return tuple(rows.get(number) for number in range(max(rows, default=-1) + 1))


_NUMBER = "number"


def _row(number: int, name: str, hint: Any) -> Spec:
    kind, arguments = _type(hint)
    return number, kind, name, arguments, None


def _type(hint: Any) -> tuple[int, Any]:
    """The type on the wire, and what else the library needs to know about it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _type(next(a for a in arguments if a is not NoneType))
    if origin is Annotated:
        return hint.__metadata__[0], None
    if origin is Sequence:
        return TType.LIST, (*_type(arguments[0]), True)
    if origin is Mapping:
        return TType.MAP, (*_type(arguments[0]), *_type(arguments[1]), False)
    if hint is str:
        return TType.STRING, "UTF8"
    if hint is bool:
        return TType.BOOL, None
    return TType.STRUCT, [hint, hint.thrift_spec]


Int16: TypeAlias = Annotated[int, TType.I16]
Int32: TypeAlias = Annotated[int, TType.I32]
Int64: TypeAlias = Annotated[int, TType.I64]

Spec: TypeAlias = tuple[Any, ...]
"""Thrift's `thrift_spec`: each field at the index of its number."""


class PrincipalType(IntEnum):
    """Kinds of owners."""

    USER = 1
    ROLE = 2
    GROUP = 3


class LockState(IntEnum):
    """States of a lock."""

    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


EXCLUSIVE = 3
"""A `LockType`."""
TABLE_LEVEL = 2
"""A `LockLevel`."""
INSERT_ONLY_TABLES = 2
"""A `ClientCapability`; without it, the metastore does not even reveal tables of this kind."""


@struct
@dataclass(frozen=True, slots=True)
class Database(Struct):
    name: str = numbered(1)
    description: str | None = numbered(2)
    location: str | None = numbered(3)
    parameters: Mapping[str, str] | None = numbered(4)
    owner: str | None = numbered(6)
    owner_type: Int32 | None = numbered(7)
    catalog: str | None = numbered(8)
    create_time: Int32 | None = numbered(9)
    managed_location: str | None = numbered(10)


@struct
@dataclass(frozen=True, slots=True)
class Column(Struct):
    name: str = numbered(1)
    type: str = numbered(2)
    comment: str | None = numbered(3)


@struct
@dataclass(frozen=True, slots=True)
class SerDe(Struct):
    name: str | None = numbered(1)
    library: str | None = numbered(2)
    parameters: Mapping[str, str] | None = numbered(3)


@struct
@dataclass(frozen=True, slots=True)
class StorageDescriptor(Struct):
    columns: Sequence[Column] = numbered(1)
    location: str | None = numbered(2)
    input_format: str | None = numbered(3)
    output_format: str | None = numbered(4)
    compressed: bool | None = numbered(5)
    buckets: Int32 | None = numbered(6)
    serde: SerDe | None = numbered(7)
    bucket_columns: Sequence[str] | None = numbered(8)
    parameters: Mapping[str, str] | None = numbered(10)
    stored_as_subdirectories: bool | None = numbered(12)


@struct
@dataclass(frozen=True, slots=True)
class Table(Struct):
    name: str = numbered(1)
    database: str = numbered(2)
    owner: str | None = numbered(3)
    create_time: Int32 | None = numbered(4)
    last_access_time: Int32 | None = numbered(5)
    retention: Int32 | None = numbered(6)
    storage: StorageDescriptor | None = numbered(7)
    partition_keys: Sequence[Column] | None = numbered(8)
    parameters: Mapping[str, str] | None = numbered(9)
    view_text: str | None = numbered(10)
    expanded_view_text: str | None = numbered(11)
    table_type: str | None = numbered(12)
    temporary: bool | None = numbered(14)
    rewrite_enabled: bool | None = numbered(15)
    catalog: str | None = numbered(17)
    owner_type: Int32 | None = numbered(18)


@struct
@dataclass(frozen=True, slots=True)
class EnvironmentContext(Struct):
    properties: Mapping[str, str] = numbered(1)


@struct
@dataclass(frozen=True, slots=True)
class ClientCapabilities(Struct):
    values: Sequence[Int32] = numbered(1)


@struct
@dataclass(frozen=True, slots=True)
class GetTableRequest(Struct):
    database: str = numbered(1)
    table: str = numbered(2)
    capabilities: ClientCapabilities | None = numbered(3)


@struct
@dataclass(frozen=True, slots=True)
class GetTableResult(Struct):
    table: Table = numbered(1)


@struct
@dataclass(frozen=True, slots=True)
class LockComponent(Struct):
    type: Int32 = numbered(1)
    level: Int32 = numbered(2)
    database: str = numbered(3)
    table: str | None = numbered(4)


@struct
@dataclass(frozen=True, slots=True)
class LockRequest(Struct):
    components: Sequence[LockComponent] = numbered(1)
    user: str = numbered(3)
    host: str = numbered(4)
    agent: str | None = numbered(5)


@struct
@dataclass(frozen=True, slots=True)
class LockResponse(Struct):
    lock_id: Int64 = numbered(1)
    state: Int32 = numbered(2)


@struct
@dataclass(frozen=True, slots=True)
class LockId(Struct):
    """The only used field of CheckLockRequest, HeartbeatRequest and UnlockRequest."""

    lock_id: Int64 = numbered(1)


@struct
@dataclass(frozen=True, slots=True)
class ShowLocksRequest(Struct):
    database: str | None = numbered(1)
    table: str | None = numbered(2)


@struct
@dataclass(frozen=True, slots=True)
class ShownLock(Struct):
    lock_id: Int64 = numbered(1)
    database: str = numbered(2)
    table: str | None = numbered(3)
    state: Int32 = numbered(5)
    type: Int32 = numbered(6)
    last_heartbeat_ms: Int64 | None = numbered(8)
    acquired_ms: Int64 | None = numbered(9)
    user: str | None = numbered(10)
    host: str | None = numbered(11)
    agent: str | None = numbered(13)


@struct
@dataclass(frozen=True, slots=True)
class ShowLocksResponse(Struct):
    locks: Sequence[ShownLock] = numbered(1)
