"""Which locations lead to the same directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from icebergds.io.fileio import FileIO
from icebergds.io.same_directory import is_same_directory


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a/b", "file:///a//b/"),
        ("/a/b", "//a/b"),
        ("/a/b", "file:/a/c/../b"),
        ("s3://b/t", "s3a://b/t/"),
        ("s3n://b/t", "S3://b//t"),
        ("gs://b/t", "gcs://b/t"),
        ("abfss://c@h/t", "abfs://c@H/t"),
        ("hdfs://NN:8020/t", "hdfs://nn:8020/t"),
        ("s3://b", "s3://b/"),
        ("t", "./t"),
    ],
)
def test_locations_of_one_directory(one: str, other: str) -> None:
    assert is_same_directory(one, other, FileIO())
    assert is_same_directory(other, one, FileIO())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a/b", "/a/c"),
        ("/a/b", "/a/b/c"),
        ("/a/b c", "/a/b%20c"),
        ("/a/b\0", "/a/b"),
        ("s3://b/t", "s3://c/t"),
        ("s3://b/t", "/b/t"),
        ("s3://b/t", "gs://b/t"),
        ("s3://b/t", "s3://b/T"),
        ("hdfs://one/t", "hdfs://two/t"),
    ],
)
def test_locations_of_two_directories(one: str, other: str) -> None:
    assert not is_same_directory(one, other, FileIO())
    assert not is_same_directory(other, one, FileIO())


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    assert is_same_directory(f"{tmp_path}/link", f"{tmp_path}/a", FileIO())
    assert is_same_directory(f"{tmp_path}/link/not/there", f"{tmp_path}/a/not/there", FileIO())
    assert not is_same_directory(f"{tmp_path}/link", f"{tmp_path}/b", FileIO())


@pytest.mark.parametrize("prefix", ["s3://b/t", "s3://b/t/", "s3://b", "s3://b/"])
def test_locations_are_mapped(prefix: str) -> None:
    io = FileIO(location_map={prefix: prefix.replace("s3://b", "/moved")})
    assert is_same_directory("s3://b/t", "/moved/t", io)
    assert not is_same_directory("s3a://b/t", "/moved/t", io)
