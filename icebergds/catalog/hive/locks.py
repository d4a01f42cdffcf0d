"""Locks a table in the Hive Metastore during a change, as other writers do."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from icebergds.catalog.hive.calls import (
    CHECK_LOCK,
    HEARTBEAT,
    LOCK,
    SHOW_LOCKS,
    UNLOCK,
    NoSuchLock,
    RemoteError,
)
from icebergds.catalog.hive.connection import AnswerLost, Connection, Metastore
from icebergds.catalog.hive.entries import current_user
from icebergds.catalog.hive.messages import (
    EXCLUSIVE,
    TABLE_LEVEL,
    LockComponent,
    LockId,
    LockRequest,
    LockResponse,
    LockState,
    ShowLocksRequest,
    ShownLock,
)
from icebergds.errors import CommitConflictError, IcebergError
from icebergds.spec.values.dates import now_ms

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockOptions:
    """How to wait for locks and keep them.

    Attributes:
        timeout_s: how long to wait for a lock that another writer has.
        min_wait_s: initial wait between two checks of the lock.
        max_wait_s: maximum wait between two checks.
        checks: maximum number of checks; None for as many as the timeout allows.
        heartbeat_s: interval of the heartbeats that keep a lock.
    """

    timeout_s: float
    min_wait_s: float
    max_wait_s: float
    checks: int | None
    heartbeat_s: float


class Lock:
    """A lock that this process holds.

    Attributes:
        lock_id: the metastore's id of the lock.
    """

    def __init__(self, lock_id: int) -> None:
        self.lock_id = lock_id
        self._ended = threading.Event()
        self._failure: Exception | None = None

    @property
    def failure(self) -> Exception | None:
        """Why the lock may have expired; None if it has not."""
        return self._failure

    def start(self, metastore: Metastore, interval_s: float) -> None:
        """Starts to send heartbeats, the first after half of the interval."""
        threading.Thread(
            target=self._beat,
            args=(metastore, interval_s),
            name=f"hive-lock-{self.lock_id}",
            daemon=True,
        ).start()

    def end(self) -> None:
        self._ended.set()

    def _beat(self, metastore: Metastore, interval_s: float) -> None:
        wait_s = interval_s / 2
        while not self._ended.wait(wait_s):
            wait_s = interval_s
            try:
                with metastore.connect() as connection:
                    connection.tell(HEARTBEAT, LockId(self.lock_id))
            except Exception as error:
                if not self._ended.is_set():
                    self._failure = error
                return


@contextmanager
def table_lock(
    connection: Connection,
    metastore: Metastore,
    database: str,
    table: str,
    options: LockOptions,
    check: Callable[[], None],
) -> Iterator[Lock]:
    """Holds the exclusive lock of a table in the block, and releases it at the end.

    Args:
        check: called before requesting the lock and at each check of it; raises an error if the
            lock is no longer useful.

    Raises:
        CommitConflictError: another writer held it for longer than the timeout.
        StorageError: the metastore failed.
        IcebergError: that of `check`.
    """
    where = f"{metastore.catalog}.{database}.{table}"
    with _turn(metastore, database, table, options, where):
        check()
        lock = Lock(_acquire(connection, metastore, database, table, options, where, check))
        lock.start(metastore, options.heartbeat_s)
        try:
            yield lock
        finally:
            lock.end()
            _release(connection, lock.lock_id, where)


# Per process id, because a fork may have happened while another thread held a lock.
_turns: WeakValueDictionary[tuple[object, ...], _Turn] = WeakValueDictionary()
_turns_lock = threading.Lock()


class _Turn:
    """Serialises the threads of a process, at no cost to the metastore."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@contextmanager
def _turn(
    metastore: Metastore, database: str, table: str, options: LockOptions, where: str
) -> Iterator[None]:
    key = (os.getpid(), metastore.endpoints, database, table)
    with _turns_lock:
        turn = _turns.setdefault(key, _Turn())
    if not turn.lock.acquire(timeout=options.timeout_s):
        raise CommitConflictError(
            f"table {where} was not changed: another thread of this process changes it for longer "
            f"than {options.timeout_s:g} s"
        )
    try:
        yield
    finally:
        turn.lock.release()


def _acquire(
    connection: Connection,
    metastore: Metastore,
    database: str,
    table: str,
    options: LockOptions,
    where: str,
    check: Callable[[], None],
) -> int:
    requested = _request(connection, metastore, database, table, where)
    lock_id, state = requested.lock_id, requested.state
    is_acquired = False
    try:
        deadline, wait_s, checks = time.monotonic() + options.timeout_s, options.min_wait_s, 0
        while state == LockState.WAITING:
            if time.monotonic() >= deadline or checks == options.checks:
                raise _timeout(connection, database, table, where, lock_id, options)
            time.sleep(min(wait_s, max(0.0, deadline - time.monotonic())))
            wait_s, checks = min(wait_s * 1.5, options.max_wait_s), checks + 1
            state = connection.tell(CHECK_LOCK, LockId(lock_id)).state
            if state == LockState.WAITING:
                check()
        if state != LockState.ACQUIRED:
            raise CommitConflictError(
                f"table {where} was not changed: the metastore gave its lock {lock_id} the state "
                f"{LockState(state).name}"
            )
        is_acquired = True
    except (RemoteError, AnswerLost) as error:
        raise metastore.failure(f"failed while waiting for lock {lock_id}", error) from error
    finally:
        if not is_acquired:
            _release(connection, lock_id, where)
    return lock_id


def _request(
    connection: Connection, metastore: Metastore, database: str, table: str, where: str
) -> LockResponse:
    """Requests the lock; if the answer is lost, finds it by the unique name in the request."""
    agent = f"Iceberg-{uuid.uuid4()}"
    component = LockComponent(EXCLUSIVE, TABLE_LEVEL, database, table)
    request = LockRequest((component,), current_user(), socket.gethostname(), agent)
    try:
        return connection.tell(LOCK, request)
    except (RemoteError, AnswerLost) as error:
        try:
            for lock in _locks(connection, database, table):
                if lock.agent == agent:
                    return LockResponse(lock.lock_id, lock.state)
        except IcebergError as other:
            _LOG.warning(
                "table %s: a lock of agent %s may remain in the metastore: %s", where, agent, other
            )
        raise metastore.failure(f"failed to lock table {where}", error) from error


def _release(connection: Connection, lock_id: int, where: str) -> None:
    """Releases a lock; if that fails, it expires in the metastore without heartbeats."""
    for attempt in range(2):
        try:
            connection.tell(UNLOCK, LockId(lock_id))
            return
        except NoSuchLock:
            return
        except Exception as error:
            if attempt:
                _LOG.warning("table %s: %s; %s", where, error, _remedy(lock_id))


def _timeout(
    connection: Connection,
    database: str,
    table: str,
    where: str,
    own: int,
    options: LockOptions,
) -> CommitConflictError:
    """The error for a lock that did not become free, with its holders."""
    try:
        others = [lock for lock in _locks(connection, database, table) if lock.lock_id != own]
    except IcebergError:
        others = []
    holding = [lock for lock in others if lock.state == LockState.ACQUIRED] or others
    owner = f": {_shown(holding[0])}" if holding else ""
    remedy = f"; if that writer is gone, {_remedy(holding[0].lock_id)}" if holding else ""
    limit = f"{options.timeout_s:g} s" if options.checks is None else f"{options.checks} checks"
    return CommitConflictError(
        f"table {where} was not changed: another writer has its lock for longer than {limit}"
        f"{owner}{remedy}"
    )


def _remedy(lock_id: int) -> str:
    return (
        f"lock {lock_id} expires by itself after the metastore's hive.txn.timeout (300 s by "
        f"default) without a heartbeat, or an administrator removes it: DELETE FROM HIVE_LOCKS "
        f"WHERE HL_LOCK_EXT_ID = {lock_id} in the metastore's database"
    )


def _locks(connection: Connection, database: str, table: str) -> list[ShownLock]:
    found = connection.ask(SHOW_LOCKS, ShowLocksRequest(database, table)).locks
    return [lock for lock in found if (lock.database, lock.table) == (database, table)]


def _shown(lock: ShownLock) -> str:
    heartbeat = ""
    if lock.last_heartbeat_ms:
        seconds = max(0, now_ms() - lock.last_heartbeat_ms) // 1000
        heartbeat = f", last heartbeat {seconds} s ago"
    return f"lock {lock.lock_id} of {lock.user}@{lock.host} ({lock.agent}{heartbeat})"
