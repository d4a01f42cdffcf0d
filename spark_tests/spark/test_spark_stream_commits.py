"""What a micro-batch commits to: the table that its rows were written for, and no other one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from icebergds import load_catalog, load_table
from icebergds.errors import AlreadyExistsError, ValidationError
from icebergds.spark import stream_writer, writer
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.stream_writer import IcebergStreamWriter
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField

pytestmark = pytest.mark.spark

ROWS = pa.record_batch({"a": pa.array([1]), "b": pa.array([100])})
Run = Callable[[IcebergStreamWriter], Any]


def planned(location: Path, overwrite: bool = False, **options: str) -> IcebergStreamWriter:
    """As Spark makes one where it plans a batch, and another one where it commits it."""
    source = IcebergDataSource({**options, "path": str(location)})
    return source.streamWriter(StructType.fromDDL("a long, b long"), overwrite)


@pytest.fixture
def run_task(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the only task of a micro-batch in this process."""
    names = {"sql.streaming.queryId": "q"}
    context = SimpleNamespace(
        partitionId=lambda: 0, taskAttemptId=lambda: 0, getLocalProperty=names.get
    )
    for module in (stream_writer, writer):
        monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: context))
    return lambda made: made.write(iter([ROWS]))


def create(directory: Path, *names: str) -> Path:
    fields = tuple(NestedField(at, name, LONG) for at, name in enumerate(names, 1))
    catalog = load_catalog("lake", warehouse=str(directory))
    return Path(catalog.create_table("db.t", Schema(fields)).location())


def ids(location: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = load_table(location).scan().to_arrow().to_pylist()
    return rows


def test_batch_is_committed_by_another_writer_than_the_one_that_wrote(
    tmp_path: Path, run_task: Run
) -> None:
    location = create(tmp_path, "a", "b")
    message = run_task(planned(location))
    planned(location).commit([message], 0)
    assert ids(location) == [{"a": 1, "b": 100}]


def test_table_that_is_made_anew_during_a_batch_gets_none_of_it(
    tmp_path: Path, run_task: Run
) -> None:
    location = create(tmp_path, "a", "b")
    message = run_task(planned(location))
    shutil.rmtree(location)
    create(tmp_path, "b", "a")
    with pytest.raises(ValidationError, match="dropped and re-created"):
        planned(location).commit([message], 0)
    assert ids(location) == []


@pytest.mark.usefixtures("run_task")
def test_table_that_is_made_anew_during_an_empty_batch_does_not_record_it(tmp_path: Path) -> None:
    location = create(tmp_path, "a", "b")
    message = planned(location).write(iter([]))
    shutil.rmtree(location)
    create(tmp_path, "a", "b")
    before = load_table(location).metadata
    with pytest.raises(ValidationError, match="dropped and re-created"):
        planned(location).commit([message], 0)
    assert load_table(location).metadata == before


def test_table_that_is_made_anew_during_an_upsert_keeps_its_partition_specs(
    tmp_path: Path, run_task: Run
) -> None:
    def create_partitioned() -> Path:
        catalog = load_catalog("lake", warehouse=str(tmp_path))
        return Path(catalog.create_table("db.t", "a bigint, b bigint", None, "b").location())

    location = create_partitioned()
    options = {"write-operation": "upsert", "upsert-keys": "a"}
    message = run_task(planned(location, **options))
    shutil.rmtree(location)
    before = load_table(create_partitioned()).metadata
    with pytest.raises(ValidationError, match="dropped and re-created"):
        planned(location, **options).commit([message], 0)
    assert load_table(location).metadata == before


def test_table_that_another_writer_creates_during_a_batch_gets_none_of_it(
    tmp_path: Path, run_task: Run
) -> None:
    location = tmp_path / "db" / "t"
    message = run_task(planned(location, create="true"))
    create(tmp_path, "b", "a")
    with pytest.raises(AlreadyExistsError):
        planned(location, create="true").commit([message], 0)
    assert ids(location) == []


def test_rows_that_others_add_during_a_complete_batch_are_a_conflict(
    tmp_path: Path, run_task: Run
) -> None:
    location = create(tmp_path, "a", "b")
    options = {"isolation-level": "serializable"}
    message = run_task(planned(location, True, **options))
    load_table(location).append(pa.table({"a": [7], "b": [7]}))
    with pytest.raises(ValidationError):
        planned(location, True, **options).commit([message], 0)
    assert ids(location) == [{"a": 7, "b": 7}]
