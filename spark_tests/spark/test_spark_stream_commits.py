"""What a micro-batch commits to: the table that its rows were written for, and no other one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from rest_proxy import RestProxy, rest_proxy

from icebergds import Table, load_catalog, load_table
from icebergds.errors import AlreadyExistsError, ValidationError
from icebergds.spark import stream_writer, writer
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.stream_writer import IcebergStreamWriter
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField

if TYPE_CHECKING:
    from rest_server import RestServer

pytestmark = pytest.mark.spark

ROWS = pa.record_batch({"a": pa.array([1]), "b": pa.array([100])})
Run = Callable[[IcebergStreamWriter], Any]


def planned(location: Path | str, overwrite: bool = False, **options: str) -> IcebergStreamWriter:
    """As Spark makes one where it plans a batch, and another one where it commits it."""
    source = IcebergDataSource({**options, "path": str(location)})
    return source.streamWriter(StructType.fromDDL("a long, b long"), overwrite)


@dataclass(frozen=True)
class OnServer:
    """A table in a REST catalog, which the process that commits batches reaches by a proxy.

    Attributes:
        table: reached in another way.
        options: of writers in that process.
    """

    table: Table
    proxy: RestProxy
    options: dict[str, str]

    def committing(self, overwrite: bool = False, **options: str) -> IcebergStreamWriter:
        return planned("db.t", overwrite, **self.options, **options)

    def planning(self, overwrite: bool = False, **options: str) -> IcebergStreamWriter:
        """In another process."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stream_writer, "_commits_batches", lambda: False)
            uri = f"{self.options['catalog.uri']}/"
            return planned("db.t", overwrite, **{**self.options, "catalog.uri": uri}, **options)

    def see(self) -> None:
        """Loads the table in the process that commits batches."""
        properties = {
            name.removeprefix("catalog."): value
            for name, value in self.options.items()
            if name.startswith("catalog.")
        }
        load_catalog("lake", **properties).load_table("db.t")

    def requests(self) -> list[str]:
        """What was sent about the table since this was asked last."""
        found = [seen.method for seen in self.proxy.seen if "/tables/t" in seen.path]
        self.proxy.seen.clear()
        return found

    def rows(self) -> list[tuple[int, int]]:
        rows = self.table.refresh().scan().to_arrow().to_pylist()
        return sorted((row["a"], row["b"]) for row in rows)


@pytest.fixture
def on_server(rest: RestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnServer]:
    pytest.importorskip("requests", reason="requests is not installed")
    monkeypatch.setattr(stream_writer, "_commits_batches", lambda: True)
    path = rest.new_catalog()
    catalog = load_catalog("lake", uri=rest.uri(path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "a bigint, b bigint")
    with rest_proxy(rest.port) as proxy:
        yield OnServer(
            table,
            proxy,
            {
                "catalog": "lake",
                "catalog.uri": rest.uri(path, proxy.port),
                "catalog.rest-metrics-reporting-enabled": "false",
            },
        )


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


def test_batches_to_a_server_take_two_requests_each(on_server: OnServer, run_task: Run) -> None:
    for batch in range(3):
        message = run_task(on_server.planning())
        on_server.committing().commit([message], batch)
        # The first commit loads the table.
        assert on_server.requests() == ["GET", "GET", "POST"] if batch == 0 else ["GET", "POST"]
    assert on_server.rows() == [(1, 100)] * 3


def test_batch_is_committed_after_what_others_commit_meanwhile(
    on_server: OnServer, run_task: Run
) -> None:
    for batch in range(2):
        message = run_task(on_server.planning())
        writer = on_server.committing()
        on_server.table.append(pa.table({"a": [7], "b": [batch]}))
        writer.commit([message], batch)
    assert on_server.rows() == [(1, 100), (1, 100), (7, 0), (7, 1)]


def test_batch_that_was_planned_after_the_last_state_that_was_seen_is_committed(
    on_server: OnServer, run_task: Run
) -> None:
    options = {"isolation-level": "serializable"}
    on_server.committing(True, **options).commit([run_task(on_server.planning(True))], 0)
    on_server.table.refresh().append(pa.table({"a": [7], "b": [7]}))
    message = run_task(on_server.planning(True, **options))
    on_server.committing(True, **options).commit([message], 1)
    assert on_server.rows() == [(1, 100)]


def test_batch_that_is_repeated_is_committed_once(on_server: OnServer, run_task: Run) -> None:
    writer = on_server.committing()
    for _ in range(2):
        writer.commit([run_task(on_server.planning())], 0)
    on_server.committing().commit([run_task(on_server.planning())], 0)
    assert on_server.rows() == [(1, 100)]


def test_columns_that_were_added_since_the_last_batch_are_written(
    on_server: OnServer, run_task: Run
) -> None:
    with on_server.table.update_schema() as update:
        update.delete_column("b")
    on_server.see()
    with on_server.table.update_schema() as update:
        update.add_column("b", "bigint")
    on_server.committing().commit([run_task(on_server.planning())], 0)
    assert on_server.rows() == [(1, 100)]
