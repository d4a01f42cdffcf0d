"""Maintenance by a streaming query: when it is due, and that no batch depends on it."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from built.contents import live_files
from pyspark.sql.types import LongType, StructField, StructType

from icebergds import Table, load_catalog
from icebergds.errors import CommitConflictError, InvalidOptionError
from icebergds.operations.maintenance import maintain as actions, stream_maintenance
from icebergds.operations.maintenance.report import MaintenanceReport
from icebergds.operations.maintenance.stream_maintenance import StreamBatch, maintain_after_batch
from icebergds.operations.write.jobs import commit_batch
from icebergds.operations.write.options import parse_write_options
from icebergds.operations.write.stream_options import StreamMaintenance, streaming_write_options
from icebergds.spark import stream_writer, writer
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.write_jobs import plan_job
from icebergds.spec.manifest import FileContent

COLUMNS = StructType([StructField("id", LongType())])


def new_table(tmp_path: Path, **properties: str) -> Table:
    catalog = load_catalog("c", warehouse=str(tmp_path))
    return catalog.create_table("db.t", pa.schema({"id": pa.int64()}), properties=properties)


def write(
    table: Table,
    batch_id: int,
    every: int = 5,
    *,
    query: str = "q",
    branch: str = "main",
    max_bytes: int = 1 << 30,
    key: int | None = None,
) -> MaintenanceReport | None:
    """Writes a row, the number of the batch or a key to upsert, as Spark's processes do."""
    given = {"path": table.location(), "branch": branch, "create-branch": "true"}
    if key is not None:
        given |= {"write-operation": "upsert", "upsert-keys": "id"}
    planned = plan_job(parse_write_options(given), COLUMNS, overwrite=False)
    rows = pa.record_batch({"id": pa.array([batch_id if key is None else key], pa.int64())})
    result = planned.task(iter([rows]), partition_id=0, attempt_id=batch_id)
    job = planned.job
    committed = commit_batch(job, [result], query, batch_id, may_miss_batches=False)
    if committed is None:
        return None
    batch = StreamBatch(branch, query, batch_id)
    asked = StreamMaintenance(every, 60, max_bytes)
    return maintain_after_batch(committed.state, job.address, batch, asked)


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_the_table_is_maintained_after_every_nth_batch(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    due = [batch for batch in range(11) if write(table, batch) is not None]
    assert due == [4, 9]
    assert table.refresh().health().files.count <= 3
    assert ids(table) == list(range(11))


def test_batches_without_rows_do_not_keep_the_table_from_being_maintained(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    # Those that are due commit nothing.
    batches = [batch for batch in range(16) if (batch + 1) % 5]
    due = [batch for batch in batches if write(table, batch) is not None]
    assert due == [5, 10, 15]


def test_queries_and_branches_count_by_themselves(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for batch in range(4):
        assert write(table, batch, query="one") is None
        assert write(table, batch, query="two", branch="audit") is None
    assert write(table, 4, query="two", branch="audit") is not None
    assert table.refresh().health("audit").files.count == 1
    assert table.health().files.count == 4


def test_batches_are_written_once_after_their_snapshots_have_expired(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"history.expire.max-snapshot-age-ms": "-1000"})
    for batch in range(5):
        write(table, batch)
    summaries = [snapshot.summary for snapshot in table.refresh().snapshots()]
    assert not any("spark.sql.streaming.queryId" in summary for summary in summaries)
    for batch in range(5):
        assert write(table, batch) is None
    write(table, 5)
    assert ids(table) == list(range(6))


def test_what_upserts_leave_is_converted_and_rewritten(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"format-version": "3"})
    for batch in range(10):
        report = write(table, batch, 10, key=batch % 3)
    assert report is not None
    assert report.after.is_healthy
    assert (report.after.files.count, report.after.deletes.count) == (1, 0)
    assert ids(table) == [0, 1, 2]


def test_batches_beyond_the_limit_are_converted_each_once(tmp_path: Path) -> None:
    """Others delete their rows by position in their own commits."""
    limit = {"write.upsert.mode": "auto", "write.upsert.resolve-limit-bytes": "100000"}
    table = new_table(tmp_path, **{"format-version": "3", **limit})
    few, many = pa.array(range(-100, 0), pa.int64()), pa.array(range(150_000), pa.int64())
    for given in (few, many):
        table.append(pa.table({"id": given}))
    chosen, converted, told_by = "", [], "icebergds.keys-deleted-by"
    for batch, key in enumerate([-50, 5_000, 40_000, -20, 7_000, 90_000]):
        report = write(table, batch, 3, key=key)
        summaries = [snapshot.summary for snapshot in table.refresh().snapshots()]
        chosen += [told[told_by][0] for told in summaries if told_by in told][-1]
        if report is not None:
            results = {step.advice.action: step.result for step in report.steps}
            found = results["convert_equality_deletes"]
            converted.append(found.converted_equality_delete_files_count)
            assert report.after.deletes.equality_delete_files == 0
    # Maintenance makes one file of all.
    assert chosen == "peeeee"
    assert converted == [2, 3]
    assert ids(table) == list(range(-100, 150_000))


def test_what_one_run_may_not_read_is_converted_by_several(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"format-version": "3", "write.upsert.mode": "equality-deletes"})
    for first in range(5):
        # Bounds leave no file out.
        table.append(pa.table({"id": pa.array(range(first, 100_000, 5), pa.int64())}))
    largest = max(file.file_size_in_bytes for file in live_files(table.location()))
    limit, notes = largest * 3 // 2, []
    for batch in range(14):
        report = write(table, batch, 2, key=batch * 7_019, max_bytes=limit)
        if report is not None:
            (step,) = (s for s in report.steps if s.action == "convert_equality_deletes")
            assert step.size_in_bytes <= limit
            notes.append(step.note)
    # Five runs compare a file each with the keys of the first two batches, then come the others.
    assert all(note.endswith("left for the next time") for note in notes)
    left = [f for f in live_files(table.location()) if f.content is FileContent.EQUALITY_DELETES]
    assert 0 < len(left) < 14
    assert ids(table) == list(range(100_000))


def test_the_budget_of_bytes_is_kept(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for batch in range(5):
        report = write(table, batch, max_bytes=10)
    assert report is not None
    assert [step.state for step in report.steps] == ["skipped"]
    assert table.refresh().health().files.count == 5


def test_a_failure_is_logged_with_the_table_and_fails_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise CommitConflictError("others won")

    table = new_table(tmp_path)
    monkeypatch.setattr(actions, "rewrite_data_files", fail)
    with caplog.at_level(logging.WARNING):
        for batch in range(5):
            write(table, batch)
    warning = caplog.messages[-1]
    assert table.location() in warning
    assert "batch 4 of the streaming query q is committed" in warning
    assert "others won" in warning
    assert ids(table) == list(range(5))


def test_a_table_that_is_gone_fails_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise ConnectionError("catalog down")

    monkeypatch.setattr(stream_maintenance, "load_for_write", fail)
    assert write(new_table(tmp_path), 0, 1) is None
    assert "catalog down" in caplog.text


def test_the_sink_maintains_where_it_commits_and_not_when_a_batch_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"sql.streaming.queryId": "q"}
    context = SimpleNamespace(
        partitionId=lambda: 0, taskAttemptId=lambda: 0, getLocalProperty=names.get
    )
    for module in (stream_writer, writer):
        monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: context))
    table = new_table(tmp_path)
    source = IcebergDataSource({"path": table.location(), "maintain-every": "5"})

    def commit(batch_id: int) -> int:
        # Spark plans a batch, runs its tasks and commits it in processes of their own.
        task = pickle.loads(pickle.dumps(source.streamWriter(COLUMNS, False)))
        message = task.write(iter([pa.record_batch({"id": pa.array([batch_id], pa.int64())})]))
        source.streamWriter(COLUMNS, False).commit([message], batch_id)
        return len(live_files(table.location()))

    assert [commit(batch_id) for batch_id in range(6)] == [1, 2, 3, 4, 1, 2]
    snapshots = table.refresh().snapshots()
    assert commit(4) == 2
    assert table.refresh().snapshots() == snapshots
    assert ids(table) == list(range(6))


def test_options_of_maintenance_are_parsed_and_not_those_of_the_write() -> None:
    given = {"Maintain-Every": "10", "maintain-max-seconds": "5", "maintain-max-bytes": "1000"}
    found = streaming_write_options({**given, "branch": "b"})
    assert found.maintenance == StreamMaintenance(10, 5, 1000)
    assert found.write == {"branch": "b"}
    assert streaming_write_options({}).maintenance is None
    by_default = streaming_write_options({"maintain-every": "1"}).maintenance
    assert by_default == StreamMaintenance(1, 60, 1 << 30)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"maintain-every": "0"}, "'maintain-every' = '0': expected a number above 0"),
        ({"maintain-every": "often"}, "'maintain-every' = 'often': expected a whole number"),
        ({"maintain-every": "5", "maintain-max-bytes": "1 GB"}, "'maintain-max-bytes' = '1 GB'"),
        ({"maintain-max-seconds": "5"}, "set 'maintain-every' too"),
        ({"maintain-evry": "5"}, "did you mean 'maintain-every'?"),
    ],
)
def test_wrong_options_of_maintenance_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        streaming_write_options(given)
    assert message in str(raised.value)
