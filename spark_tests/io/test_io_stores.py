"""What holds for files of every remote store: written, created exclusively, listed and deleted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import Pool
from typing import Protocol

import pytest
from processes import CONTEXT

from icebergds.errors import AlreadyExistsError, MissingFileError
from icebergds.io.fileio import FileIO

_NAMES = [
    "plain",
    "with space",
    "p%20q",
    "100%",
    "x#1?y=z",
    "a+b&c=d",
    "[1]*",
    "day=2026-01-01 00:00:00",
    "über 東京 🎈",
]


class _Store(Protocol):
    @property
    def properties(self) -> dict[str, str]: ...

    def new_location(self) -> str: ...


@pytest.fixture(params=["azure", "gcs", "hdfs", "minio"])
def store(request: pytest.FixtureRequest) -> _Store:
    found: _Store = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def io(store: _Store) -> FileIO:
    return FileIO(store.properties)


@pytest.fixture
def root(store: _Store) -> str:
    return store.new_location()


@pytest.fixture(scope="module")
def processes() -> Iterator[Pool]:
    with CONTEXT.Pool(3) as pool:
        yield pool


@pytest.mark.parametrize("name", _NAMES)
def test_a_name_is_taken_as_it_is(io: FileIO, root: str, name: str) -> None:
    if _is_invalid(root, name):
        pytest.skip("HDFS has no names with colons")
    location = f"{root}/{name}/{name}.bin"
    io.write(location, b"one")
    assert io.read_bytes(location) == b"one"
    assert io.list(root) == [name]
    assert io.list(f"{root}/{name}") == [f"{name}.bin"]
    assert io.size(location) == 3
    assert io.exists(location)
    assert io.is_directory(f"{root}/{name}")
    assert not io.is_directory(location)
    assert _listed(io, root) == [location]


def test_a_written_file_replaces_the_one_that_is_there(io: FileIO, root: str) -> None:
    for content in (b"a longer one", b"short", b""):
        io.write(f"{root}/f", content)
        assert io.read_bytes(f"{root}/f") == content


def test_a_stream_replaces_the_file_that_is_there(io: FileIO, root: str) -> None:
    for content in (b"a longer one", b"short"):
        with io.open_output(f"{root}/f") as stream:
            stream.write(content)
        assert io.read_bytes(f"{root}/f") == content


def test_files_are_read_at_any_place(io: FileIO, root: str) -> None:
    io.write(f"{root}/f", bytes(range(200)))
    with io.open(f"{root}/f") as file:
        assert file.size() == 200
        file.seek(150)
        assert file.read(10) == bytes(range(150, 160))
        file.seek(195)
        assert file.read(100) == bytes(range(195, 200))
        file.seek(0)
        assert file.read(5) == bytes(range(5))


def test_a_missing_file_is_named(io: FileIO, root: str) -> None:
    for use in (io.read_bytes, io.size, io.open, io.list):
        with pytest.raises(MissingFileError, match="nothing"):
            use(f"{root}/nothing")
    assert not io.exists(f"{root}/nothing")
    assert not io.is_directory(f"{root}/nothing")


def test_a_listing_has_only_what_is_in_the_directory(io: FileIO, root: str) -> None:
    for name in ("a/f", "a/b/g", "a/b/c/h", "ab/f", "a.txt"):
        io.write(f"{root}/{name}", b"x")
    assert sorted(io.list(root)) == ["a", "a.txt", "ab"]
    assert sorted(io.list(f"{root}/a")) == ["b", "f"]
    assert _listed(io, f"{root}/a") == [f"{root}/a/{name}" for name in ("b/c/h", "b/g", "f")]


def test_a_recursive_listing_tells_sizes_and_times(io: FileIO, root: str) -> None:
    io.write(f"{root}/f", b"123")
    (page,) = io.list_recursively(root)
    (row,) = page.files.to_pylist()
    assert (row["location"], row["size_in_bytes"]) == (f"{root}/f", 3)
    modified = io.modified_ms(f"{root}/f")
    assert modified is not None
    # Some stores list whole seconds only.
    assert abs(row["modified_ms"] - modified) < 1000


def test_storage_goes_to_other_processes_with_its_properties(
    io: FileIO, root: str, processes: Pool
) -> None:
    io.write(f"{root}/f", b"x")
    assert processes.apply(io.read_bytes, (f"{root}/f",)) == b"x"


# Creating.


def test_a_file_is_created_once(io: FileIO, root: str) -> None:
    io.create(f"{root}/x #1", b"first")
    with pytest.raises(AlreadyExistsError, match="#1"):
        io.create(f"{root}/x #1", b"second")
    assert io.read_bytes(f"{root}/x #1") == b"first"
    assert io.list(root) == ["x #1"]


def test_of_many_threads_one_creates_a_file(io: FileIO, root: str) -> None:
    io.require_create(f"{root}/f0")
    for i in range(5):
        location = f"{root}/f{i}"
        gate = threading.Barrier(8)

        def creates(number: int, location: str = location, gate: threading.Barrier = gate) -> bool:
            gate.wait()
            return _creates(io, location, number)

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(creates, range(8)))
        assert sum(won) == 1
        assert io.read_bytes(location) == _content(won.index(True))
    assert sorted(io.list(root)) == [f"f{i}" for i in range(5)]


def test_of_many_processes_one_creates_a_file(io: FileIO, root: str, processes: Pool) -> None:
    locations = [f"{root}/f{i}" for i in range(10)]
    won = processes.starmap(_create_each, [(io, locations, number) for number in range(3)], 1)
    assert sorted(location for won_by in won for location in won_by) == sorted(locations)
    for number, won_by in enumerate(won):
        for location in won_by:
            assert io.read_bytes(location) == _content(number)


# Deleting.


def test_exactly_the_files_named_are_deleted(io: FileIO, root: str) -> None:
    names = [name for name in _NAMES if not _is_invalid(root, name)]
    for name in (*names, "1", "[1]xyz"):
        io.write(f"{root}/{name}", b"x")
    io.delete_all(f"{root}/{name}" for name in names)
    assert sorted(io.list(root)) == ["1", "[1]xyz"]
    io.delete(f"{root}/1")
    assert io.list(root) == ["[1]xyz"]


def test_deleting_what_is_missing_is_fine(io: FileIO, root: str) -> None:
    io.write(f"{root}/a", b"x")
    io.delete(f"{root}/nothing")
    io.delete_all([f"{root}/nothing", f"{root}/a", f"{root}/a"])
    assert not io.exists(f"{root}/a")


def _is_invalid(root: str, name: str) -> bool:
    return root.startswith("webhdfs:") and ":" in name


def _listed(io: FileIO, root: str) -> list[str]:
    pages = io.list_recursively(root)
    return sorted(str(name) for page in pages for name in page.files["location"].to_pylist())


def _create_each(io: FileIO, locations: list[str], number: int) -> list[str]:
    return [location for location in locations if _creates(io, location, number)]


def _creates(io: FileIO, location: str, number: int) -> bool:
    try:
        io.create(location, _content(number))
    except AlreadyExistsError:
        return False
    return True


def _content(number: int) -> bytes:
    return b"%d" % number * 1000
