"""Locations of one file are recognised as such, and those of different files are told apart."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files import file_identity
from icebergds.operations.maintenance.unused_files.file_identity import (
    Aliases,
    Matches,
    match_files,
)

KNOWN = Aliases({"oss": "s3"}, {"nn2": "nn1"})


def key(location: str, io: FileIO | None = None) -> tuple[tuple[str, str], str]:
    keys = KNOWN.keys(pa.array([location]), io or FileIO())
    return keys.distinct[keys.prefixes[0]], keys.paths[0].as_py()


def matched(found: Sequence[str], *referenced: Sequence[str]) -> Matches:
    io = FileIO()
    parts = (pa.array(part, pa.string()) for part in referenced)
    return match_files(KNOWN.keys(pa.array(found, pa.string()), io), parts, KNOWN, io)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/t/f", "s3a://bucket/t/f"),
        ("s3://bucket/t/f", "S3N://Bucket/t/f"),
        ("s3://bucket/t/f", "s3://bucket//t///f"),
        ("s3://bucket/t/f", "s3://bucket/t/./x/../f"),
        ("s3://bucket/t/f", "oss://bucket/t/f"),
        ("hdfs://nn1/t/f", "hdfs://nn2/t/f"),
        ("gs://bucket/f", "gcs://bucket/f"),
        ("abfs://c@a.dfs.core.windows.net/f", "abfss://c@a.dfs.core.windows.net/f"),
        ("wasb://c@a.blob.core.windows.net/f", "wasbs://c@a.blob.core.windows.net/f"),
        ("/t/f", "file:/t/f"),
        ("/t/f", "file:///t//f"),
        ("/t/f", "file://localhost/t/./x/../f"),
    ],
)
def test_locations_of_one_file_are_the_same(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/t/f", "s3://bucket2/t/f"),
        ("s3://bucket/t/f", "gs://bucket/t/f"),
        ("s3://bucket/a b", "s3://bucket/a%20b"),
        ("s3://bucket/t/F", "s3://bucket/t/f"),
        ("/t/a b", "/t/a%20b"),
        ("/t/f?x", "/t/f"),
        ("/t/f#x", "/t/f"),
    ],
)
def test_locations_of_different_files_differ(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_maps_are_followed_for_directories_and_for_files() -> None:
    io = FileIO(location_map={"s3://old/t": "/new/t", "s3://old/t/d/g": "/other/h"})
    assert key("s3://old/t/d/f", io) == key("/new/t/d/f")
    assert key("s3://old/t/d/g", io) == key("/other/h")
    locations = pa.array(["s3://old/t/d/f", "s3://old/t/d/g", "s3://old/t/d/i"])
    paths = KNOWN.keys(locations, io).paths.to_pylist()
    assert paths == ["/new/t/d/f", "/other/h", "/new/t/d/i"]


def test_keys_of_many_locations_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_identity, "_KEYS_AT_ONCE", 2)
    io = FileIO(location_map={"s3://old/t/g": "/other/h"})
    chunks = [["s3://x/a", "/t//b", "s3a://x/c"], [], ["s3://old/t/g", "s3://y/d"]]
    keys = KNOWN.keys(pa.chunked_array(chunks, pa.string()), io)
    assert keys.paths.to_pylist() == ["/a", "/t/b", "/c", "/other/h", "/d"]
    prefixes = [keys.distinct[number] for number in keys.prefixes]
    assert prefixes == [("s3", "x"), ("file", ""), ("s3", "x"), ("file", ""), ("s3", "y")]


def test_looking_up_many_files_takes_little_more_than_their_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_identity, "_KEYS_AT_ONCE", 1_000)
    monkeypatch.setattr(file_identity, "_PART_ROWS", 2_000)
    chunks = [
        pa.array([f"s3://bucket/t/day={n % 7}/{n:0100}" for n in range(start, start + 1_000)])
        for start in range(0, 20_000, 1_000)
    ]
    found = pa.chunked_array(chunks)
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        matches = match_files(KNOWN.keys(found, FileIO()), chunks[5:], KNOWN, FileIO())
    finally:
        pa.set_memory_pool(before)
    assert matches.referenced.tolist() == [n >= 5_000 for n in range(20_000)]
    assert pool.max_memory() < 1.5 * found.nbytes


def test_a_file_on_another_machine_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="on the host"):
        key("file://server/f")


def test_a_location_without_authority_is_in_the_default_storage() -> None:
    found = matched(["hdfs://nn1/t/f"], ["hdfs:///t/f"])
    assert found.referenced.tolist() == [True]
    assert not found.conflicts
    found = matched(["hdfs:///t/f"], ["hdfs://nn1/t/f"])
    assert found.elsewhere.tolist() == [True]
    assert found.conflicts == {(("hdfs", "nn1"), ("hdfs", "")): "/t/f"}


def test_one_reference_in_the_right_storage_is_enough() -> None:
    for order in (["s3://x/f", "s3://y/f"], ["s3://y/f", "s3://x/f"]):
        found = matched(["s3://x/f"], order)
        assert found.referenced.tolist() == [True]
        assert found.elsewhere.tolist() == [False]
        assert not found.conflicts


def test_references_in_many_parts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_identity, "_PART_ROWS", 2)
    parts = [["/a", "/b"], [], ["/c"], ["/d", "s3://x/e"], ["/g"]]
    found = matched([f"/{name}" for name in "abcdefg"], *parts)
    assert found.referenced.tolist() == [True, True, True, True, False, False, True]
    assert found.elsewhere.tolist() == [False, False, False, False, True, False, False]
