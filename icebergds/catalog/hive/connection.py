"""Calls a Hive Metastore by Thrift's binary protocol, and settles the outcome of failed changes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import (
    TBufferedTransport,
    TSaslClientTransport,
    TTransportBase,
    TTransportException,
)

from icebergds.catalog.hive.calls import (
    SET_UGI,
    Call,
    MetaError,
    RemoteError,
    Unanswerable,
    receive,
    send,
)
from icebergds.errors import CommitStateUnknownError, InvalidOptionError, StorageError

_LOG = logging.getLogger(__name__)
_R = TypeVar("_R")

_CONNECT_TIMEOUT_S = 30
# The default of Hive's own clients: a metastore may have to read slow storage.
ANSWER_TIMEOUT_S = 600
"""Default time to wait for an answer."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a metastore."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class User:
    """The user that a metastore acts for."""

    name: str
    groups: tuple[str, ...]


class AnswerLost(Exception):  # noqa: N818
    """A call was sent, but no answer came: it may have been carried out, or may still be."""


@dataclass(frozen=True, slots=True)
class Metastore:
    """The Hive Metastore of a catalog.

    Attributes:
        catalog: the catalog's name in messages.
        endpoints: of metastores with one database; uses the first that can be reached.
        user: None for the user that the metastore determines, or its own.
        kerberos_service: the service's name in the metastore's principal; None without Kerberos.
        answer_timeout_s: how long to wait for an answer.
    """

    catalog: str
    endpoints: tuple[Endpoint, ...]
    user: User | None = field(default=None, repr=False)
    kerberos_service: str | None = None
    answer_timeout_s: int = ANSWER_TIMEOUT_S

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection for the calls of one operation, closed at the end.

        It is not kept longer, because processes may be forked, and metastores close idle
        connections.
        """
        connection = Connection(self)
        try:
            yield connection
        finally:
            connection.close()

    def failure(self, what: str, error: object) -> StorageError:
        """The error for something that the metastore cannot do."""
        where = ", ".join(map(str, self.endpoints))
        return StorageError(
            f"catalog {self.catalog}: its Hive Metastore {where} {what}: {error}", location=where
        )


class Connection:
    """Opens with the first call, and again after it breaks."""

    __slots__ = ("_metastore", "_protocol")

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._protocol: TBinaryProtocolAccelerated | None = None

    def ask(self, call: Call[_R], *arguments: Any) -> _R:
        """Makes a call that changes nothing.

        Raises:
            RemoteError: an error that the call declares, except MetaError.
            StorageError: the metastore cannot be reached, fails or does not answer.
        """
        try:
            return self.tell(call, *arguments)
        except (MetaError, Unanswerable, AnswerLost) as error:
            raise self._metastore.failure(f"cannot answer {call.name}", error) from error

    def tell(self, call: Call[_R], *arguments: Any) -> _R:
        """Makes a call that changes something.

        Raises:
            RemoteError: the metastore answered with an error.
            AnswerLost: the call may have been carried out, or may still be.
            StorageError: the metastore cannot be reached, so nothing was sent.
            InvalidOptionError: an argument cannot be sent.
        """
        is_first = self._protocol is None
        if self._protocol is None:
            self._protocol = self._open()
        protocol = self._protocol
        try:
            send(protocol, call, *arguments)
        except (TypeError, ValueError) as error:
            self.close()
            raise InvalidOptionError(
                f"catalog {self._metastore.catalog}: {call.name} cannot be sent to the Hive "
                f"Metastore: {error}"
            ) from error
        try:
            return receive(protocol, call)
        except RemoteError:
            raise
        except Exception as error:
            self.close()
            raise AnswerLost(self._lost(error, is_first)) from error
        except BaseException:
            # The answer would be mistaken for that of the next call.
            self.close()
            raise

    def close(self) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            try:
                protocol.trans.close()
            except Exception as error:
                _LOG.debug("catalog %s: closing failed: %s", self._metastore.catalog, error)

    def _open(self) -> TBinaryProtocolAccelerated:
        failures: list[str] = []
        cause: Exception | None = None
        for endpoint in self._metastore.endpoints:
            try:
                protocol = TBinaryProtocolAccelerated(self._transport(endpoint))
                self._introduce(protocol)
                return protocol
            except Exception as error:
                reason = _reason(error)
                _LOG.info(
                    "catalog %s: %s is not reached: %s", self._metastore.catalog, endpoint, reason
                )
                failures.append(f"{endpoint}: {reason}")
                cause = error
        raise StorageError(
            f"catalog {self._metastore.catalog}: its Hive Metastore cannot be reached "
            f"({'; '.join(failures)}); {self._remedy()}",
            location=", ".join(map(str, self._metastore.endpoints)),
        ) from cause

    def _transport(self, endpoint: Endpoint) -> TTransportBase:
        address = (endpoint.host, endpoint.port)
        handle = socket.create_connection(address, timeout=_CONNECT_TIMEOUT_S)
        try:
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            handle.settimeout(self._metastore.answer_timeout_s)
            opened = TSocket(endpoint.host, endpoint.port)
            opened.setHandle(handle)
            service = self._metastore.kerberos_service
            if service is None:
                return TBufferedTransport(opened)
            transport = TSaslClientTransport(opened, endpoint.host, service)
            transport.open()
            return transport
        except BaseException:
            handle.close()
            raise

    def _remedy(self) -> str:
        remedy = "check that one runs there, and the catalog's uri"
        service = self._metastore.kerberos_service
        if service is None:
            return remedy
        return (
            f"{remedy}; for Kerberos also that it has the principal {service}/<host of the uri> "
            "(hive.kerberos-service-name), and that klist shows a valid ticket (kinit gets one)"
        )

    def _lost(self, error: Exception, is_first: bool) -> str:
        if isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT:
            return (
                f"there was no answer in {self._metastore.answer_timeout_s} s "
                "(hive.metastore.client.socket.timeout)"
            )
        lost = f"the connection broke before the answer: {_reason(error)}"
        # A metastore with Kerberos closes the connection if the catalog has none.
        if is_first and _is_closed(error) and self._metastore.kerberos_service is None:
            return f"{lost}; if it wants Kerberos, set hive.kerberos-authentication"
        return lost

    def _introduce(self, protocol: TBinaryProtocolAccelerated) -> None:
        """Sends the user to the metastore, for the whole connection."""
        user = self._metastore.user
        if user is None:
            return
        try:
            send(protocol, SET_UGI, user.name, user.groups)
            receive(protocol, SET_UGI)
        except BaseException:
            protocol.trans.close()
            raise


def _is_closed(error: Exception) -> bool:
    return isinstance(error, TTransportException) and error.type == TTransportException.END_OF_FILE


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if _is_closed(error):
        return "the metastore closed the connection"
    match error.args:
        # Kerberos errors: what failed, and for a code other than 0, why.
        case ((str(what), int()), (str(why), int(code))):
            return why if code else what
    return str(error) or type(error).__name__


def make_change(
    connection: Connection,
    metastore: Metastore,
    what: str,
    is_done: Callable[[], bool],
    call: Call[None],
    *arguments: Any,
) -> None:
    """Makes a call; checks for its effect if its answer is lost.

    Args:
        what: what the call does, such as `drop table lake.db.t`.
        is_done: checks whether the metastore has the change.

    Raises:
        RemoteError: an error that the call declares, except MetaError.
        StorageError: the metastore cannot be reached, or failed and did nothing.
        CommitStateUnknownError: it failed, but may have made the change or may still make it.
    """
    try:
        connection.tell(call, *arguments)
    except (MetaError, Unanswerable, AnswerLost) as error:
        try:
            if is_done():
                return
        except Exception as other:
            raise _unknown(metastore, what, f"{error}; {other}") from error
        if not is_certain(error):
            raise _unknown(metastore, what, error) from error
        raise metastore.failure(f"failed to {what}", error) from error


def is_modified(error: Exception) -> bool:
    """Whether the table had another metadata file than the call expected."""
    return isinstance(error, MetaError) and "The table has been modified" in str(error)


def is_certain(error: Exception) -> bool:
    """Whether a failed call, if it had no effect yet, will never have one.

    Other errors may come from a database whose answer the metastore lost.
    """
    if isinstance(error, Unanswerable):
        return error.is_unknown_call
    if isinstance(error, MetaError):
        # The latter is about the storage, which a metastore checks first.
        return is_modified(error) or str(error).startswith("Got exception: ")
    return isinstance(error, RemoteError)


def _unknown(metastore: Metastore, what: str, why: object) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"catalog {metastore.catalog}: its Hive Metastore failed during the attempt to {what}; it "
        f"is unknown whether that succeeded: {why}"
    )
