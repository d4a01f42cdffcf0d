"""Passwords of catalogs stay with the processes that plan and commit."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.cloudpickle import dumps
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from spark_reads import ids, load
from spark_writes import save

from icebergds import load_catalog
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.errors import IcebergError, InvalidOptionError
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import plan_scan, task_groups_of
from icebergds.operations.write.options import WriteOptions, parse_write_options
from icebergds.operations.write.position_changes import (
    PositionChange,
    RowChangeMode,
    plan_position_change,
)
from icebergds.scan.packing import pack_scan, unpack_task_group
from icebergds.spark import (
    sealed_scans,
    stream_writer as stream_writer_module,
    writer as writer_module,
)
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.planned_load import PLANNED_SCAN
from icebergds.spark.reader import IcebergPartition
from icebergds.spark.write_jobs import plan_job
from icebergds.spark.writer import IcebergWriter, ReportingTask

pytestmark = pytest.mark.spark

SECRET = "hunter2"
ID = StructType([StructField("id", LongType())])


@pytest.fixture
def catalog(tmp_path: Path) -> dict[str, str]:
    """The properties of a catalog with the table `db.t`; its password and uri are secret."""
    pytest.importorskip("sqlalchemy")
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/{SECRET}.db",
        "jdbc.password": SECRET,
        "warehouse": str(tmp_path / "warehouse"),
        "s3.secret-access-key": "for storage",
    }
    lake = load_catalog("lake", **properties)
    lake.create_namespace("db")
    lake.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    return properties


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets tasks of writers run in this process."""
    properties = {"sql.streaming.queryId": "q"}
    context = SimpleNamespace(
        partitionId=lambda: 0, taskAttemptId=lambda: 0, getLocalProperty=properties.get
    )
    for module in (writer_module, stream_writer_module):
        monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: context))


def options_of(catalog: dict[str, str]) -> dict[str, str]:
    named = {f"catalog.{name}": value for name, value in catalog.items()}
    return {"path": "db.t", "catalog": "lake", **named}


def sources(catalog: dict[str, str]) -> list[IcebergDataSource]:
    """Sources whose catalog is in the options, and in the configuration of a session."""

    class SessionDataSource(IcebergDataSource):
        session_catalogs = {"lake": catalog}  # noqa: RUF012

    in_session = SessionDataSource({"path": "db.t", "catalog": "lake"})
    return [IcebergDataSource(options_of(catalog)), in_session]


def in_closure(*values: Any) -> bytes:
    """A function that uses the values, as Spark pickles it for tasks."""
    return dumps((lambda: values, "its return type"))


def holds_secret(pickled: bytes | Iterable[bytes]) -> bool:
    every = [pickled] if isinstance(pickled, bytes) else pickled
    return any(SECRET.encode() in one for one in every)


def unpacked(partitions: Iterable[Any]) -> list[bytes]:
    found = []
    for partition in partitions:
        assert isinstance(partition, IcebergPartition)
        found.append(dumps(unpack_task_group(partition.packed)))
    return found


def test_tasks_of_reads_do_not_get_the_password(catalog: dict[str, str]) -> None:
    for source in sources(catalog):
        schema = source.schema()
        reader = source.reader(schema)
        assert not holds_secret([in_closure(reader, source), *unpacked(reader.partitions())])
        assert b"for storage" in in_closure(reader, source)


def test_tasks_of_streams_do_not_get_the_password(catalog: dict[str, str]) -> None:
    for source in sources(catalog):
        reader = source.streamReader(source.schema())
        start = reader.initialOffset()
        partitions = reader.partitions(start, reader.latestOffset())
        assert not holds_secret([in_closure(reader, source), *unpacked(partitions)])


def test_tasks_of_planned_scans_do_not_get_the_password(catalog: dict[str, str]) -> None:
    table = load_catalog("lake", **catalog).load_table("db.t")
    scan = plan_scan(table._state, ReadOptions(), for_native=False)
    assert not holds_secret(dumps((scan.plan, task_groups_of(scan, scan.files))))


def test_tasks_do_not_get_the_key_of_planned_scans(catalog: dict[str, str]) -> None:
    table = load_catalog("lake", **catalog).load_table("db.t")
    scan = plan_scan(table._state, ReadOptions(), for_native=False)
    kind, key = sealed_scans._source()
    packed = base64.b64encode(pack_scan(scan.plan, task_groups_of(scan, scan.files), key)).decode()
    source = kind({PLANNED_SCAN: packed})
    # Spark's planning process gets it with the class.
    assert key in dumps(source)
    reader = source.reader(source.schema())
    partitions = reader.partitions()
    assert len(partitions) == 1
    assert not any(key in one for one in (in_closure(reader, source), *unpacked(partitions)))
    with pytest.raises(InvalidOptionError, match="a packed scan holds a"):
        IcebergDataSource({PLANNED_SCAN: packed}).schema()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"write-operation": "upsert", "upsert-keys": "id"},
        {"path": "db.new", "create": "true"},
    ],
    ids=["append", "upsert", "create"],
)
def test_tasks_of_writes_do_not_get_the_password(
    catalog: dict[str, str], change: dict[str, str], tasks: None
) -> None:
    for source in sources(catalog):
        source.options.update(change)
        writer = source.writer(ID, overwrite=False)
        task = in_closure(writer)
        assert not holds_secret(task)
        function, _ = pickle.loads(task)
        message = function()[0].write(iter([pa.record_batch({"id": pa.array([3])})]))
        assert not holds_secret(dumps(message))
        planned = plan_job(parse_write_options(source.options), ID, overwrite=False)
        assert not holds_secret(dumps(ReportingTask(planned.task, ("id",))))


@pytest.mark.parametrize("mode", list(RowChangeMode))
def test_tasks_that_change_rows_do_not_get_the_password(
    catalog: dict[str, str], mode: RowChangeMode
) -> None:
    table = load_for_write(TableAddress("db.t", "lake", catalog))
    scan = plan_scan(table.state, ReadOptions(), for_native=False)
    change = PositionChange(mode, "delete", None, scan.files)
    rows = pa.schema([("_file", pa.string()), ("_pos", pa.int64()), ("_write", pa.bool_())])
    planned = plan_position_change(table, WriteOptions(table.address), change, rows)
    assert not holds_secret(dumps((ReportingTask(planned.task, ()), planned.targets)))


def test_a_write_is_committed_with_the_password(catalog: dict[str, str], tasks: None) -> None:
    for number, source in enumerate(sources(catalog)):
        source.options.update({"path": f"db.new{number}", "create": "true"})
        writer = source.writer(ID, overwrite=False)
        function, _ = pickle.loads(in_closure(writer))
        to_commit: IcebergWriter = pickle.loads(dumps(writer))
        to_commit.commit([function()[0].write(iter([pa.record_batch({"id": pa.array([3])})]))])
    lake = load_catalog("lake", **catalog)
    for number in range(2):
        rows = lake.load_table(f"db.new{number}").scan().to_arrow()
        assert rows["id"].to_pylist() == [3]


def test_a_writer_of_tasks_commits_nothing(catalog: dict[str, str]) -> None:
    writer = sources(catalog)[0].writer(ID, overwrite=False)
    function, _ = pickle.loads(in_closure(writer))
    with pytest.raises(IcebergError, match="kept from Spark's tasks"):
        function()[0].commit([])


def test_batches_of_streams_are_committed_without_telling_tasks_the_password(
    catalog: dict[str, str], tasks: None
) -> None:
    for number, source in enumerate(sources(catalog)):
        task = in_closure(source.streamWriter(ID, overwrite=False))
        assert not holds_secret(task)
        function, _ = pickle.loads(task)
        message = function()[0].write(iter([pa.record_batch({"id": pa.array([number])})]))
        assert not holds_secret(dumps(message))
        source.streamWriter(ID, overwrite=False).commit([pickle.loads(dumps(message))], number)
    rows = load_catalog("lake", **catalog).load_table("db.t").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [0, 1, 1, 2]


def test_spark_writes_with_the_password_and_its_plans_do_not_show_it(
    spark: SparkSession, catalog: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(catalog)
    del options["path"]
    save(spark.range(3, 5), "db.t", **options)
    rows = load(spark, "db.t", **options)
    assert ids(rows) == [1, 2, 3, 4]
    capsys.readouterr()
    for mode in ("extended", "formatted"):
        rows.explain(mode)
    shown = capsys.readouterr().out
    assert "icebergpy" in shown
    assert SECRET not in shown
