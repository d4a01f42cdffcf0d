"""Commits of a streaming query's batches: merged manifests, and what the table remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from icebergds import Table, load_catalog
from icebergds.catalog.address import TableAddress
from icebergds.commit.idempotent_writes import IdempotentWrite
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.commit.snapshot_commit import Committed, commit_snapshot
from icebergds.errors import ValidationError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.write import jobs
from icebergds.operations.write.jobs import commit_batch
from icebergds.operations.write.options import parse_write_options
from icebergds.spark.write_jobs import plan_job
from icebergds.spec.updates.table_updates import SetProperties

COLUMNS = StructType([StructField("id", LongType())])
DAY_MS = 24 * 60 * 60 * 1000


def new_table(tmp_path: Path, **properties: str) -> Table:
    catalog = load_catalog("c", warehouse=str(tmp_path))
    return catalog.create_table("db.t", pa.schema({"id": pa.int64()}), properties=properties)


def write(table: Table, batch_id: int, query: str = "q") -> Committed | None:
    """Writes one row, the number of the batch, as Spark's processes do for a query."""
    planned = plan_job(parse_write_options({"path": table.location()}), COLUMNS, overwrite=False)
    rows = pa.record_batch({"id": pa.array([batch_id], pa.int64())})
    result = planned.task(iter([rows]), partition_id=0, attempt_id=batch_id)
    return commit_batch(planned.job, [result], query, batch_id, may_miss_batches=False)


def manifests(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return len(read_snapshot_manifests(table.io, snapshot))


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def set_property(table: Table, name: str, value: str) -> None:
    def produce(_: TableState) -> Change:
        return Change([], [SetProperties({name: value})])

    operations = TableAddress(table.location()).operations()
    commit_change(operations, produce, lambda state: name in state.metadata.properties)


@pytest.mark.parametrize("format_version", ["1", "2", "3"])
def test_manifests_of_a_table_that_is_written_by_streams_only_have_a_limit(
    tmp_path: Path, format_version: str
) -> None:
    table = new_table(
        tmp_path, **{"commit.manifest.min-count-to-merge": "5", "format-version": format_version}
    )
    found = []
    for batch in range(23):
        write(table, batch)
        found.append(manifests(table))
    assert max(found) <= 5
    assert ids(table) == list(range(23))
    operations = [snapshot.operation for snapshot in table.snapshots()]
    assert operations.count("append") == 23
    assert operations.count("replace") >= 4


def test_merged_manifests_keep_the_ids_of_rows(tmp_path: Path) -> None:
    table = new_table(
        tmp_path, **{"commit.manifest.min-count-to-merge": "3", "format-version": "3"}
    )
    row_ids: dict[int, int] = {}
    for batch in range(8):
        write(table, batch)
        rows = table.refresh().scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
        found = {row["id"]: row["_row_id"] for row in rows}
        assert found.items() >= row_ids.items()
        assert len(set(found.values())) == batch + 1
        row_ids = found


def test_table_that_merges_no_manifests_keeps_them(tmp_path: Path) -> None:
    properties = {
        "commit.manifest.min-count-to-merge": "2",
        "commit.manifest-merge.enabled": "false",
    }
    table = new_table(tmp_path, **properties)
    for batch in range(4):
        write(table, batch)
    assert manifests(table) == 4


def test_batch_stands_where_manifests_cannot_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> Committed:
        raise OSError("no space left")

    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"})
    monkeypatch.setattr(jobs, "commit_snapshot", fails)
    for batch in range(3):
        assert write(table, batch) is not None
    assert ids(table) == [0, 1, 2]
    assert "were not merged: no space left" in caplog.text


def test_batch_stands_where_another_engine_set_a_property_that_no_merge_can_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table(tmp_path)
    set_property(table, "commit.manifest.min-count-to-merge", "many")
    for batch in range(2):
        assert write(table, batch) is not None
    assert ids(table) == [0, 1]
    assert "were not merged: " in caplog.text


def test_manifests_that_another_stream_merged_are_no_reason_to_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def after_another(*arguments: Any) -> Committed:
        commit_snapshot(*arguments)
        return commit_snapshot(*arguments)

    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"})
    monkeypatch.setattr(jobs, "commit_snapshot", after_another)
    for batch in range(3):
        assert write(table, batch) is not None
    assert manifests(table) == 1
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_repeated_batch_of_merged_manifests_adds_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"})
    for batch in (0, 1, 1, 2, 2):
        write(table, batch)
    assert ids(table) == [0, 1, 2]


def marks(table: Table) -> set[str]:
    prefix = "icebergds.txn.main."
    return {
        name.removeprefix(prefix) for name in table.refresh().properties if name.startswith(prefix)
    }


def test_queries_that_ended_long_ago_are_forgotten(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(table, 0, "ended")
    record = table.refresh().properties["icebergds.txn.main.ended"]
    set_property(table, "icebergds.txn.main.old", aged(record, 91))
    set_property(table, "icebergds.txn.main.paused", aged(record, 89))
    set_property(table, "icebergds.txn.main.job", "7@1@1")
    write(table, 0)
    assert marks(table) == {"ended", "paused", "job", "q"}


def test_batch_removes_nothing_if_only_its_own_query_is_old(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(table, 0)
    record = table.refresh().properties["icebergds.txn.main.q"]
    set_property(table, "icebergds.txn.main.q", aged(record, 91))
    batch = IdempotentWrite("q", 1, is_batch=True)
    updates = batch.property_updates(table.refresh().metadata, "main", None)
    assert [type(update) for update in updates] == [SetProperties]


def test_table_says_how_long_queries_are_remembered(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"icebergds.txn-max-age-ms": str(DAY_MS)})
    write(table, 0, "ended")
    record = table.refresh().properties["icebergds.txn.main.ended"]
    set_property(table, "icebergds.txn.main.ended", aged(record, 2))
    write(table, 0)
    assert marks(table) == {"q"}


def test_query_that_was_forgotten_does_not_go_on_silently(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(table, 0)
    with pytest.raises(ValidationError, match="on-missing-batches"):
        write(table, 4, "forgotten")
    assert ids(table) == [0]


def aged(record: str, days: int) -> str:
    """The record of a batch as it would stand there if it had been written days before."""
    batch, time = record.rsplit("@t", 1)
    return f"{batch}@t{int(time) - days * DAY_MS}"


def test_a_batch_of_global_deletes_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark plans a batch twice: to write it, and to commit it."""
    columns = StructType([StructField("id", LongType()), StructField("part", LongType())])
    schema = pa.schema({"id": pa.int64(), "part": pa.int64()})
    table = load_catalog("c", warehouse=str(tmp_path)).create_table(
        "db.t",
        schema,
        partition_spec="part",
        properties={"write.upsert.mode": "equality-deletes"},
    )
    given = {"path": table.location(), "write-operation": "upsert", "upsert-keys": "id"}
    for batch_id in range(2):
        options = parse_write_options(given)
        planned, _ = (plan_job(options, columns, overwrite=False) for _ in range(2))
        rows = pa.record_batch({"id": [batch_id], "part": [1]}, schema=schema)
        result = planned.task(iter([rows]), partition_id=0, attempt_id=batch_id)
        commit_batch(planned.job, [result], "q", batch_id, may_miss_batches=False)
        (warning,) = (text for text in caplog.messages if "global equality deletes" in text)
        assert "partition spec (part)" in warning
        caplog.clear()


def test_deletes_of_one_partition_are_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schema = pa.schema({"id": pa.int64(), "part": pa.int64()})
    table = load_catalog("c", warehouse=str(tmp_path)).create_table(
        "db.t", schema, partition_spec="part"
    )
    by_key = {"write.upsert.mode": "equality-deletes"}
    table.upsert(pa.table({"id": [1], "part": [1]}), ["id", "part"], options=by_key)
    assert not caplog.messages
