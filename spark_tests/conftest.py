"""Fixtures of several packages' tests that need no Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import aws_iam_server
import azure_server
import effort
import gcs_server
import hdfs_server
import hive_server
import minio_server
import nessie_server
import processes  # noqa: F401  (also for the pools of `icebergds.testing`)
import pytest
from moto_server import MotoServer, has_moto, moto_server
from remembered_metadata import checked_remembering
from s3_server import S3Server, s3_server, what_is_missing

if TYPE_CHECKING:
    from entra_server import EntraServer
    from mariadb_server import MariaDbServer
    from postgres_server import PostgresServer
    from rest_server import RestServer


@pytest.fixture(scope="session", autouse=True)
def _own_metadata_is_read_as_written() -> Iterator[None]:
    """In every commit of every test."""
    with checked_remembering():
        yield


@pytest.fixture(scope="session", autouse=True)
def _services_of_aws_are_described_once() -> Iterator[None]:
    """Each client would read the descriptions again, which takes a tenth of a second."""
    try:
        from botocore import session
    except ImportError:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "create_loader", lru_cache(session.create_loader))
        yield


@pytest.fixture(autouse=True)
def _catalogs_of_other_tests_are_forgotten() -> Iterator[None]:
    yield from _forgetting_catalogs()


@pytest.fixture(scope="module", autouse=True)
def _catalogs_of_other_modules_are_forgotten() -> Iterator[None]:
    yield from _forgetting_catalogs()


def _forgetting_catalogs() -> Iterator[None]:
    """Sessions that tests register live on in Spark, and would define catalogs for others."""
    known = sys.modules.get("icebergds.spark.registered")
    kept = {} if known is None else dict(known.sessions)
    yield
    registration = sys.modules.get("icebergds.spark.registration")
    if registration is not None and registration.sessions != kept:
        registration.sessions.clear()
        registration.sessions.update(kept)
        registration._publish_catalogs()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the whole run."""
    # Spark's tests run without what other packages' tests need.
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from postgres_server import find_binaries, postgres_server

    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    with postgres_server(binaries) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDbServer]:
    """A MariaDB server for the whole run."""
    pytest.importorskip("pymysql", reason="pymysql is not installed")
    from mariadb_server import mariadb_server, what_is_missing

    if (missing := what_is_missing()) is not None:
        pytest.skip(f"no MariaDB: {missing}")
    with mariadb_server() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server for the whole run."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    if (missing := what_is_missing()) is not None:
        pytest.skip(f"no S3 server: {missing}")
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def rest() -> Iterator[RestServer]:
    """A server of REST catalogs for the whole run."""
    pytest.importorskip("requests", reason="requests is not installed")
    from rest_server import rest_server, what_is_missing as what_rest_lacks

    if (missing := what_rest_lacks()) is not None:
        pytest.skip(f"no REST catalog: {missing}")
    with rest_server() as server:
        yield server


@pytest.fixture(scope="module")
def nessie() -> Iterator[nessie_server.NessieServer]:
    """A server of a REST catalog that vends credentials; its tokens soon expire."""
    yield from _nessie(nessie_server.SECONDS)


@pytest.fixture(scope="module")
def lasting_nessie() -> Iterator[nessie_server.NessieServer]:
    """The same; tokens last for the whole run."""
    yield from _nessie(86400)


@pytest.fixture(scope="session")
def aws_iam() -> Iterator[aws_iam_server.AwsServer]:
    """A server of S3 that checks signatures and permissions, for the whole run."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    if (missing := aws_iam_server.what_is_missing()) is not None:
        pytest.skip(f"no S3 server with users: {missing}")
    with aws_iam_server.aws_server() as server:
        yield server


@pytest.fixture(scope="session")
def running_moto() -> Iterator[MotoServer]:
    """A server of AWS's services for the whole run."""
    if not has_moto():
        pytest.skip("moto is not installed")
    with moto_server() as server:
        yield server


@pytest.fixture
def moto(running_moto: MotoServer) -> MotoServer:
    """The same server without data."""
    running_moto.reset()
    return running_moto


@pytest.fixture(scope="session")
def hdfs() -> Iterator[hdfs_server.HdfsServer]:
    """An HDFS cluster for the whole run."""
    pytest.importorskip("requests", reason="requests is not installed")
    if not effort.IS_NIGHTLY:
        pytest.skip("HDFS takes a while to start: nightly only")
    if (missing := hdfs_server.what_is_missing()) is not None:
        pytest.skip(f"no HDFS cluster: {missing}")
    with hdfs_server.hdfs_server() as server:
        yield server


@pytest.fixture(scope="session")
def gcs() -> Iterator[gcs_server.GcsServer]:
    """A server of Google Cloud Storage for the whole run."""
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    if not effort.IS_NIGHTLY:
        pytest.skip("the GCS server is built for minutes: nightly only")
    if (missing := gcs_server.what_is_missing()) is not None:
        pytest.skip(f"no GCS server: {missing}")
    with gcs_server.gcs_server() as server:
        yield server


@pytest.fixture(scope="session")
def minio() -> Iterator[minio_server.MinioServer]:
    """A MinIO server for the whole run."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    if not effort.IS_NIGHTLY:
        pytest.skip("MinIO is built for minutes: nightly only")
    if (missing := minio_server.what_is_missing()) is not None:
        pytest.skip(f"no MinIO: {missing}")
    with minio_server.minio_server() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[azure_server.AzureServer]:
    """A server of Azure's blobs for the whole run."""
    pytest.importorskip("adlfs", reason="adlfs is not installed")
    if (missing := azure_server.what_is_missing()) is not None:
        pytest.skip(f"no Azure server: {missing}")
    with azure_server.azure_server() as server:
        yield server


@pytest.fixture(scope="session")
def running_entra(
    azure: azure_server.AzureServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EntraServer]:
    """Azure's blobs for clients with tokens, for the whole run."""
    pytest.importorskip("trustme", reason="trustme is not installed")
    from entra_server import entra_server

    with entra_server(tmp_path_factory.mktemp("entra")) as server:
        yield server


@pytest.fixture(scope="module")
def entra(running_entra: EntraServer) -> Iterator[EntraServer]:
    """The same server, which this process trusts."""
    with running_entra.trusted():
        yield running_entra


@pytest.fixture(scope="session")
def conditional_metastore(request: pytest.FixtureRequest) -> Iterator[hive_server.HiveServer]:
    """A Hive Metastore that alters a table only if it has the expected metadata file."""
    yield from _metastore(hive_server.CONDITIONAL, request)


@pytest.fixture(scope="session")
def locking_metastore(request: pytest.FixtureRequest) -> Iterator[hive_server.HiveServer]:
    """A Hive Metastore in which only locks keep writers from each other's changes."""
    yield from _metastore(hive_server.LOCKING, request)


def _metastore(version: str, request: pytest.FixtureRequest) -> Iterator[hive_server.HiveServer]:
    pytest.importorskip("thrift", reason="thrift is not installed")
    if (missing := hive_server.what_is_missing(version)) is not None:
        pytest.skip(f"no Hive Metastore: {missing}")
    with hive_server.hive_server(version, request.getfixturevalue("postgres")) as server:
        yield server


def _nessie(seconds: int) -> Iterator[nessie_server.NessieServer]:
    pytest.importorskip("requests", reason="requests is not installed")
    if not has_moto():
        pytest.skip("moto is not installed")
    if (missing := nessie_server.what_is_missing()) is not None:
        pytest.skip(f"no Nessie: {missing}")
    with moto_server() as s3, nessie_server.nessie_server(s3, seconds) as server:
        yield server
