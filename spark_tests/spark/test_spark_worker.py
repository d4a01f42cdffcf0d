"""What workers do so that PySpark's own calls take less."""

from __future__ import annotations

import importlib
import pickle
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.worker import acknowledge, spare_archives

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be told to")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that modules are imported from, as workers import PySpark."""
    path = tmp_path / "pyspark.zip"
    with ZipFile(path, "w") as archive:
        for name in ("spared_one", "spared_two"):
            archive.writestr(f"{name}.py", "")
            monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(path))
    return path


def finders(path: Path) -> list[str]:
    found = sys.path_importer_cache.items()
    return [name for name, finder in found if isinstance(finder, zipimporter) and str(path) in name]


def test_archives_of_spark_are_not_read_before_each_call(archive: Path) -> None:
    importlib.import_module("spared_one")
    assert finders(archive)
    spare_archives()
    assert not finders(archive)
    importlib.invalidate_caches()
    assert not finders(archive)


def test_modules_are_still_found_in_them(archive: Path) -> None:
    importlib.import_module("spared_one")
    spare_archives()
    importlib.import_module("spared_two")


def test_archives_of_users_are_read_again(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = archive.rename(archive.parent / "own.zip")
    monkeypatch.syspath_prepend(str(own))
    importlib.import_module("spared_two")
    spare_archives()
    assert finders(own)


@pytest.fixture
def delaying() -> Iterator[socket.socket]:
    """An end of a TCP connection that acknowledges late what it receives."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
        server.accept()[0],
    ):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        assert not acknowledges_at_once(near)
        yield near


def acknowledges_at_once(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))


@on_linux
def test_what_was_received_is_acknowledged_at_once(delaying: socket.socket) -> None:
    acknowledge()
    assert acknowledges_at_once(delaying)


@on_linux
def test_tasks_acknowledge_the_data_source_before_they_wait_for_their_partition(
    delaying: socket.socket,
) -> None:
    packed = pickle.dumps(IcebergDataSource({"path": "/nowhere"}))
    assert not acknowledges_at_once(delaying)
    pickle.loads(packed)
    assert acknowledges_at_once(delaying)


@on_linux
def test_connections_keep_their_mode_where_sockets_have_a_default_timeout(
    delaying: socket.socket,
) -> None:
    socket.setdefaulttimeout(5)
    try:
        acknowledge()
    finally:
        socket.setdefaulttimeout(None)
    assert delaying.getblocking()
    assert not acknowledges_at_once(delaying)


@pytest.mark.spark
def test_a_worker_that_has_read_keeps_no_archive_open(spark: SparkSession, tmp_path: Path) -> None:
    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from icebergds.spark.worker import settle_worker

        settle_worker()
        found = [name for name in sys.path_importer_cache if "pyspark.zip" in name]
        yield pa.RecordBatch.from_arrays([pa.array([len(found)], pa.int64())], ["held"])

    rows = spark.range(1).mapInArrow(held, "held long")
    assert {row.held for row in rows.collect()} == {0}
