"""One store of files, of each kind, to which icebergds and Java Iceberg write."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from azure_server import ACCOUNT, KEY
from java_process import JavaProcess
from oracles.java_environment import bundle, jdbc_driver
from shared_catalog import Lake, SharedCatalog

pytestmark = pytest.mark.interop


@dataclass(frozen=True)
class _Java:
    """How Java Iceberg reaches a store.

    Attributes:
        properties: besides ours.
        endpoint: the property whose value is the server's, where it has another name than ours.
        cloud: of the bundle that it needs.
    """

    io: str
    properties: dict[str, str] = field(default_factory=dict)
    endpoint: str | None = None
    cloud: str | None = None


_STORES = {
    "minio": _Java("aws.s3.S3FileIO", cloud="aws"),
    "gcs": _Java("gcp.gcs.GCSFileIO", {"gcs.project-id": "tests"}, cloud="gcp"),
    "azure": _Java(
        "azure.adlsv2.ADLSFileIO",
        {"adls.auth.shared-key.account.name": ACCOUNT, "adls.auth.shared-key.account.key": KEY},
        f"adls.connection-string.{ACCOUNT}.dfs.core.windows.net",
        cloud="azure",
    ),
    # By Hadoop's client of WebHDFS.
    "hdfs": _Java("hadoop.HadoopFileIO"),
}


@pytest.fixture(params=list(_STORES))
def lake(request: pytest.FixtureRequest, java_in_aws: JavaProcess, tmp_path: Path) -> Lake:
    """A catalog in a database, whose tables are in the store."""
    java = _STORES[request.param]
    needed = [jdbc_driver("sqlite"), *([bundle(java.cloud)] if java.cloud else [])]
    if missing := [lacking for lacking in needed if isinstance(lacking, str)]:
        pytest.skip(missing[0])
    store = request.getfixturevalue(request.param)
    properties = {
        "uri": f"jdbc:sqlite:{tmp_path}/lake.db",
        "warehouse": store.new_location(),
        **store.properties,
    }
    lake = Lake(f"lake_{uuid.uuid4().hex}", java_in_aws, properties)
    lake.open_in_java(
        {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "io-impl": f"org.apache.iceberg.{java.io}",
            **properties,
            **java.properties,
            **({java.endpoint: store.endpoint} if java.endpoint else {}),
        }
    )
    lake.ours().create_namespace("db")
    return lake


class TestStores(SharedCatalog):
    pass
