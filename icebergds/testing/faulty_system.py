"""Injects faults below this package: into the operating system, SQLite and a client of a storage.

Files and databases are real. Only this package's own calls of the operating system are counted.
"""

from __future__ import annotations

import builtins
import errno
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import fsspec
import pyarrow as pa
from fsspec.implementations.memory import MemoryFileSystem
from sqlalchemy import Engine, event

from icebergds.io import exclusive, fileio, local_files, recursive_listing
from icebergds.testing.faults import Faults

DISK = OSError(errno.EIO, os.strerror(errno.EIO))
"""What a broken disk raises."""


@contextmanager
def faulty_system(faults: Faults) -> Iterator[None]:
    """Lets calls in the block fail as planned.

    Counted are `os.open`, `os.link` and so on, `open`, `file.write`, `OSFile`, `OSFile.read`,
    `OSFile.write`, `OSFile.close`, and `sqlite.connect`, `sqlite.execute`, `sqlite.commit`,
    `sqlite.rollback`, `sqlite.close`; of SQLite, an OSError becomes an error of its own.
    """
    system, arrow = _FaultyModule(os, _os_calls(faults)), _FaultyModule(pa, _arrow_calls(faults))

    def faulty_open(*args: Any, **named: Any) -> Any:
        return faults.around("open", lambda: builtins.open(*args, **named))

    def connect(_: Any, __: Any, args: Any, named: Any) -> Any:
        factory = _connections(faults)
        return _sql(faults, "connect", lambda: sqlite3.connect(*args, factory=factory, **named))

    event.listen(Engine, "do_connect", connect)
    try:
        with (
            mock.patch.object(fileio, "os", system),
            mock.patch.object(local_files, "os", system),
            mock.patch.object(exclusive, "os", system),
            mock.patch.object(recursive_listing, "os", system),
            mock.patch.object(fileio, "pa", arrow),
            mock.patch.object(local_files, "pa", arrow),
            mock.patch.object(fileio, "open", faulty_open, create=True),
        ):
            yield
    finally:
        event.remove(Engine, "do_connect", connect)


@contextmanager
def faulty_client(faults: Faults) -> Iterator[None]:
    """Lets calls of fsspec's storage in memory fail as planned, in the block.

    Counted are `ls`, `cat_file`, `pipe_file` and so on, by their names.
    """

    def counted(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **named: Any) -> Any:
            done = getattr(MemoryFileSystem, name)
            return faults.around(name, lambda: done(self, *args, **named))

        return call

    client = type("FaultyClient", (MemoryFileSystem,), {n: counted(n) for n in _CLIENT_CALLS})
    with mock.patch.object(fsspec, "get_filesystem_class", return_value=client):
        yield


_CLIENT_CALLS = (
    *("ls", "find", "exists", "isdir", "size", "cat_file", "pipe_file", "_open"),
    *("rm_file", "makedirs", "rmdir"),
)
_OS_CALLS = (
    *("open", "link", "replace", "rename", "unlink"),
    *("listdir", "scandir", "stat", "rmdir", "makedirs", "fsync"),
)


class _FaultyModule:
    """A module some of whose functions are replaced."""

    def __init__(self, module: Any, replaced: dict[str, Any]) -> None:
        self._module = module
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced[name] if name in self._replaced else getattr(self._module, name)


def _os_calls(faults: Faults) -> dict[str, Any]:
    def counted(name: str) -> Callable[..., Any]:
        call = getattr(os, name)
        return lambda *args, **named: faults.around(f"os.{name}", lambda: call(*args, **named))

    def fdopen(*args: Any) -> Any:
        return _FaultyFile(os.fdopen(*args), faults)

    return {**{name: counted(name) for name in _OS_CALLS}, "fdopen": fdopen}


@dataclass(slots=True)
class _FaultyFile:
    """A file of Python that is open for writing."""

    file: Any
    faults: Faults

    def __enter__(self) -> _FaultyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> None:
        self.faults.around(
            "file.write",
            lambda: self.file.write(data),
            lambda: self.file.write(data[: len(data) // 2]),
        )

    def flush(self) -> None:
        self.file.flush()

    def fileno(self) -> int:
        return int(self.file.fileno())


def _arrow_calls(faults: Faults) -> dict[str, Any]:
    def os_file(path: str, mode: str = "r") -> pa.NativeFile:
        file = faults.around("OSFile", lambda: pa.OSFile(path, mode))
        return pa.PythonFile(_FaultyNativeFile(file, faults), mode[0])

    return {"OSFile": os_file}


@dataclass(slots=True)
class _FaultyNativeFile:
    """A file of Arrow, as a Python file."""

    file: pa.NativeFile
    faults: Faults

    @property
    def closed(self) -> bool:
        return bool(self.file.closed)

    def read(self, size: int = -1) -> bytes:
        return self.faults.around("OSFile.read", lambda: bytes(self.file.read(size)))

    def write(self, data: bytes) -> int:
        return self.faults.around("OSFile.write", lambda: int(self.file.write(data)))

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self.file.seek(offset, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.faults.around("OSFile.close", self.file.close)


def _sql(faults: Faults, name: str, call: Callable[[], Any]) -> Any:
    try:
        return faults.around(f"sqlite.{name}", call)
    except OSError as error:
        raise sqlite3.OperationalError("disk I/O error") from error


def _connections(faults: Faults) -> type[sqlite3.Connection]:
    class FaultyCursor(sqlite3.Cursor):
        def execute(self, *args: Any) -> Any:
            return _sql(faults, "execute", lambda: super(FaultyCursor, self).execute(*args))

    class FaultyConnection(sqlite3.Connection):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self.cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()

        def cursor(self, factory: Any = FaultyCursor) -> Any:
            cursor = super().cursor(factory)
            self.cursors.add(cursor)
            return cursor

        def commit(self) -> None:
            _sql(faults, "commit", super().commit)

        def rollback(self) -> None:
            _sql(faults, "rollback", super().rollback)

        def close(self) -> None:
            # Closed in any case: an open connection would keep its locks, and so would an open
            # cursor that some frame of an error holds.
            for cursor in self.cursors:
                cursor.close()
            super().close()
            _sql(faults, "close", lambda: None)

    return FaultyConnection
