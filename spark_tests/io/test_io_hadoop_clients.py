"""Which files Hadoop's clients open as a storage with properties does."""

from __future__ import annotations

import pytest

from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_clients import client_of, files_obstacle

KEYS = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "a secret",
    "adls.account-name": "acc",
    "adls.account-key": "a2V5",
}
AZURE = "abfss://lake@acc.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("path", "storage"),
    [
        *((f"{scheme}://lake/f", "S3") for scheme in ("s3", "s3a", "s3n")),
        *((f"{scheme}://lake@acc.dfs.core.windows.net/f", "Azure") for scheme in ("abfs", "wasbs")),
    ],
)
def test_all_schemes_of_a_storage_have_its_client(path: str, storage: str) -> None:
    client = client_of(path)
    assert client is not None
    assert client.storage == storage


@pytest.mark.parametrize("path", ["/lake/f", "gs://lake/f", "hdfs://host/lake/f"])
def test_other_storages_have_none(path: str) -> None:
    assert client_of(path) is None


@pytest.mark.parametrize(
    ("location", "files"),
    [
        ("/lake/t", ["/lake/t/f", "/elsewhere/f"]),
        ("s3://lake/t", ["s3://lake/t/f", "s3a://other/f"]),
        (f"{AZURE}/t", [f"{AZURE}/t/f", f"{AZURE}/t/g"]),
    ],
)
def test_files_of_the_table_s_storage_can_be_opened(location: str, files: list[str]) -> None:
    assert files_obstacle(FileIO(KEYS), location, files) is None


@pytest.mark.parametrize(
    ("location", "file", "why"),
    [
        ("/lake/t", "s3://lake/f", "remote files"),
        ("s3://lake/t", "/lake/f", "not on S3"),
        ("s3://lake/t", "gs://lake/f", "not on S3"),
        ("s3://lake/t", f"{AZURE}/f", "not on S3"),
        (f"{AZURE}/t", "s3://lake/f", "not on Azure"),
        (f"{AZURE}/t", f"{AZURE.replace('lake', 'other')}/f", "several places of Azure"),
        (f"{AZURE}/t", f"{AZURE.replace('acc', 'other')}/f", "several places of Azure"),
        ("gs://lake/t", "gs://lake/f", "not passed"),
    ],
)
def test_why_others_cannot_is_said(location: str, file: str, why: str) -> None:
    root = f"{location}/f"
    assert why in str(files_obstacle(FileIO(KEYS), location, [root, file]))
    assert why in str(files_obstacle(FileIO(KEYS), location, [file, root]))
