"""Data files found by the names that scans give them."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidDataError
from icebergds.formats.file_tokens import file_token
from icebergds.io.fileio import FileIO
from icebergds.write.deletes.data_file_names import DataFileNames

PATHS = ["file:///t/data/a b.parquet", "/t/data/50%.parquet", "s3://bucket/t/c.parquet"]


@pytest.mark.parametrize("path", PATHS)
def test_files_by_their_paths_and_tokens(path: str) -> None:
    names = DataFileNames(FileIO(), PATHS, "db.t")
    assert names.path_of(path) == path
    assert names.path_of(file_token(path)) == path


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("file:///t/data/a%20b.parquet", PATHS[0]),
        ("file:/t/data/a%20b.parquet", PATHS[0]),
        ("file:///t/data/50%25.parquet", PATHS[1]),
        ("s3://bucket/t/c.parquet", PATHS[2]),
        ("s3://elsewhere/t/c.parquet", "s3://mapped/t/c.parquet"),
    ],
)
def test_files_by_the_names_that_spark_has(name: str, path: str) -> None:
    io = FileIO(location_map={"s3://mapped/": "s3://elsewhere/"})
    assert DataFileNames(io, [*PATHS, "s3://mapped/t/c.parquet"], "db.t").path_of(name) == path


def test_file_that_is_none_of_them_is_refused() -> None:
    names = DataFileNames(FileIO(), PATHS, "db.t")
    with pytest.raises(InvalidDataError, match=r"db\.t: .* of d\.parquet .* matches none of"):
        names.path_of("d.parquet")


def test_name_of_two_files_is_refused() -> None:
    io = FileIO(location_map={"s3://mapped/": "s3://elsewhere/"})
    names = DataFileNames(io, ["s3://mapped/c.parquet", "s3://elsewhere/c.parquet"], "db.t")
    with pytest.raises(InvalidDataError, match="more than one"):
        names.path_of("s3://elsewhere/c.parquet")
    assert names.path_of("s3://mapped/c.parquet") == "s3://mapped/c.parquet"
