"""One table's files may be in several stores at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icebergds.errors import StorageError
from icebergds.io.fileio import FileIO

if TYPE_CHECKING:
    from aws_iam_server import AwsServer
    from azure_server import AzureServer


@pytest.fixture
def roots(aws_iam: AwsServer, azure: AzureServer, tmp_path: Path) -> list[str]:
    s3 = aws_iam.new_location()
    return [s3, f"s3a{s3.removeprefix('s3')}2", azure.new_location(), f"file:{tmp_path}/lake"]


@pytest.fixture
def io(aws_iam: AwsServer, azure: AzureServer) -> FileIO:
    return FileIO({**aws_iam.properties, **azure.properties})


def test_each_file_is_in_the_store_of_its_scheme(
    io: FileIO, roots: list[str], aws_iam: AwsServer, azure: AzureServer
) -> None:
    for number, root in enumerate(roots):
        io.create(f"{root}/f", b"%d" % number)
    there: FileIO = pickle.loads(pickle.dumps(io))
    assert [there.read_bytes(f"{root}/f") for root in roots] == [b"0", b"1", b"2", b"3"]
    assert FileIO(aws_iam.properties).read_bytes(f"{roots[0]}/f") == b"0"
    assert FileIO(azure.properties).read_bytes(f"{roots[2]}/f") == b"2"


def test_files_of_all_stores_are_deleted_at_once(io: FileIO, roots: list[str]) -> None:
    files = [f"{root}/{name}" for root in roots for name in ("f", "g")]
    for file in files:
        io.write(file, b"x")
    io.delete_all(files)
    assert not any(io.exists(file) for file in files)


def test_files_that_one_store_refuses_to_delete_are_named(
    io: FileIO, roots: list[str], aws_iam: AwsServer, azure: AzureServer
) -> None:
    for root in roots:
        io.write(f"{root}/f", b"x")
    container = roots[2].removeprefix("abfss://").partition("@")[0]
    readable = {
        **{name: value for name, value in azure.properties.items() if "blob-storage" in name},
        "adls.sas-token": azure.signature(container, permission="r"),
    }
    reader = FileIO({**aws_iam.properties, **readable})
    with pytest.raises(StorageError, match=f"^1 of 4 files could not be deleted.*{container}"):
        reader.delete_all([f"{root}/f" for root in roots])
    assert [io.exists(f"{root}/f") for root in roots] == [False, False, True, False]
