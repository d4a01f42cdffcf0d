"""Defines the structs of the Hive Metastore's Thrift service, as far as they are used here.

Omitted fields are not read, nor sent back when a table is altered; none of them is stored for an
Iceberg table.
"""

# ruff: noqa: RUF009 -- `numbered` makes fields of dataclasses.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from icebergds.catalog.hive.structs import Int32, Int64, Struct, numbered, struct


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
