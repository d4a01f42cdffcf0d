"""All files below a directory are listed with their sizes and times, whatever the storage."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from icebergds.errors import InvalidOptionError, MissingFileError, StorageError
from icebergds.io import recursive_listing
from icebergds.io.fileio import FileIO

if TYPE_CHECKING:
    from s3_server import S3Server

NAMES = ["a", "deep/er/b", "with space/p%20q", "x#1?y=z/[1]*", "über/東京", ".hidden", "_h/c"]


def listed(location: str, io: FileIO | None = None) -> dict[str, tuple[int | None, int | None]]:
    """Times and sizes by location; a location that comes twice is an error."""
    rows: dict[str, tuple[int | None, int | None]] = {}
    for part in (io or FileIO()).list_recursively(location):
        for row in part.files.to_pylist():
            assert row["location"] not in rows
            rows[row["location"]] = (row["modified_ms"], row["size_in_bytes"])
    return rows


@pytest.fixture
def memory() -> Iterator[str]:
    """A directory of its own in memory."""
    root = f"memory://listing/{time.time_ns()}"
    yield root
    MemoryFileSystem().rm(root.removeprefix("memory:/"), recursive=True)


class Client(MemoryFileSystem):
    """A client whose files have the members that others give them."""

    told: Mapping[str, Any]

    def find(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return {
            name: {"name": name, "size": 1, "type": "file", **self.told}
            for name in super().find(path)
        }


def modified_as_told(root: str, **told: Any) -> int | None:
    """The time of a file of which a client tells so much."""
    FileIO().write(f"{root}/f", b"x")
    client = type("ToldClient", (Client,), {"told": told})
    with mock.patch.object(fsspec, "get_filesystem_class", return_value=client):
        return listed(root)[f"{root}/f"][0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("slash", ["", "/"])
def test_local_files_are_listed_with_time_and_size(tmp_path: Path, name: str, slash: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    os.utime(path, ns=(0, 1_700_000_000_123_999_999))
    assert listed(f"{tmp_path}{slash}") == {str(path): (1_700_000_000_123, 5)}


def test_many_files_and_directories_come_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recursive_listing, "_BATCH_ROWS", 7)
    monkeypatch.setattr(recursive_listing, "_DIRECTORIES", 3)
    expected = set()
    for number in range(120):
        directory = tmp_path / f"d{number % 12}" / f"e{number % 40}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / str(number)).touch()
        expected.add(str(directory / str(number)))
    parts = list(FileIO().list_recursively(str(tmp_path)))
    assert {row for part in parts for row in part.files["location"].to_pylist()} == expected
    assert max(len(part.files) for part in parts) <= 7


def test_symbolic_links_are_neither_followed_nor_listed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "directory").symlink_to(outside)
    (inside / "file").symlink_to(outside / "precious")
    (inside / "own").touch()
    assert set(listed(str(inside))) == {f"{inside}/own"}
    # The directory that is asked for may be a link.
    link = tmp_path / "link"
    link.symlink_to(inside)
    assert set(listed(str(link))) == {f"{link}/own"}


def test_pipes_and_names_that_are_not_text_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"\xff")).touch()
    assert listed(str(tmp_path)) == {}


def test_a_directory_that_vanishes_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "f").touch()
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("gone"):
            raise FileNotFoundError(path)
        return real(path)

    with mock.patch("icebergds.io.recursive_listing.os.scandir", scandir):
        assert set(listed(str(tmp_path))) == {f"{tmp_path}/f"}


def test_a_directory_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    with (
        mock.patch("icebergds.io.recursive_listing.os.scandir", scandir),
        pytest.raises(StorageError, match="Permission denied"),
    ):
        listed(str(tmp_path))


def test_a_missing_local_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        listed(f"{tmp_path}/missing")


def test_files_in_memory_are_listed(memory: str) -> None:
    before = int(time.time() * 1000)
    for name in NAMES:
        FileIO().write(f"{memory}/{name}", b"123")
    FileIO().write(f"{memory}-sibling/x", b"")
    found = listed(memory)
    assert set(found) == {f"{memory}/{name}" for name in NAMES}
    for modified, size in found.values():
        assert modified is not None
        assert before - 1 <= modified <= time.time() * 1000
        assert size == 3


MOMENT = datetime(2026, 1, 31, 12, 0, 0, 5000, UTC)
MOMENT_MS = int(MOMENT.timestamp() * 1000)


@pytest.mark.parametrize(
    "told",
    [
        {"LastModified": MOMENT},  # s3fs
        {"last_modified": MOMENT, "creation_time": datetime(2020, 1, 1, tzinfo=UTC)},  # adlfs
        {"updated": "2026-01-31T12:00:00.005Z"},  # gcsfs
        {"mtime": MOMENT, "updated": "2026-01-31T12:00:00.005Z"},  # gcsfs
        {"mtime": MOMENT},  # hdfs
        {"mtime": MOMENT.timestamp(), "created": 1.0},  # local, sftp
        {"created": MOMENT.timestamp()},  # memory
        {"modified": MOMENT.replace(tzinfo=None)},
        {"mtime": MOMENT, "LastModified": datetime(2020, 1, 1, tzinfo=UTC)},
    ],
)
def test_the_time_is_found_under_its_names(memory: str, told: Mapping[str, Any]) -> None:
    assert modified_as_told(memory, **told) == MOMENT_MS


@pytest.mark.parametrize(
    "told", [{}, {"mtime": None}, {"updated": "soon"}, {"mtime": True}, {"modified": object()}]
)
def test_a_file_without_a_time_has_none(memory: str, told: Mapping[str, Any]) -> None:
    assert modified_as_told(memory, **told) is None


def test_the_time_of_one_file_is_told(tmp_path: Path, memory: str) -> None:
    path = tmp_path / "f"
    path.touch()
    os.utime(path, (0, 1_700_000_000))
    assert FileIO().modified_ms(str(path)) == 1_700_000_000_000
    assert FileIO().modified_ms(str(tmp_path)) is None
    (tmp_path / "link").symlink_to(path)
    assert FileIO().modified_ms(f"{tmp_path}/link") is None
    FileIO().write(f"{memory}/f", b"")
    assert FileIO().modified_ms(f"{memory}/f") is not None
    with pytest.raises(MissingFileError):
        FileIO().modified_ms(f"{tmp_path}/missing")


def test_each_file_that_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "directory").mkdir()
    locations = [f"{tmp_path}/a", f"{tmp_path}/directory", f"{tmp_path}/missing"]
    failed = FileIO().delete_each(locations)
    assert list(failed) == [f"{tmp_path}/directory"]
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("delete", [FileIO.delete_all, FileIO.delete_each])
def test_locations_to_delete_are_mapped_once(tmp_path: Path, delete: Any) -> None:
    for directory in ("new", "new/new"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "f").touch()
    delete(FileIO(location_map={str(tmp_path): f"{tmp_path}/new"}), [f"{tmp_path}/f"])
    assert not (tmp_path / "new/f").exists()
    assert (tmp_path / "new/new/f").exists()


def test_locations_that_are_resolved_are_not_mapped_again(tmp_path: Path) -> None:
    io = FileIO(location_map={"/data": "/data/new"})
    assert io.resolve("/data/x") == "/data/new/x"
    assert io.without_map().resolve("/data/new/x") == "/data/new/x"


# Object storage.


def test_s3_is_listed_page_by_page(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursive_listing, "_S3_PAGE", 3)
    io, root = FileIO(s3.properties), s3.new_location()
    for name in NAMES:
        io.write(f"{root}/{name}", b"123")
    io.write(f"{root}-sibling/x", b"")
    io.make_directory(f"{root}/marked")
    parts = list(io.list_recursively(root))
    assert max(len(part.files) for part in parts) == 3
    found = listed(f"{root}/", io)
    assert set(found) == {f"{root}/{name}" for name in NAMES}
    now = time.time() * 1000
    assert all(size == 3 and abs(now - (at or 0)) < 60_000 for at, size in found.values())
    assert set(listed(root.replace("s3:", "s3a:"), io)) == {
        f"{root}/{name}".replace("s3:", "s3a:") for name in NAMES
    }
    assert listed(f"{root}/missing", io) == {}


def test_s3_tells_its_time(s3: S3Server) -> None:
    io, root = FileIO(s3.properties), s3.new_location()
    io.write(f"{root}/f", b"")
    (part,) = io.list_recursively(root)
    assert part.storage_time_ms is not None
    assert abs(time.time() * 1000 - part.storage_time_ms) < 60_000


def test_s3_without_credentials_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", "/nonexistent")
    io = FileIO({"s3.endpoint": "http://127.0.0.1:9"})
    with pytest.raises(InvalidOptionError, match="no credentials"):
        list(io.list_recursively("s3://bucket/t"))
