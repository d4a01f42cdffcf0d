"""Commits of a Hive catalog wait for the lock of a table in the metastore, and release it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hive_server import HiveServer
from hive_tables import (
    TABLE,
    create_table,
    metadata_files,
    metastore,
    open_hive_catalog,
    set_property,
)

from icebergds.catalog.hive.calls import LOCK, SHOW_LOCKS, UNLOCK
from icebergds.catalog.hive.locks import LockOptions, table_lock
from icebergds.catalog.hive.messages import (
    EXCLUSIVE,
    TABLE_LEVEL,
    LockComponent,
    LockId,
    LockRequest,
    LockState,
    ShowLocksRequest,
    ShownLock,
)
from icebergds.catalog.hive.pointer import HivePointer
from icebergds.errors import CommitConflictError, CommitStateUnknownError
from icebergds.spec.updates.table_updates import SetProperties

_IMPATIENT = {"iceberg.hive.lock-timeout-ms": "300"}


def _lock(server: HiveServer, table: str = "t") -> int:
    """Locks a table as another writer does, who then does nothing."""
    component = LockComponent(EXCLUSIVE, TABLE_LEVEL, "db", table)
    with metastore(server).connect() as connection:
        request = LockRequest((component,), "someone", "elsewhere", "another writer")
        lock = connection.tell(LOCK, request)
    assert lock.state == LockState.ACQUIRED
    return lock.lock_id


def _unlock(server: HiveServer, lock_id: int) -> None:
    with metastore(server).connect() as connection:
        connection.tell(UNLOCK, LockId(lock_id))


def _locks(server: HiveServer) -> list[ShownLock]:
    with metastore(server).connect() as connection:
        return list(connection.ask(SHOW_LOCKS, ShowLocksRequest(*TABLE)).locks)


@contextmanager
def _locked(server: HiveServer) -> Iterator[int]:
    lock_id = _lock(server)
    try:
        yield lock_id
    finally:
        _unlock(server, lock_id)


def _soon(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Timer(0.5, action)
    thread.start()
    return thread


def test_a_commit_waits_for_the_lock_of_another_writer(hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path)
    create_table(catalog)
    lock_id = _lock(hive)
    started = time.monotonic()
    release = _soon(lambda: _unlock(hive, lock_id))
    assert set_property(catalog).metadata.properties["k"] == "v"
    assert time.monotonic() - started >= 0.5
    release.join()
    assert _locks(hive) == []


def test_a_commit_that_waits_in_vain_says_who_has_the_lock(
    hive: HiveServer, tmp_path: Path
) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path, **_IMPATIENT)
    created = create_table(catalog)
    with _locked(hive) as lock_id:
        with pytest.raises(
            CommitConflictError,
            match=rf"lake\.db\.t was not changed: .* longer than 0\.3 s: lock {lock_id} of "
            r"someone@elsewhere \(another writer.*expires by itself after .*hive\.txn\.timeout",
        ):
            set_property(catalog)
        # Its own, for which it waited, is not left behind.
        assert [lock.lock_id for lock in _locks(hive)] == [lock_id]
    assert len(metadata_files(created)) == 1
    assert set_property(catalog).metadata.properties["k"] == "v"


def test_a_lock_is_looked_at_as_often_as_asked(hive: HiveServer, tmp_path: Path) -> None:
    options = {
        "lock-check-min-wait-time": "0.01",
        "lock-check-max-wait-time": "0.02",
        "lock-check-retries": "2",
    }
    catalog = open_hive_catalog(hive.uri, tmp_path, **options)
    create_table(catalog)
    with _locked(hive), pytest.raises(CommitConflictError, match="longer than 2 checks"):
        set_property(catalog)


def test_a_commit_does_not_wait_for_a_lock_that_is_of_no_use(
    hive: HiveServer, tmp_path: Path
) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path)
    unlocked = open_hive_catalog(
        hive.uri, tmp_path, **{"iceberg.engine.hive.lock-enabled": "false"}
    )
    base = create_table(catalog)
    with _locked(hive):
        overtake = _soon(lambda: set_property(unlocked, "other"))
        with pytest.raises(CommitConflictError, match="it is no longer at"):
            catalog.operations(TABLE).commit(base, [], [SetProperties({"k": "v"})])
        overtake.join()


def test_a_table_says_that_it_is_not_locked(hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path, **_IMPATIENT)
    create_table(catalog, {"engine.hive.lock-enabled": "false"})
    with _locked(hive):
        assert set_property(catalog).metadata.properties["k"] == "v"


def test_a_table_says_that_it_is_locked(hive: HiveServer, tmp_path: Path) -> None:
    options = {**_IMPATIENT, "iceberg.engine.hive.lock-enabled": "false"}
    catalog = open_hive_catalog(hive.uri, tmp_path, **options)
    create_table(catalog, {"engine.hive.lock-enabled": "true"})
    with _locked(hive), pytest.raises(CommitConflictError):
        set_property(catalog)


def test_other_tables_are_not_locked(hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path, **_IMPATIENT)
    create_table(catalog)
    lock_id = _lock(hive, "u")
    assert set_property(catalog).metadata.properties["k"] == "v"
    _unlock(hive, lock_id)


def test_a_rename_waits_for_the_lock(hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(hive.uri, tmp_path, **_IMPATIENT)
    create_table(catalog)
    with _locked(hive), pytest.raises(CommitConflictError):
        catalog.rename(TABLE, ("db", "u"))
    catalog.rename(TABLE, ("db", "u"))
    assert catalog.list_tables(("db",)) == [("db", "u")]


def test_a_lock_is_kept_by_heartbeats(hive: HiveServer) -> None:
    options = LockOptions(10, 0.05, 0.05, None, heartbeat_s=0.2)
    place = metastore(hive)
    with (
        place.connect() as connection,
        table_lock(connection, place, "db", "t", options, bool) as lock,
    ):
        first = _locks(hive)[0].last_heartbeat_ms
        time.sleep(1)
        assert (_locks(hive)[0].last_heartbeat_ms or 0) > (first or 0)
        assert lock.failure is None


def test_a_lock_that_was_lost_is_noticed(hive: HiveServer) -> None:
    options = LockOptions(10, 0.05, 0.05, None, heartbeat_s=0.1)
    place = metastore(hive)
    with (
        place.connect() as connection,
        table_lock(connection, place, "db", "t", options, bool) as lock,
    ):
        _unlock(hive, lock.lock_id)
        time.sleep(1)
        assert lock.failure is not None


def test_a_commit_whose_lock_was_lost_meanwhile_is_unknown(
    hive: HiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_hive_catalog(
        hive.uri, tmp_path, **{"iceberg.hive.lock-heartbeat-interval-ms": "100"}
    )
    created = create_table(catalog)
    alter = HivePointer._alter

    def altered_and_slow(self: HivePointer, *arguments: object) -> None:
        alter(self, *arguments)  # type: ignore[arg-type]
        _unlock(hive, _locks(hive)[0].lock_id)
        time.sleep(1)

    monkeypatch.setattr(HivePointer, "_alter", altered_and_slow)
    with pytest.raises(CommitStateUnknownError, match=r"its lock .* may have expired"):
        set_property(catalog)
    assert len(metadata_files(created)) == 2


def test_a_lock_is_released_if_the_change_fails(hive: HiveServer) -> None:
    options = LockOptions(10, 0.05, 0.05, None, 60)
    place = metastore(hive)
    with (
        pytest.raises(ZeroDivisionError),
        place.connect() as connection,
        table_lock(connection, place, "db", "t", options, bool),
    ):
        raise ZeroDivisionError
    assert _locks(hive) == []


def test_a_forked_process_does_not_inherit_the_turn_of_a_thread(hive: HiveServer) -> None:
    options = LockOptions(1, 0.05, 0.05, None, 60)
    place = metastore(hive)
    with place.connect() as connection, table_lock(connection, place, "db", "t", options, bool):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with (
                    place.connect() as other,
                    table_lock(other, place, "db", "t", options, bool),
                ):
                    pass
            except CommitConflictError as error:
                # The metastore's lock, and not the thread's turn, is what it waited for.
                code = 0 if "another writer" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
