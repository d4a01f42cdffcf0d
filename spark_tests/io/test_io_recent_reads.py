"""Metadata that stays in memory: only what never changes, and only for those who may read it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from icebergds.errors import InvalidOptionError, MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.io.kept_reads import recent_reads

UUID = "0b9ad7c4-1f0e-4f43-9d6a-0f3c8a5d2e11"
MANIFEST = f"{UUID}-m0.avro"
LIST = f"snap-12-1-{UUID}.avro"
METADATA = f"00003-{UUID}.metadata.json"


@pytest.fixture
def root() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    yield "memory://recent-reads"
    fs.rm("/recent-reads", recursive=True)


def keeping(**properties: str) -> FileIO:
    return FileIO(recent=recent_reads({"test": UUID, **properties}))


def change(root: str, name: str, data: bytes) -> None:
    """As no writer of tables does."""
    fsspec.filesystem("memory").pipe_file(f"{root}/{name}", data)


@pytest.mark.parametrize("name", [MANIFEST, LIST, METADATA, f"00001-{UUID}.gz.metadata.json"])
def test_files_of_unique_names_are_read_once(root: str, name: str) -> None:
    change(root, name, b"one")
    io = keeping()
    assert io.read_bytes(f"{root}/{name}") == b"one"
    change(root, name, b"two")
    assert [io.read_bytes(f"{root}/{name}"), keeping().read_bytes(f"{root}/{name}")] == [b"one"] * 2
    assert FileIO().read_bytes(f"{root}/{name}") == b"two"


@pytest.mark.parametrize(
    "name",
    ["v3.metadata.json", "version-hint.text", "m0.avro", f"{UUID}.parquet", f"{UUID}/m.avro"],
)
def test_files_of_other_names_are_read_each_time(root: str, name: str) -> None:
    io = keeping()
    for data in (b"one", b"two"):
        change(root, name, data)
        assert io.read_bytes(f"{root}/{name}") == data


def test_others_read_for_themselves(root: str) -> None:
    change(root, MANIFEST, b"one")
    keeping(token="mine").read_bytes(f"{root}/{MANIFEST}")
    change(root, MANIFEST, b"two")
    assert keeping(token="yours").read_bytes(f"{root}/{MANIFEST}") == b"two"


def test_what_was_written_need_not_be_read(root: str) -> None:
    io = keeping()
    io.write(f"{root}/{MANIFEST}", b"one")
    change(root, MANIFEST, b"two")
    assert io.read_bytes(f"{root}/{MANIFEST}") == b"one"


@pytest.mark.parametrize("way", ["delete", "delete_all", "delete_each"])
def test_deleted_files_are_missing(root: str, way: str) -> None:
    io, location = keeping(), f"{root}/{MANIFEST}"
    io.write(location, b"one")
    getattr(io, way)(location if way == "delete" else [location])
    with pytest.raises(MissingFileError):
        io.read_bytes(location)


def test_local_files_are_read_each_time(tmp_path: Path) -> None:
    io, path = keeping(), tmp_path / MANIFEST
    for data in (b"one", b"two"):
        path.write_bytes(data)
        assert io.read_bytes(str(path)) == data


def test_the_oldest_make_room_and_large_files_are_not_kept(root: str) -> None:
    io, mb = keeping(), 1 << 20
    names = [f"{at:08x}{UUID[8:]}.avro" for at in range(70)]
    for name in names:
        io.write(f"{root}/{name}", bytes(mb))
    io.write(f"{root}/{MANIFEST}", bytes(9 * mb))
    assert io.recent is not None
    kept = [io.recent.has(f"{root}/{name}") for name in [*names, MANIFEST]]
    assert kept == [False] * 6 + [True] * 64 + [False]
    for name in names:
        io.delete(f"{root}/{name}")


def test_other_processes_keep_nothing() -> None:
    assert pickle.loads(pickle.dumps(keeping())).recent is None


def test_a_property_switches_it_off() -> None:
    assert recent_reads({"io.manifest.cache-enabled": "false"}) is None
    with pytest.raises(InvalidOptionError, match=r"io\.manifest\.cache-enabled.*'maybe'"):
        FileIO({"io.manifest.cache-enabled": "maybe"})
