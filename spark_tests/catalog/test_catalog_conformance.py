"""The file system catalog does what every catalog must."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest
from effort import IS_NIGHTLY

from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.io.fileio import FileIO
from icebergds.testing.catalog_conformance import (
    CatalogCapabilities,
    CatalogConformance,
    OpenCatalog,
)

if TYPE_CHECKING:
    from azure_server import AzureServer
    from gcs_server import GcsServer
    from hdfs_server import HdfsServer
    from minio_server import MinioServer
    from s3_server import S3Server

_FILE_SYSTEM = CatalogCapabilities(
    rename=False,
    namespace_properties=False,
    required_namespaces=False,
    register=False,
    keeps_metadata=False,
)


class TestLocalDisk(CatalogConformance):
    capabilities = _FILE_SYSTEM

    @pytest.fixture
    def open_catalog(self, tmp_path: Path) -> OpenCatalog:
        return partial(FileSystemCatalog, "lake", str(tmp_path / "ware house%20#1"), FileIO())


class TestS3(CatalogConformance):
    capabilities = _FILE_SYSTEM
    threads = 3
    processes = 2

    @pytest.fixture
    def open_catalog(self, s3: S3Server) -> OpenCatalog:
        warehouse = f"{s3.new_location()}/ware house%20#1"
        return partial(FileSystemCatalog, "lake", warehouse, FileIO(s3.properties))


class TestMinio(CatalogConformance):
    capabilities = _FILE_SYSTEM
    threads = 3
    processes = 2

    @pytest.fixture
    def open_catalog(self, minio: MinioServer) -> OpenCatalog:
        warehouse = f"{minio.new_location()}/ware house%20#1"
        return partial(FileSystemCatalog, "lake", warehouse, FileIO(minio.properties))


@pytest.mark.skipif(not IS_NIGHTLY, reason="Azure's own tests are enough for a change")
class TestAzure(CatalogConformance):
    capabilities = _FILE_SYSTEM
    threads = 3
    processes = 2

    @pytest.fixture
    def open_catalog(self, azure: AzureServer) -> OpenCatalog:
        warehouse = f"{azure.new_location()}/ware house%20#1"
        return partial(FileSystemCatalog, "lake", warehouse, FileIO(azure.properties))


class TestGcs(CatalogConformance):
    capabilities = _FILE_SYSTEM
    threads = 3
    processes = 2

    @pytest.fixture
    def open_catalog(self, gcs: GcsServer) -> OpenCatalog:
        warehouse = f"{gcs.new_location()}/ware house%20#1"
        return partial(FileSystemCatalog, "lake", warehouse, FileIO(gcs.properties))


class TestHdfs(CatalogConformance):
    capabilities = _FILE_SYSTEM
    threads = 3
    processes = 2

    @pytest.fixture
    def open_catalog(self, hdfs: HdfsServer) -> OpenCatalog:
        warehouse = f"{hdfs.new_location()}/ware house%20#1"
        return partial(FileSystemCatalog, "lake", warehouse, FileIO(hdfs.properties))


class TestMemory(CatalogConformance):
    capabilities = CatalogCapabilities(
        rename=False,
        namespace_properties=False,
        required_namespaces=False,
        register=False,
        keeps_metadata=False,
        processes=False,
    )

    @pytest.fixture
    def open_catalog(self) -> Iterator[OpenCatalog]:
        warehouse = f"/conformance-{uuid.uuid4()}"
        yield partial(FileSystemCatalog, "lake", f"memory:/{warehouse}", FileIO())
        fs = fsspec.filesystem("memory")
        if fs.exists(warehouse):
            fs.rm(warehouse, recursive=True)
