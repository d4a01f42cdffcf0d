"""Defines the calls of the Hive Metastore's Thrift service that are used here.

Among equivalent calls, it uses those that Hive 2.3, 3 and 4 have: for instance `get_table_req`
instead of `get_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TApplicationException, TMessageType

from icebergds.catalog.hive.messages import (
    Database,
    EnvironmentContext,
    GetTableRequest,
    GetTableResult,
    Int16,
    LockId,
    LockRequest,
    LockResponse,
    ShowLocksRequest,
    ShowLocksResponse,
    Struct,
    Table,
    numbered,
    spec_of,
    struct,
)


class RemoteError(Exception):
    """The metastore answered a call with an error."""


class MetaError(RemoteError):
    """MetaException: something failed in the metastore, its database or its storage."""


class NoSuchObject(RemoteError):  # noqa: N818
    """NoSuchObjectException: no such database or table."""


class AlreadyExists(RemoteError):  # noqa: N818
    """AlreadyExistsException: a database or table with this name exists."""


class InvalidObject(RemoteError):  # noqa: N818
    """InvalidObjectException: a name or a type that Hive does not allow."""


class InvalidOperation(RemoteError):  # noqa: N818
    """InvalidOperationException: the database is not empty, or the change is not allowed."""


class UnknownDatabase(RemoteError):  # noqa: N818
    """UnknownDBException."""


class NoSuchLock(RemoteError):  # noqa: N818
    """NoSuchLockException: the lock has expired or was released."""


class NoSuchTransaction(RemoteError):  # noqa: N818
    """NoSuchTxnException; locks for commits are outside of transactions."""


class TransactionState(RemoteError):  # noqa: N818
    """TxnAbortedException and TxnOpenException; locks for commits are outside of transactions."""


class Unanswerable(RemoteError):  # noqa: N818
    """The metastore does not have the call, or failed without an error that the call declares."""

    def __init__(self, message: str, *, is_unknown_call: bool) -> None:
        super().__init__(message)
        self.is_unknown_call = is_unknown_call


_R_co = TypeVar("_R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[_R_co]):
    """A call of the service.

    Attributes:
        name: as in the service's definition.
        arguments: their types, in order; they are numbered from 1.
        returns: the type of the result; None if there is none.
        raises: the errors that it declares, numbered from 1.
    """

    name: str
    arguments: tuple[Any, ...]
    returns: type[_R_co] | Any
    raises: tuple[type[RemoteError], ...]


GET_TABLE: Call[GetTableResult] = Call(
    "get_table_req", (GetTableRequest,), GetTableResult, (MetaError, NoSuchObject)
)
CREATE_TABLE: Call[None] = Call(
    "create_table",
    (Table,),
    None,
    (AlreadyExists, InvalidObject, MetaError, NoSuchObject),
)
ALTER_TABLE: Call[None] = Call(
    "alter_table_with_environment_context",
    (str, str, Table, EnvironmentContext),
    None,
    (InvalidOperation, MetaError),
)
DROP_TABLE: Call[None] = Call("drop_table", (str, str, bool), None, (NoSuchObject, MetaError))
GET_ALL_TABLES: Call[Sequence[str]] = Call("get_all_tables", (str,), Sequence[str], (MetaError,))
GET_TABLE_NAMES: Call[Sequence[str]] = Call(
    "get_table_names_by_filter",
    (str, str, Int16),
    Sequence[str],
    (MetaError, InvalidOperation, UnknownDatabase),
)
GET_ALL_DATABASES: Call[Sequence[str]] = Call("get_all_databases", (), Sequence[str], (MetaError,))
GET_DATABASE: Call[Database] = Call("get_database", (str,), Database, (NoSuchObject, MetaError))
CREATE_DATABASE: Call[None] = Call(
    "create_database", (Database,), None, (AlreadyExists, InvalidObject, MetaError)
)
ALTER_DATABASE: Call[None] = Call(
    "alter_database", (str, Database), None, (MetaError, NoSuchObject)
)
DROP_DATABASE: Call[None] = Call(
    "drop_database", (str, bool, bool), None, (NoSuchObject, InvalidOperation, MetaError)
)
LOCK: Call[LockResponse] = Call(
    "lock", (LockRequest,), LockResponse, (NoSuchTransaction, TransactionState)
)
CHECK_LOCK: Call[LockResponse] = Call(
    "check_lock", (LockId,), LockResponse, (NoSuchTransaction, TransactionState, NoSuchLock)
)
HEARTBEAT: Call[None] = Call(
    "heartbeat", (LockId,), None, (NoSuchLock, NoSuchTransaction, TransactionState)
)
UNLOCK: Call[None] = Call("unlock", (LockId,), None, (NoSuchLock, TransactionState))
SHOW_LOCKS: Call[ShowLocksResponse] = Call("show_locks", (ShowLocksRequest,), ShowLocksResponse, ())
SET_UGI: Call[Sequence[str]] = Call("set_ugi", (str, Sequence[str]), Sequence[str], (MetaError,))


def send(protocol: TProtocolBase, call: Call[Any], *arguments: Any) -> None:
    """Encodes a call; it is sent when its answer is received."""
    numbers = range(1, len(call.arguments) + 1)
    names = [f"argument{number}" for number in numbers]
    spec = spec_of(dict(zip(numbers, zip(names, call.arguments, strict=True), strict=True)))
    protocol.writeMessageBegin(call.name, TMessageType.CALL, 0)
    protocol.writeStruct(SimpleNamespace(**dict(zip(names, arguments, strict=True))), spec)
    protocol.writeMessageEnd()


def receive(protocol: TProtocolBase, call: Call[_R_co]) -> _R_co:
    """Sends an encoded call and waits for its answer.

    Raises:
        RemoteError: the metastore answered with an error.
        Exception: from the Thrift library or the network; the call may have been carried out.
    """
    protocol.trans.flush()
    _, kind, _ = protocol.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        error = TApplicationException()
        error.read(protocol)
        protocol.readMessageEnd()
        unknown = error.type == TApplicationException.UNKNOWN_METHOD
        raise Unanswerable(str(error), is_unknown_call=unknown)
    answer: Mapping[str, Any] = protocol.readStruct(dict, _answer_spec(call), True)
    protocol.readMessageEnd()
    for number, declared in enumerate(call.raises, 1):
        if (raised := answer.get(f"error{number}")) is not None:
            raise declared(raised.message or declared.__name__)
    result: _R_co | None = answer.get(_RESULT)
    if result is None and call.returns is not None:
        raise Unanswerable(f"{call.name} returned nothing", is_unknown_call=False)
    return result  # type: ignore[return-value]


_RESULT = "result"


@struct
@dataclass(frozen=True, slots=True)
class _Message(Struct):
    """The content of all declared errors."""

    message: str | None = numbered(1)


def _answer_spec(call: Call[Any]) -> tuple[Any, ...]:
    named: dict[int, tuple[str, Any]] = {
        number: (f"error{number}", _Message) for number in range(1, len(call.raises) + 1)
    }
    if call.returns is not None:
        named[0] = (_RESULT, call.returns)
    return spec_of(named)
