"""Writes that fail leave the table as it was, and no files as far as that can be known."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from built.contents import files_besides_metadata
from pyspark.sql import SparkSession
from spark_reads import ids, load
from spark_writes import create, planned_write, refused, save

import icebergds
from icebergds import load_table
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.spark import writer as writer_module
from icebergds.spark.writer import IcebergWriter, TaskDone

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

Task = Callable[[IcebergWriter, int], TaskDone]


@pytest.fixture
def run_task(monkeypatch: pytest.MonkeyPatch) -> Task:
    """Runs a task of a writer, as it arrives there, in this process; it writes its number."""

    def run(writer: IcebergWriter, number: int) -> TaskDone:
        context = SimpleNamespace(partitionId=lambda: number, taskAttemptId=lambda: number)
        monkeypatch.setattr(writer_module, "TaskContext", SimpleNamespace(get=lambda: context))
        copied: IcebergWriter = pickle.loads(pickle.dumps(writer))
        return copied.write(iter([pa.record_batch({"id": pa.array([number])})]))

    return run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    planned_write("id long", tmp_path / "t", create="true").commit([])
    return tmp_path / "t"


def stored_ids(path: Path) -> list[int]:
    return sorted(load_table(path).scan().to_arrow()["id"].to_pylist())


def test_files_of_finished_tasks_go_when_the_job_fails(table: Path, run_task: Task) -> None:
    writer = planned_write("id long", table)
    messages = [run_task(writer, 1), None, run_task(writer, 2)]
    assert len(files_besides_metadata(table)) == 2
    pickle.loads(pickle.dumps(writer)).abort(messages)
    assert files_besides_metadata(table) == set()


def test_files_of_a_commit_that_nobody_knows_of_stay(table: Path, run_task: Task) -> None:
    """All tasks were done, so the commit had begun, and its process may have died."""
    writer = planned_write("id long", table)
    writer.abort([run_task(writer, 1)])
    assert len(files_besides_metadata(table)) == 1


def test_files_that_were_committed_stay(table: Path, run_task: Task) -> None:
    writer = planned_write("id long", table)
    message = run_task(writer, 1)
    writer.commit([message])
    writer.abort([message, None])
    assert stored_ids(table) == [1]


def test_abort_never_raises_and_deletes_nothing_in_doubt(table: Path, run_task: Task) -> None:
    writer = planned_write("id long", table)
    message = run_task(writer, 1)
    for file in (table / "metadata").glob("*.metadata.json"):
        file.write_text("{")
    writer.abort([message, None])
    assert len(files_besides_metadata(table)) == 1


def test_files_of_a_table_that_never_came_to_be_go(tmp_path: Path, run_task: Task) -> None:
    writer = planned_write("id long", tmp_path / "t", create="true")
    writer.abort([run_task(writer, 1), None])
    assert files_besides_metadata(tmp_path / "t") == set()


def test_commit_that_fails_for_certain_deletes_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark.range(1), tmp_path / "t")
    (first,) = load_table(path).snapshots()
    save(spark.range(1, 2), path)
    message = refused(
        spark.range(2, 3),
        path,
        "overwrite",
        **{"isolation-level": "serializable", "validate-from-snapshot-id": first.snapshot_id},
    )
    assert "icebergds.errors.ValidationError" in message
    assert ids(load(spark, path)) == [0, 1]


def test_write_for_a_table_that_was_replaced_is_refused(
    tmp_path: Path, table: Path, run_task: Task
) -> None:
    writer = planned_write("id long", table)
    message = run_task(writer, 1)
    table.rename(tmp_path / "gone")
    planned_write("id long", table, create="true").commit([])
    with pytest.raises(Exception, match="dropped and re-created"):
        writer.commit([message])
    assert stored_ids(table) == []


def test_what_travels_to_tasks_does_not_grow_with_the_table(table: Path) -> None:
    def size() -> int:
        return len(pickle.dumps(planned_write("id long", table)))

    before = size()
    for number in range(10):
        load_table(table).append(pa.table({"id": [number]}))
    assert size() < before + 100
    assert before < 10_000


def test_tasks_import_nothing_that_they_do_not_need(table: Path, tmp_path: Path) -> None:
    """Each Python worker of each executor imports it before its first row."""
    (tmp_path / "writer").write_bytes(pickle.dumps(planned_write("id long", table)))
    program = (
        "import pickle, sys; pickle.load(open('writer', 'rb')); print('\\n'.join(sys.modules))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(icebergds.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(finished.stdout.splitlines())
    assert "icebergds.write.task" in imported
    for needless in ("icebergds.commit.data_files", "icebergds.scan", "pandas", "pyarrow.orc"):
        assert needless not in imported


def test_threads_need_a_session_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own restriction, and the remedy that docs/writing.md names."""
    found: list[str] = []

    def write() -> None:
        rows = spark.range(1)
        try:
            create(rows, tmp_path / "t")
        except Exception as error:
            found.append(str(error))
        spark.createDataFrame([], "a int")
        create(rows, tmp_path / "t")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert len(found) == 1
    assert "DATA_SOURCE_NOT_FOUND" in found[0]
    assert ids(load(spark, tmp_path / "t")) == [0]


def test_tables_write_and_scan_in_any_thread(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path / "t", create="true")
    found: list[object] = []

    def append_and_read() -> None:
        table = load_table(str(tmp_path / "t"))
        table.append(spark.range(2, 4))
        found.append(ids(table.scan().to_df(spark)))

    thread = threading.Thread(target=append_and_read)
    thread.start()
    thread.join()
    assert found == [[0, 1, 2, 3]]


def test_what_a_table_refuses_of_a_frame_is_our_error(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path / "t", create="true")
    table = load_table(str(tmp_path / "t"))
    with pytest.raises(InvalidDataError, match="column 'idd'") as refused:
        table.append(spark.range(2).withColumnRenamed("id", "idd"))
    assert "Traceback" not in str(refused.value)
    with pytest.raises(InvalidOptionError, match="did you mean 'branch'"):
        table.append(spark.range(2), options={"brunch": "x"})
    with pytest.raises(InvalidOptionError, match="isolation-level"):
        table.append(spark.range(2), options={"isolation-level": "x"})


@pytest.mark.parametrize("message", ["only line", "first line\n  second: x\n\n\tlast"])
def test_an_error_of_a_task_has_all_its_lines_and_no_others(
    spark: SparkSession, tmp_path: Path, message: str
) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()
        raise InvalidDataError(message)

    save(spark.range(2), tmp_path / "t", create="true")
    rows = spark.range(1).mapInArrow(fail, "id long")
    with pytest.raises(InvalidDataError) as refused:
        load_table(str(tmp_path / "t")).append(rows)
    assert str(refused.value) == message
