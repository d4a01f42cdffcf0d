"""Storage of Google Cloud: credentials, pages, streams and markers of directories."""

from __future__ import annotations

import gc
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icebergds.errors import InvalidOptionError, StorageError
from icebergds.io import gcs_options as options_module, recursive_listing
from icebergds.io.fileio import FileIO
from icebergds.io.gcs_options import gcs_options

if TYPE_CHECKING:
    from gcs_server import GcsServer

pytest.importorskip("gcsfs")
_SECRET = "ya29.hunter2"


@pytest.fixture
def io(gcs: GcsServer) -> FileIO:
    return FileIO(gcs.properties)


@pytest.fixture
def root(gcs: GcsServer) -> str:
    return gcs.new_location()


# Credentials.


def test_a_token_is_sent_until_it_expires() -> None:
    from throttling_proxy import throttling_proxy

    with throttling_proxy(1) as proxy:
        proxy.busy, proxy.status, proxy.body = 10, 404, b"{}"
        given = {"gcs.service.host": f"http://127.0.0.1:{proxy.port}", "gcs.oauth2.token": _SECRET}
        assert not FileIO(given).exists("gs://b/f")
        headers = [{k.lower(): v for k, v in request.headers.items()} for request in proxy.seen]
        assert {sent["authorization"] for sent in headers} == {f"Bearer {_SECRET}"}
        expired = {**given, "gcs.oauth2.token-expires-at": "1700000000000"}
        with pytest.raises(StorageError, match="refresh") as raised:
            FileIO(expired).exists("gs://b/f")
    assert _SECRET not in str(raised.value)


def test_a_token_that_is_the_path_of_no_file_is_not_sent() -> None:
    given = {"gcs.oauth2.token": f"/{_SECRET}"}
    with pytest.raises(InvalidOptionError, match="there is no file") as raised:
        gcs_options(given)
    assert _SECRET not in str(raised.value)


def test_a_token_has_a_time() -> None:
    given = {"gcs.oauth2.token": _SECRET, "gcs.oauth2.token-expires-at": "1700000000000"}
    expiry = gcs_options(given)["token"].expiry
    assert expiry.replace(tzinfo=UTC) == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    with pytest.raises(InvalidOptionError, match="token-expires-at' = 'soon'"):
        gcs_options({**given, "gcs.oauth2.token-expires-at": "soon"})


def test_another_token_makes_another_client() -> None:
    def options(token: str) -> Any:
        return gcs_options({"gcs.oauth2.token": token})

    assert options(_SECRET) == options(_SECRET)
    assert options(_SECRET) != options("other")
    assert _SECRET not in repr(options(_SECRET))


def test_without_credentials_it_is_said_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    options_module._default_credentials.cache_clear()
    with pytest.raises(InvalidOptionError, match=r"no credentials for 'gs://b/f': set gcs\.oauth2"):
        FileIO({"gcs.project-id": "p"}).read_bytes("gs://b/f")


def test_default_credentials_may_be_of_another_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = {
        "type": "authorized_user",
        "client_id": "i",
        "client_secret": "s",
        "refresh_token": "r",
        "quota_project_id": "theirs",
    }
    (tmp_path / "adc.json").write_text(json.dumps(given))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "adc.json"))
    options_module._default_credentials.cache_clear()
    options = gcs_options({"gcs.project-id": "mine"})
    assert (options["project"], options["token"].refresh_token) == ("mine", "r")
    options_module._default_credentials.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gcs.user-project", "payer", "payer"),
        ("gcs.requester-pays", "true", True),
        ("gcs.requester-pays", "false", None),
    ],
)
def test_someone_pays(name: str, value: str, expected: object) -> None:
    assert gcs_options({"gcs.no-auth": "true", name: value}).get("requester_pays") == expected


@pytest.mark.parametrize("name", ["gcs.encryption-key", "gcs.impersonate.service-account"])
def test_what_is_not_supported_is_named(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{name}' is not supported"):
        gcs_options({name: "x"})


# Files.


def test_objects_are_listed_page_by_page(
    io: FileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recursive_listing, "_GCS_PAGE", 3)
    for number in range(7):
        io.write(f"{root}/{number}", b"x")
    pages = list(io.list_recursively(root))
    assert [page.files.num_rows for page in pages] == [3, 3, 1]


@pytest.mark.parametrize("size", [1, 60 * 2**20])
def test_a_stream_that_is_discarded_never_appears(io: FileIO, root: str, size: int) -> None:
    stream = io.open_output(f"{root}/f")
    stream.write(bytes(size))
    stream.discard()
    stream.close()
    assert not io.exists(f"{root}/f")


def test_large_files_are_sent_in_parts(io: FileIO, root: str) -> None:
    part = bytes(range(256)) * 2**16
    with io.open_output(f"{root}/f") as stream:
        for _ in range(4):
            stream.write(part)
    assert io.read_bytes(f"{root}/f") == part * 4


def test_a_stream_that_is_dropped_never_appears(io: FileIO, root: str) -> None:
    stream = io.open_output(f"{root}/f")
    stream.writelines([bytes(2**20)] * 33)
    del stream
    gc.collect()
    # Another thread of the client's completes files that are collected.
    for _ in range(10):
        assert not io.exists(f"{root}/f")
        time.sleep(0.1)


def test_a_file_of_one_part_is_sent_by_one_request(gcs: GcsServer, root: str) -> None:
    from throttling_proxy import throttling_proxy

    content = bytes(12 * 2**20)
    with throttling_proxy(gcs.port) as proxy:
        io = FileIO({**gcs.properties, "gcs.service.host": f"http://127.0.0.1:{proxy.port}"})
        with io.open_output(f"{root}/f") as stream:
            stream.write(content)
        assert [request.method for request in proxy.seen] == ["POST"]
    assert io.read_bytes(f"{root}/f") == content


def test_a_file_of_which_a_part_fails_never_appears(gcs: GcsServer, root: str) -> None:
    from throttling_proxy import throttling_proxy

    with throttling_proxy(gcs.port) as proxy:
        proxy.busy, proxy.status, proxy.body = 1, 403, b'{"error": {"message": "no access"}}'
        proxy.concerned = lambda request: "uploadType=resumable" in request.path
        io = FileIO({**gcs.properties, "gcs.service.host": f"http://127.0.0.1:{proxy.port}"})
        stream = io.open_output(f"{root}/f")
        with pytest.raises(StorageError, match=r"writing gs:.*Forbidden"):
            stream.writelines([bytes(16 * 2**20)] * 4)
        with pytest.raises(StorageError, match="no access"):
            stream.close()
    assert not io.exists(f"{root}/f")


def test_empty_directories_are_made_and_removed(io: FileIO, root: str) -> None:
    for _ in range(2):
        io.make_directory(f"{root}/p%20q #1")
    assert io.is_directory(f"{root}/p%20q #1")
    assert io.list(root) == ["p%20q #1"]
    assert io.list(f"{root}/p%20q #1") == []
    assert list(io.list_recursively(root)) == []
    io.remove_empty_directory(f"{root}/p%20q #1")
    assert not io.exists(f"{root}/p%20q #1")
    with pytest.raises(StorageError, match="no such directory"):
        io.remove_empty_directory(f"{root}/p%20q #1")


def test_directories_with_files_are_not_removed(io: FileIO, root: str) -> None:
    io.make_directory(f"{root}/a")
    io.write(f"{root}/a/f", b"x")
    for directory in (root, f"{root}/a"):
        with pytest.raises(OSError, match="not empty"):
            io.remove_empty_directory(directory)
    assert io.list(f"{root}/a") == ["f"]


@pytest.mark.parametrize("use", ["exists", "is_directory"])
def test_what_may_not_be_seen_is_not_missing(use: str) -> None:
    from throttling_proxy import throttling_proxy

    with throttling_proxy(1) as proxy:
        proxy.busy, proxy.status, proxy.body = 10, 403, b'{"error": {"message": "no access"}}'
        given = {"gcs.service.host": f"http://127.0.0.1:{proxy.port}", "gcs.no-auth": "true"}
        with pytest.raises(StorageError, match="no access"):
            getattr(FileIO(given), use)("gs://b/f")
