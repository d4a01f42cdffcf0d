"""What workers do so that PySpark's own calls take less."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icebergds.spark.worker import spare_archives


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


@pytest.mark.spark
def test_a_worker_that_has_read_keeps_no_archive_open(spark: SparkSession, tmp_path: Path) -> None:
    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from icebergds.spark.worker import settle_worker

        settle_worker()
        found = [name for name in sys.path_importer_cache if "pyspark.zip" in name]
        yield pa.RecordBatch.from_arrays([pa.array([len(found)], pa.int64())], ["held"])

    rows = spark.range(1).mapInArrow(held, "held long")
    assert {row.held for row in rows.collect()} == {0}
