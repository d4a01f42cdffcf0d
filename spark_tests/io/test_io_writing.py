"""Files are written, created exclusively and deleted."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from processes import CONTEXT

from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.io import exclusive
from icebergds.io.fileio import FileIO
from icebergds.io.lock_file import hold_lock_file

_NAMES = ["plain", "with space", "p%20q", "100%", "x#1?y=z", "a[1]*", "über"]


@pytest.fixture(params=["local", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A directory that is not there yet."""
    if request.param == "local":
        yield str(tmp_path / "new")
        return
    yield f"memory:/{tmp_path}"
    fs = fsspec.filesystem("memory")
    if fs.exists(str(tmp_path)):
        fs.rm(str(tmp_path), recursive=True)


# Writing.


@pytest.mark.parametrize("name", _NAMES)
def test_what_was_written_is_read_by_the_same_name(root: str, name: str) -> None:
    io = FileIO()
    location = f"{root}/{name}/{name}.bin"
    io.write(location, b"one")
    assert io.read_bytes(location) == b"one"
    assert io.list(f"{root}/{name}") == [f"{name}.bin"]
    io.write(location, b"second")
    assert io.read_bytes(location) == b"second"


def test_streams_are_written_where_no_directory_was(root: str) -> None:
    io = FileIO()
    location = f"{root}/a/b/x.parquet"
    with io.open_output(location) as stream:
        pq.write_table(pa.table({"id": [1, 2, 3]}), stream)
    assert pq.read_table(pa.BufferReader(io.read_bytes(location)))["id"].to_pylist() == [1, 2, 3]
    assert io.size(location) == len(io.read_bytes(location))


def test_a_reader_never_sees_half_a_local_file(tmp_path: Path) -> None:
    io = FileIO()
    location = str(tmp_path / "f")
    contents = (b"a" * 100_000, b"b" * 200_000)
    io.write(location, contents[0])
    done = threading.Event()

    def replace_again_and_again() -> None:
        for i in range(200):
            io.write(location, contents[i % 2])
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_again_and_again)
        while not done.is_set() and not writing.done():
            assert io.read_bytes(location) in contents
        writing.result()
    assert os.listdir(tmp_path) == ["f"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="Is a directory"):
        FileIO().write(str(tmp_path / "d"), b"x")
    assert os.listdir(tmp_path) == ["d"]


# Creating.


def test_a_file_is_created_once(root: str) -> None:
    io = FileIO()
    io.create(f"{root}/a/f#1", b"first")
    with pytest.raises(AlreadyExistsError, match="f#1"):
        io.create(f"{root}/a/f#1", b"second")
    assert io.read_bytes(f"{root}/a/f#1") == b"first"
    assert io.list(f"{root}/a") == ["f#1"]


def test_of_many_threads_one_creates_a_file(root: str) -> None:
    for i in range(20):
        _race(f"{root}/f{i}")


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_files_are_created_once_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "link", _failing(code))
    for i in range(20):
        _race(str(tmp_path / f"f{i}"))
    assert sorted(os.listdir(tmp_path)) == sorted(f"f{i}" for i in range(20))


def test_a_lock_file_in_place_of_a_link_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="icebergds")
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))
    FileIO().create(str(tmp_path / "f"), b"x")
    assert f"{tmp_path}/f: no hard links there, a lock file is used" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="only there lock files name their origin")
def test_a_process_that_dies_while_it_creates_a_file_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = CONTEXT.Process(target=_die_while_creating, args=(str(tmp_path / "f"),))
    killed.start()
    killed.join()
    assert (tmp_path / ".f.claim").exists()
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))
    _race(str(tmp_path / "f"))
    assert not (tmp_path / ".f.claim").exists()


@pytest.mark.parametrize("content", [b"", b"b4c1a6e5-1f0e-4a3c-9d57-0d1b5ad3f9ce 64768"])
def test_a_lock_file_of_unknown_origin_is_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))
    (tmp_path / ".f.claim").write_bytes(content)
    with pytest.raises(AlreadyExistsError, match=r"\.f\.claim; .*delete it"):
        FileIO().create(str(tmp_path / "f"), b"x")
    assert os.listdir(tmp_path) == [".f.claim"]
    assert (tmp_path / ".f.claim").read_bytes() == content


def test_the_lock_file_of_a_live_process_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))
    with hold_lock_file(str(tmp_path / ".f.claim")):
        with pytest.raises(AlreadyExistsError, match="being created by another process"):
            FileIO().create(str(tmp_path / "f"), b"x")
        assert os.listdir(tmp_path) == [".f.claim"]
    FileIO().create(str(tmp_path / "f"), b"x")
    assert os.listdir(tmp_path) == ["f"]


def test_a_lock_file_that_another_process_took_over_and_deleted_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third process may already hold a new one."""
    lock_file = tmp_path / ".f.claim"
    with hold_lock_file(str(lock_file)):
        abandoned = lock_file.read_bytes()
    lock_file.write_bytes(abandoned)
    lock = fcntl.flock

    def lock_late(descriptor: int, operation: int) -> None:
        lock_file.unlink()
        lock_file.touch()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with pytest.raises(FileExistsError), hold_lock_file(str(lock_file)):
        pass
    assert lock_file.exists()


def test_other_failures_are_raised_as_they_are_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        FileIO().create(str(tmp_path / "f"), b"x")
    assert os.listdir(tmp_path) == []


def test_of_many_processes_one_creates_a_file(tmp_path: Path) -> None:
    with CONTEXT.Pool(3) as pool:
        won = pool.starmap(_create_many, [(str(tmp_path), i) for i in range(3)])
    assert sorted(name for names in won for name in names) == sorted(str(i) for i in range(50))
    for writer, names in enumerate(won):
        for name in names:
            assert (tmp_path / name).read_text() == f"{writer}" * 10_000


# What remote storages are asked for.


class _Storage(MemoryFileSystem):
    """Stands in for a storage's client: notes how it is asked, and may ignore conditions."""

    cachable = False
    honours = True
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    asked: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012
    one_at_a_time = threading.Lock()

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        self.asked.append((path, {**({"mode": mode} if mode == "create" else {}), **kwargs}))
        conditional = mode == "create" or kwargs.get("overwrite") is False
        with self.one_at_a_time:
            if conditional and self.honours and self.exists(path):
                raise FileExistsError(path)
            super().pipe_file(path, value)


# Nothing asks for Google's credentials.
_NO_GOOGLE = {"gcs.no-auth": "true"}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Storage]]:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Storage)
    monkeypatch.setattr(exclusive, "_PROVED", set())
    _Storage.honours = True
    for kept in (_Storage.asked, _Storage.store):
        kept.clear()
    yield _Storage
    _Storage.store.clear()


@pytest.mark.parametrize(
    ("location", "key", "condition"),
    [
        ("s3://b/d/f?x", "b/d/f?x", {"mode": "create"}),
        ("s3a://b/d/f%20", "b/d/f%20", {"mode": "create"}),
        ("gs://b/d/f#1", "b/d/f#1", {"mode": "create"}),
        ("abfss://c@acc.dfs.core.windows.net/d/f", "c/d/f", {"overwrite": False}),
    ],
)
def test_object_stores_are_asked_to_write_only_what_is_absent(
    storage: type[_Storage], location: str, key: str, condition: dict[str, Any]
) -> None:
    io = FileIO(_NO_GOOGLE)
    io.create(location, b"first")
    assert storage.asked[-1] == (key, condition)
    with pytest.raises(AlreadyExistsError):
        io.create(location, b"second")


def test_a_store_that_ignores_the_condition_is_found_out(storage: type[_Storage]) -> None:
    storage.honours = False
    with pytest.raises(UnsupportedFeatureError, match="overwrites files"):
        FileIO().create("s3://b/d/f", b"first")
    assert not FileIO().exists("s3://b/d/f")
    assert storage.store == {}


def test_a_store_is_tried_once(storage: type[_Storage]) -> None:
    FileIO().create("s3://b/d/f", b"1")
    tried = len(storage.asked)
    FileIO().create("s3://b/d/g", b"1")
    assert len(storage.asked) == tried + 1


class _Hdfs(_Storage):
    """Moves as Arrow's HDFS does: into directories, and over files."""

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        target = f"{path2}/{path1.rpartition('/')[2]}" if self.isdir(path2) else path2
        if self.exists(target):
            if not (self.isfile(path1) and self.isfile(path2)):
                raise OSError("HDFS rename failed")
            self.rm_file(target)
        self.store[target] = self.store.pop(path1)


def test_hdfs_moves_a_finished_file_to_its_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Hdfs)
    monkeypatch.setattr(exclusive, "_PROVED", set())
    _Hdfs.store.clear()
    io = FileIO()
    io.create("hdfs://nn/d/f", b"first")
    with pytest.raises(AlreadyExistsError):
        io.create("hdfs://nn/d/f", b"second")
    assert io.read_bytes("hdfs://nn/d/f") == b"first"
    assert io.list("hdfs://nn/d") == ["f"]


def test_storage_without_exclusive_create_is_named_with_what_to_use_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Storage)
    io = FileIO({"storage-schemes": "sftp"})
    for use in (io.require_create, lambda place: io.create(place, b"x")):
        with pytest.raises(UnsupportedFeatureError, match=r"'sftp'.*sql or rest"):
            use("sftp://host/dir/f")


# Deleting.


def test_deleting_what_is_missing_is_fine(root: str) -> None:
    io = FileIO()
    io.write(f"{root}/a", b"x")
    io.delete(f"{root}/a")
    io.delete(f"{root}/a")
    io.delete(f"{root}/nowhere/a")
    io.delete_all([f"{root}/a", f"{root}/nowhere/a"])
    assert not io.exists(f"{root}/a")


def test_exactly_the_files_named_are_deleted(root: str) -> None:
    io = FileIO()
    for name in (*_NAMES, "a1b", "a[1]xyz"):
        io.write(f"{root}/{name}", b"x")
    io.delete_all(f"{root}/{name}" for name in _NAMES)
    assert sorted(io.list(root)) == ["a1b", "a[1]xyz"]


def test_what_could_not_be_deleted_is_told_once_and_the_rest_is_deleted(tmp_path: Path) -> None:
    io = FileIO()
    for name in ("a", "d1/x", "d2/x", "z"):
        io.write(str(tmp_path / name), b"x")
    with pytest.raises(IcebergError, match=r"^2 of 4 files could not be deleted.*d1"):
        io.delete_all(str(tmp_path / name) for name in ("a", "d1", "d2", "z"))
    assert sorted(os.listdir(tmp_path)) == ["d1", "d2"]


class _S3(_Storage):
    """Answers requests to delete many objects as S3 does."""

    deletions: list[list[str]] = []  # noqa: RUF012

    def call_s3(self, method: str, *, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        assert (method, Delete["Quiet"]) == ("delete_objects", True)
        keys = [found["Key"] for found in Delete["Objects"]]
        self.deletions.append(keys)
        denied = [key for key in keys if "denied" in key]
        return {"Errors": [{"Key": k, "Code": "AccessDenied", "Message": "no"} for k in denied]}


def test_s3_deletes_a_thousand_files_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _S3)
    _S3.deletions.clear()
    locations = [f"s3://b/d/{i}*?" for i in range(1500)] + ["s3://c/d/denied"]
    with pytest.raises(IcebergError, match=r"^1 of 1501 files.*s3://c/d/denied: AccessDenied: no"):
        FileIO().delete_all(locations)
    assert [len(keys) for keys in _S3.deletions] == [1000, 500, 1]
    assert _S3.deletions[0][0] == "d/0*?"


def test_a_storage_that_does_not_delete_in_bulk_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError("no such request")

    caplog.set_level(logging.INFO, logger="icebergds")
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _S3)
    monkeypatch.setattr(_S3, "call_s3", refuse)
    FileIO().delete_all(["s3://b/d/x", "s3://b/d/y"])
    assert "2 files are deleted one by one: no such request" in caplog.text


def test_gcs_deletes_in_bulk_and_takes_no_name_for_a_pattern(storage: type[_Storage]) -> None:
    io = FileIO(_NO_GOOGLE)
    for name in ("a*", "ab", "c", "d?"):
        io.write(f"gs://b/{name}", b"x")
    io.delete_all(["gs://b/a*", "gs://b/c"])
    assert sorted(storage.store) == ["/b/ab", "/b/d?"]
    io.delete_all(["gs://b/missing", "gs://b/d?"])
    assert sorted(storage.store) == ["/b/ab"]


# Directories.


def test_only_empty_directories_are_removed(root: str) -> None:
    io = FileIO()
    io.make_directory(f"{root}/a/b")
    io.make_directory(f"{root}/a/b")
    assert io.is_directory(f"{root}/a/b")
    with pytest.raises(OSError):
        io.remove_empty_directory(f"{root}/a")
    io.remove_empty_directory(f"{root}/a/b")
    assert not io.exists(f"{root}/a/b")


def test_relative_locations_are_made_absolute(tmp_path: Path) -> None:
    io = FileIO(working_directory=str(tmp_path), location_map={"s3://b": "/data"})
    assert io.absolute("a/b") == f"{tmp_path}/a/b"
    assert io.absolute("s3://b/x") == "s3://b/x"
    assert io.absolute("file:/x") == "file:/x"


def _race(location: str) -> None:
    """Eight threads create one file: one succeeds, and its bytes are there."""
    gate = threading.Barrier(8)

    def attempt(i: int) -> bool:
        gate.wait()
        try:
            FileIO().create(location, f"{i}".encode() * 1000)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(8)))
    assert sum(won) == 1
    assert FileIO().read_bytes(location) == f"{won.index(True)}".encode() * 1000


def _create_many(directory: str, writer: int) -> list[str]:
    won = []
    for i in range(50):
        try:
            FileIO().create(f"{directory}/{i}", f"{writer}".encode() * 10_000)
        except AlreadyExistsError:
            continue
        won.append(str(i))
    return won


def _die_while_creating(path: str) -> None:
    os.link = _failing(errno.EPERM)
    os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    FileIO().create(path, b"x")


def _failing(code: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail
