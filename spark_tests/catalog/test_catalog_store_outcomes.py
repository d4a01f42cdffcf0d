"""What a commit to a table in a store says when the store's answer is lost, or it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import azure_server
import effort
import pytest
from aws_iam_server import AwsServer
from gcs_server import GcsServer
from hdfs_server import HdfsServer
from throttling_proxy import Request, ThrottlingProxy, throttling_proxy

from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing.catalog_steps import create_table

_TABLE = ("db", "t")


@dataclass(frozen=True)
class _Proxied:
    """A warehouse, and the way to it by a proxy.

    Attributes:
        commits: which requests make the metadata file of version 2 appear.
    """

    direct: FileSystemCatalog
    proxied: FileSystemCatalog
    proxy: ThrottlingProxy
    commits: Callable[[Request], bool]


def _sends(method: str) -> Callable[[Request], bool]:
    return lambda request: request.method == method and "v2.metadata.json" in request.path


def _posts(request: Request) -> bool:
    return request.method == "POST" and "/upload/" in request.path


def _renames(request: Request) -> bool:
    return "op=RENAME" in request.path


@pytest.fixture(params=["s3", "azure", "gcs", "hdfs"])
def table(request: pytest.FixtureRequest) -> Iterator[_Proxied]:
    def warehouse(properties: dict[str, str], location_map: dict[str, str]) -> FileSystemCatalog:
        return FileSystemCatalog("lake", location, FileIO(properties, location_map))

    if request.param == "azure" and not effort.IS_NIGHTLY:
        pytest.skip("its client waits a quarter of a minute")
    server = request.getfixturevalue({"s3": "aws_iam"}.get(request.param, request.param))
    location, properties = server.new_location(), server.properties
    port = server.http_port if isinstance(server, HdfsServer) else server.port
    with throttling_proxy(port) as proxy:
        mapped: dict[str, str] = {}
        moved: dict[str, str] = {}
        match server:
            case AwsServer():
                commits, moved = _sends("PUT"), {"s3.endpoint": f"http://127.0.0.1:{proxy.port}"}
            case azure_server.AzureServer():
                commits, moved = _sends("PUT"), azure_server.storage_properties(proxy.port)
            case GcsServer():
                commits, moved = _posts, {"gcs.service.host": f"http://127.0.0.1:{proxy.port}"}
            case _:
                commits = _renames
                mapped = {f"webhdfs://127.0.0.1:{port}": f"webhdfs://127.0.0.1:{proxy.port}"}
        yield _Proxied(
            warehouse(properties, {}),
            warehouse({**properties, **moved}, mapped),
            proxy,
            commits,
        )


def test_a_commit_whose_answer_is_lost_is_found(table: _Proxied) -> None:
    create_table(table.direct, _TABLE)
    table.proxied.io.require_create(f"{table.proxied.warehouse}/db/t/metadata/v2.metadata.json")
    table.proxy.concerned = table.commits
    table.proxy.busy, table.proxy.forwards = 1, True
    committed = _set_property(table.proxied)
    assert table.proxy.busy == 0
    assert committed.metadata.properties["k"] == "v"
    assert table.direct.load(_TABLE).metadata.properties["k"] == "v"


def test_a_commit_that_google_refuses_failed(gcs: GcsServer) -> None:
    location = gcs.new_location()
    create_table(FileSystemCatalog("lake", location, FileIO(gcs.properties)), _TABLE)
    with throttling_proxy(gcs.port) as proxy:
        io = FileIO({**gcs.properties, "gcs.service.host": f"http://127.0.0.1:{proxy.port}"})
        io.require_create(f"{location}/db/t/metadata/v2.metadata.json")
        proxy.concerned, proxy.busy = lambda request: request.method == "POST", 100
        proxy.status, proxy.body = 403, b'{"error": {"message": "read only"}}'
        catalog = FileSystemCatalog("lake", location, io)
        _is_refused(catalog, "(?s)read only.*nothing was committed")


def test_a_commit_that_azure_refuses_failed(azure: azure_server.AzureServer) -> None:
    location = azure.new_location()
    create_table(FileSystemCatalog("lake", location, FileIO(azure.properties)), _TABLE)
    container = location.removeprefix("abfss://").partition("@")[0]
    reading = {
        **{name: value for name, value in azure.properties.items() if "blob-storage" in name},
        "adls.sas-token": azure.signature(container, permission="rl"),
    }
    _is_refused(
        FileSystemCatalog("lake", location, FileIO(reading)), "AuthorizationPermissionMismatch"
    )


def _is_refused(catalog: FileSystemCatalog, reason: str) -> None:
    with pytest.raises(IcebergError, match=reason) as raised:
        _set_property(catalog)
    assert not raised.value.outcome_unknown


def _set_property(catalog: FileSystemCatalog) -> TableState:
    operations = catalog.operations(_TABLE)
    return operations.commit(operations.refresh(), [], [SetProperties({"k": "v"})])
