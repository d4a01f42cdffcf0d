"""Reports of scans, commits and tasks that a user's reporter gets, as Java's `MetricsReporter`."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import icebergds
from icebergds import otel
from icebergds.metrics import (
    REPORTER,
    CommitReport,
    MetricsReport,
    ScanReport,
    TaskReport,
    _reporter,
)

_ROWS = pa.table({"id": [1, 2, 3], "day": ["a", "b", "b"]})
_SCHEMA = "id bigint, day string"


@pytest.fixture
def got(monkeypatch: pytest.MonkeyPatch) -> list[MetricsReport]:
    """What `mine.report` was called with."""
    mine, got = ModuleType("mine"), list[MetricsReport]()

    class WithMethod:
        def report(self, report: MetricsReport) -> None:
            got.append(report)

    def fails(report: MetricsReport) -> None:
        raise OSError("nobody listens")

    vars(mine).update(report=got.append, WithMethod=WithMethod, fails=fails, number=1)
    monkeypatch.setitem(sys.modules, "mine", mine)
    _reporter.cache_clear()
    return got


@pytest.mark.parametrize("reporter", ["mine.report", "mine.WithMethod"])
@pytest.mark.parametrize("by", ["catalog", "location"])
def test_commits_scans_and_tasks_are_reported(
    tmp_path: Path, got: list[MetricsReport], reporter: str, by: str
) -> None:
    table = _table(tmp_path, reporter)
    if by == "location":
        table = icebergds.load_table(table.location(), properties={REPORTER: reporter})
    table.append(_ROWS)
    assert [type(each) for each in got] == [TaskReport, CommitReport]
    written, commit = got
    assert isinstance(written, TaskReport)
    assert (written.task, written.table_location) == ("write", table.location())
    assert written.metrics == {"files": 2, "rows": 3, "bytes": _size(table)}
    snapshot = table.current_snapshot()
    assert isinstance(commit, CommitReport)
    assert snapshot is not None
    assert commit.table_name == table.name
    assert commit.snapshot_id == snapshot.snapshot_id
    assert (commit.sequence_number, commit.operation) == (1, "append")
    expected = {"attempts": 1, "added-data-files": 2, "added-records": 3, "total-records": 3}
    assert expected.items() <= dict(commit.metrics).items()
    assert commit.metrics["added-files-size-bytes"] == _size(table)
    assert commit.total_duration > 0
    got.clear()
    assert table.scan("day = 'b' and id > 12345", columns=["id"]).to_arrow().num_rows == 0
    assert table.scan("day = 'b'", columns=["id"]).to_arrow().num_rows == 2
    assert [type(each) for each in got] == [ScanReport, ScanReport, TaskReport]
    skipped, scan, read = got
    assert isinstance(skipped, ScanReport)
    assert "12345" not in json.dumps(skipped.filter)
    assert skipped.metrics["result-data-files"] == 0
    assert isinstance(scan, ScanReport)
    assert (scan.table_name, scan.snapshot_id) == (table.name, snapshot.snapshot_id)
    assert (scan.projected_field_ids, scan.projected_field_names) == ((1,), ("id",))
    assert (scan.metrics["result-data-files"], scan.metrics["skipped-data-files"]) == (1, 1)
    assert scan.total_planning_duration > 0
    assert isinstance(read, TaskReport)
    assert (read.task, read.metrics["files"], read.metrics["rows"]) == ("read", 1, 2)


def test_each_snapshot_of_a_transaction_is_reported(
    tmp_path: Path, got: list[MetricsReport]
) -> None:
    table = _table(tmp_path, "mine.report")
    with table.transaction() as transaction:
        transaction.append(_ROWS)
        transaction.upsert(_ROWS.slice(0, 1), ["id", "day"])
    commits = [each for each in got if isinstance(each, CommitReport)]
    assert [each.operation for each in commits] == [
        each.operation for each in table.refresh().snapshots()
    ]


def test_a_commit_that_had_a_conflict_says_how_many_attempts_it_took(
    tmp_path: Path, got: list[MetricsReport]
) -> None:
    table = _table(tmp_path, "mine.report")
    with table.transaction() as transaction:
        transaction.append(_ROWS)
        _load(tmp_path, "").append(_ROWS)
    (commit,) = (each for each in got if isinstance(each, CommitReport))
    assert commit.metrics["attempts"] == 2
    assert commit.metrics["total-records"] == 6


def test_a_reporter_that_fails_is_only_logged(
    tmp_path: Path, got: list[MetricsReport], caplog: pytest.LogCaptureFixture
) -> None:
    table = _table(tmp_path, "mine.fails")
    table.append(_ROWS)
    assert table.scan().to_arrow().num_rows == 3
    assert len(table.snapshots()) == 1
    assert "nobody listens" in caplog.text


@pytest.mark.parametrize("name", ["nowhere.report", "mine.other", "report", "mine.number"])
def test_a_reporter_that_does_not_exist_is_refused_before_anything_is_written(
    tmp_path: Path, got: list[MetricsReport], name: str
) -> None:
    _table(tmp_path, "mine.report").append(_ROWS)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    given = {REPORTER: name}
    for act in (
        lambda: _catalog(tmp_path, name),
        lambda: icebergds.load_table(tmp_path / "wh/db/t", properties=given),
    ):
        with pytest.raises(
            icebergds.InvalidOptionError, match=rf"{REPORTER}' = '{name}'.*expected"
        ):
            act()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_javas_reporters_log_or_have_no_effect(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, is_logged in (("LoggingMetricsReporter", True), ("InMemoryMetricsReporter", False)):
        table = _table(tmp_path / name, f"org.apache.iceberg.metrics.{name}")
        with caplog.at_level(logging.INFO, "icebergds.metrics"):
            table.append(_ROWS)
        assert ("CommitReport(" in caplog.text) is is_logged
        caplog.clear()


@pytest.fixture
def telemetry(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[InMemorySpanExporter, InMemoryMetricReader]]:
    """Receives what OpenTelemetry's own providers are told."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    otel._counter.cache_clear()
    otel._histogram.cache_clear()
    yield spans, reader
    otel._counter.cache_clear()
    otel._histogram.cache_clear()


def test_opentelemetry_gets_spans_and_the_counters_of_java(
    tmp_path: Path, telemetry: tuple[InMemorySpanExporter, InMemoryMetricReader]
) -> None:
    spans, reader = telemetry
    table = _table(tmp_path, "icebergds.otel.report")
    for _ in range(2):
        table.append(_ROWS)
    table.scan("day = 'a'").to_arrow()
    finished = spans.get_finished_spans()
    assert [each.name for each in finished] == [
        *["icebergds.write", "iceberg.commit"] * 2,
        "iceberg.scan.planning",
        "icebergds.read",
    ]
    commit, scan = finished[1], finished[4]
    assert commit.attributes is not None
    assert commit.attributes["iceberg.table.name"] == table.name
    assert commit.attributes["iceberg.commit.attempts"] == 1
    assert scan.attributes is not None
    assert scan.attributes["iceberg.scan.data_files.skipped"] == 2
    for span in finished:
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time < span.end_time
    sums = _sums(reader)
    assert sums["iceberg.commit.records.added"] == 6
    assert sums["iceberg.scan.result.data_files"] == 2
    assert sums["icebergds.write.rows"] == 6
    assert {"iceberg.commit.duration", "iceberg.scan.planning.duration"} <= sums.keys()


def test_every_metric_has_a_counter(tmp_path: Path, got: list[MetricsReport]) -> None:
    table = _table(tmp_path, "mine.report", **{"format-version": "3"})
    table.append(_ROWS)
    table.upsert(_ROWS.slice(0, 1), ["id", "day"])
    table.overwrite(_ROWS)
    table.scan().to_arrow()
    for report in got:
        if isinstance(report, ScanReport):
            assert report.metrics.keys() <= otel._SCAN.keys()
        elif isinstance(report, CommitReport):
            assert report.metrics.keys() <= otel._COMMIT.keys()


def _table(directory: Path, reporter: str, **properties: str) -> icebergds.Table:
    catalog = _catalog(directory, reporter)
    catalog.create_namespace("db")
    catalog.create_table("db.t", _SCHEMA, partition_spec="day", properties=properties)
    return catalog.load_table("db.t")


def _load(directory: Path, reporter: str) -> icebergds.Table:
    return _catalog(directory, reporter).load_table("db.t")


def _catalog(directory: Path, reporter: str) -> icebergds.Catalog:
    directory.mkdir(exist_ok=True)
    return icebergds.load_catalog("lake", warehouse=str(directory / "wh"), **{REPORTER: reporter})


def _size(table: icebergds.Table) -> int:
    return sum(os.path.getsize(path) for path in Path(table.location()).rglob("data/**/*.parquet"))


def _sums(reader: InMemoryMetricReader) -> dict[str, Any]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: sum(getattr(point, "value", 0) for point in metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
