"""Stores that are too busy: requests are sent again, later, and not too many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import azure_server
import effort
import pytest
from aws_iam_server import AwsServer
from gcs_server import GcsServer
from throttling_proxy import ThrottlingProxy, throttling_proxy

from icebergds.errors import AlreadyExistsError, StorageError
from icebergds.io.fileio import FileIO

_SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


@pytest.fixture
def proxy(aws_iam: AwsServer) -> Iterator[ThrottlingProxy]:
    with throttling_proxy(aws_iam.port) as proxy:
        proxy.body = _SLOW_DOWN
        yield proxy


@pytest.fixture
def io(aws_iam: AwsServer, proxy: ThrottlingProxy) -> FileIO:
    return FileIO({**aws_iam.properties, "s3.endpoint": f"http://127.0.0.1:{proxy.port}"})


@pytest.fixture
def root(aws_iam: AwsServer) -> str:
    return aws_iam.new_location()


_USES: dict[str, Callable[[FileIO, str], object]] = {
    "write": lambda io, root: io.write(f"{root}/g", b"x"),
    "read": lambda io, root: io.read_bytes(f"{root}/f"),
    "size": lambda io, root: io.size(f"{root}/f"),
    "list": lambda io, root: io.list(root),
    "list_recursively": lambda io, root: list(io.list_recursively(root)),
    "delete": lambda io, root: io.delete_all([f"{root}/f", f"{root}/g"]),
    "create": lambda io, root: io.create(f"{root}/c", b"x"),
}


@pytest.mark.parametrize("use", _USES)
def test_what_a_busy_store_refuses_is_sent_again(
    aws_iam: AwsServer, io: FileIO, root: str, proxy: ThrottlingProxy, use: str
) -> None:
    io.create(f"{root}/f", b"x")
    proxy.seen.clear()
    proxy.busy = 2
    _USES[use](io, root)
    assert proxy.busy == 0
    assert proxy.seen[0].path == proxy.seen[1].path == proxy.seen[2].path


def test_a_store_that_stays_busy_is_given_up(
    aws_iam: AwsServer, root: str, proxy: ThrottlingProxy
) -> None:
    io = FileIO(
        {
            **aws_iam.properties,
            "s3.endpoint": f"http://127.0.0.1:{proxy.port}",
            "s3.retry.num-retries": "1",
        }
    )
    proxy.busy = 10**6
    with pytest.raises(StorageError, match=r"SlowDown|reduce your request rate"):
        io.write(f"{root}/f", b"x")
    assert 2 <= len(proxy.seen) <= 20


def test_a_file_that_was_created_although_the_store_said_it_is_busy_is_there(
    io: FileIO, root: str, proxy: ThrottlingProxy
) -> None:
    """The client sends it again, and finds it: who creates looks whether it is its own."""
    io.require_create(f"{root}/f")
    proxy.busy, proxy.forwards = 1, True
    with pytest.raises(AlreadyExistsError):
        io.create(f"{root}/f", b"x")
    assert io.read_bytes(f"{root}/f") == b"x"


def test_files_that_a_busy_store_did_not_delete_are_deleted_alone(
    io: FileIO, root: str, proxy: ThrottlingProxy
) -> None:
    for name in ("a", "b"):
        io.write(f"{root}/{name}", b"x")
    proxy.concerned = lambda request: request.path.endswith("?delete")
    proxy.status, proxy.busy = 200, 1
    proxy.body = (
        b"<DeleteResult><Error><Key>lake/a</Key><Code>SlowDown</Code></Error>"
        b"<Error><Key>lake/b</Key><Code>SlowDown</Code></Error></DeleteResult>"
    )
    io.delete_all([f"{root}/a", f"{root}/b"])
    assert not io.exists(root)


def test_many_files_are_deleted_by_few_requests(
    io: FileIO, root: str, proxy: ThrottlingProxy
) -> None:
    io.write(f"{root}/0", b"x")
    proxy.seen.clear()
    io.delete_all(f"{root}/{number}" for number in range(2500))
    assert [request.method for request in proxy.seen] == ["POST"] * 3
    assert not io.exists(root)


def test_so_many_requests_are_under_way_at_most(azure: azure_server.AzureServer) -> None:
    """Azure deletes one file a request."""
    root = azure.new_location()
    with throttling_proxy(azure.port) as proxy:
        io = FileIO(azure_server.storage_properties(proxy.port))
        io.delete_all(f"{root}/{number}" for number in range(200))
    deleted = [request for request in proxy.seen if request.method == "DELETE"]
    assert len(deleted) == 200
    assert 2 <= proxy.most <= 16


@pytest.mark.parametrize("status", [429, 503])
def test_google_is_asked_again(gcs: GcsServer, status: int) -> None:
    root = gcs.new_location()
    with throttling_proxy(gcs.port) as proxy:
        proxy.status = status
        io = FileIO({**gcs.properties, "gcs.service.host": f"http://127.0.0.1:{proxy.port}"})
        for use in (io.create, io.write):
            proxy.busy = 2
            use(f"{root}/f", b"x")
        proxy.busy = 1
        assert io.list(root) == ["f"]
        proxy.busy = 1
        io.delete_all([f"{root}/f"])
        assert not io.exists(f"{root}/f")


@pytest.mark.skipif(not effort.IS_NIGHTLY, reason="its client waits a quarter of a minute")
def test_azure_is_asked_again(azure: azure_server.AzureServer) -> None:
    root = azure.new_location()
    with throttling_proxy(azure.port) as proxy:
        io = FileIO(azure_server.storage_properties(proxy.port))
        io.require_create(f"{root}/f")
        proxy.busy = 1
        proxy.body = b"<Error><Code>ServerBusy</Code><Message>The server is busy.</Message></Error>"
        io.create(f"{root}/f", b"x")
        assert io.read_bytes(f"{root}/f") == b"x"
        assert proxy.busy == 0
