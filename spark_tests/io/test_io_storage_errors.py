"""Failures of a storage arrive as StorageError, with what was done, where, and the cause."""

from __future__ import annotations

import errno
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from icebergds import load_table
from icebergds.errors import AlreadyExistsError, IcebergError, MissingFileError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import faulty_system

_Call = Callable[[FileIO, str], object]

_CALLS: dict[str, tuple[_Call, str]] = {
    "read": (lambda io, path: io.read_bytes(path), "reading"),
    "open": (lambda io, path: io.open(path), "opening"),
    "exists": (lambda io, path: io.exists(path), "looking for"),
    "is_directory": (lambda io, path: io.is_directory(path), "looking for"),
    "size": (lambda io, path: io.size(path), "looking for"),
    "list": (lambda io, path: io.list(path), "listing"),
    "write": (lambda io, path: io.write(path, b"x"), "writing"),
    "open_output": (lambda io, path: io.open_output(path), "creating"),
    "create": (lambda io, path: io.create(path, b"x"), "creating"),
    "delete": (lambda io, path: io.delete(path), "deleting"),
    "delete_all": (lambda io, path: io.delete_all([path]), ""),
    "make_directory": (lambda io, path: io.make_directory(path), "creating"),
    "remove_empty_directory": (lambda io, path: io.remove_empty_directory(path), "removing"),
}


def _failed(call: _Call, path: str) -> StorageError:
    with pytest.raises(StorageError) as raised:
        call(FileIO(), path)
    error = raised.value
    assert isinstance(error, IcebergError)
    assert isinstance(error, OSError)
    assert error.location == path
    assert path in str(error)
    assert error.__cause__ is not None
    assert not error.outcome_unknown
    return error


@pytest.mark.parametrize("name", _CALLS)
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ENOSPC])
def test_a_failure_of_the_operating_system(tmp_path: Path, name: str, code: int) -> None:
    path = tmp_path / "f"
    if name == "list":
        path.mkdir()
    elif name != "create":
        path.write_text("")
    call, operation = _CALLS[name]
    with faulty_system(Faults([Fault(0, When.BEFORE, OSError(code, "broken"))], None)):
        error = _failed(call, str(path))
    assert error.errno == code
    assert error.operation == operation
    assert f"[Errno {code}] broken" in str(error)


class _Away(MemoryFileSystem):
    """A storage whose client raises an error that is not one of the operating system."""

    store: dict[str, Any] = {}  # noqa: RUF012
    error: Exception = RuntimeError("no credentials")

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise self.error

    cat_file = _open = exists = isdir = size = ls = pipe_file = rm_file = _fail
    makedirs = mkdir = rmdir = info = _fail


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> type[_Away]:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Away)
    return _Away


@pytest.mark.parametrize("name", _CALLS)
def test_a_failure_of_a_client_of_remote_storage(name: str, away: type[_Away]) -> None:
    error = _failed(_CALLS[name][0], "memory://bucket/f")
    assert error.__cause__ is away.error
    assert "RuntimeError: no credentials" in str(error)
    assert error.errno is None


@pytest.mark.parametrize("name", _CALLS)
def test_a_client_that_does_not_understand_an_answer(
    name: str, away: type[_Away], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(away, "error", json.JSONDecodeError("Expecting value", "<html>", 0))
    error = _failed(_CALLS[name][0], "memory://bucket/f")
    assert "JSONDecodeError: Expecting value" in str(error)


def test_a_table_of_a_storage_with_malformed_settings_may_exist() -> None:
    pytest.importorskip("s3fs")
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}
    with pytest.raises(StorageError, match="doesn't match a supported format"):
        load_table("s3://bucket/t", properties={**keys, "s3.region": "eu central!"})


def test_what_is_missing_or_there_already_is_another_error(tmp_path: Path) -> None:
    io = FileIO()
    for call in (io.read_bytes, io.open, io.size, io.list):
        with pytest.raises(MissingFileError):
            call(str(tmp_path / "f"))
    (tmp_path / "f").write_text("")
    with pytest.raises(AlreadyExistsError):
        io.create(str(tmp_path / "f"), b"")


def test_a_file_in_place_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("")
    assert not FileIO().exists(f"{tmp_path}/d/f")
    for name in ("write", "open_output", "create", "make_directory"):
        assert _failed(_CALLS[name][0], f"{tmp_path}/d/f").errno == errno.ENOTDIR


class _Torn(MemoryFileSystem):
    """A storage that breaks while a file is read or written."""

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file = super()._open(path, mode, **options)
        file.read = file.write = self._fail
        return file

    def _fail(self, *_: Any) -> Any:
        raise TimeoutError


@pytest.fixture
def torn(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    FileIO().write("memory://torn/f", b"12345")
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Torn)
    yield "memory://torn/f"
    MemoryFileSystem.store.clear()


def test_a_remote_file_that_breaks_while_it_is_read(torn: str) -> None:
    with (
        FileIO().open(torn) as file,
        pytest.raises(StorageError, match=f"reading {torn} failed: TimeoutError"),
    ):
        file.read(2)


def test_a_remote_file_that_breaks_while_it_is_written(torn: str) -> None:
    file = FileIO().open_output(torn)
    with pytest.raises(StorageError, match=f"writing {torn} failed: TimeoutError"):
        file.write(b"abc")


def test_it_tells_what_became_of_the_statement_once() -> None:
    error = StorageError("disk full", operation="writing the manifest", location="/t/m.avro")
    for outcome in ("nothing was committed", "its files were deleted", "nothing was committed"):
        error.add_outcome(outcome)
    assert str(error) == (
        "writing the manifest /t/m.avro failed: disk full; nothing was committed; "
        "its files were deleted"
    )


def test_it_is_the_same_in_another_process() -> None:
    error = StorageError("disk full", operation="writing", location="/t/f", errno=errno.ENOSPC)
    error.add_outcome("nothing was committed")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.errno) == (StorageError, str(error), errno.ENOSPC)
    assert (copy.operation, copy.location) == ("writing", "/t/f")
