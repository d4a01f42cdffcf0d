"""Reports of scans and commits that a REST catalog's server gets."""

from __future__ import annotations

import json
import logging
import pickle
import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from rest_proxy import Fault, RestProxy, Seen
from rest_server import RestServer

import icebergds

# Of a thread's stack, in bytes: none can be started.
_TOO_LARGE = 1 << 46


@pytest.fixture
def proxy(quick_proxy: RestProxy) -> RestProxy:
    return quick_proxy


@pytest.fixture
def uri(rest: RestServer, proxy: RestProxy) -> str:
    """The address of a new catalog by way of the proxy."""
    return rest.uri(rest.new_catalog(), proxy.port)


def test_commits_are_reported(uri: str, proxy: RestProxy) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    table.append(pa.table({"id": [1, 2]}))
    report = _report(proxy)
    assert report["report-type"] == "commit-report"
    assert report["snapshot-id"] == table.snapshots()[-1].snapshot_id
    assert report["metrics"]["added-records"] == {"unit": "count", "value": 2}


def test_scans_are_reported(uri: str, proxy: RestProxy) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, s string, d date, p int", partition_spec="p")
    rows = [{"id": number, "s": "secret", "p": number % 2} for number in range(4)]
    table.append(pa.Table.from_pylist(rows))
    by_key = {"write.upsert.mode": "equality-deletes"}
    table.upsert(pa.Table.from_pylist(rows[:1]), ["p", "id"], options=by_key)
    _reports(proxy, 2)
    proxy.seen.clear()
    filter = "p = 0 and (id > 12345 or s in ('secret', 'other') or d = date '2026-01-01')"
    table.scan(filter, columns=["s", "id"]).to_arrow()
    report = _report(proxy)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert (report["report-type"], report["table-name"]) == ("scan-report", "lake.db.t")
    assert report["snapshot-id"] == snapshot.snapshot_id
    assert report["schema-id"] == table.schema().schema_id
    assert report["projected-field-ids"] == [1, 2]
    assert report["projected-field-names"] == ["id", "s"]
    told = json.dumps(report["filter"])
    assert "secret" not in told
    assert all(part in told for part in ("(1-digit-int)", "(5-digit-int)", "(string)", "(date)"))
    metrics = report["metrics"]
    duration = metrics.pop("total-planning-duration")
    assert duration["count"] == 1
    assert duration["total-duration"] > 0
    assert metrics.pop("total-file-size-in-bytes")["unit"] == "bytes"
    assert metrics.pop("total-delete-file-size-in-bytes")["value"] > 0
    assert {name: metric["value"] for name, metric in metrics.items() if metric["value"]} == {
        "result-data-files": 2,
        "skipped-data-files": 1,
        "result-delete-files": 1,
        "equality-delete-files": 1,
        "total-data-manifests": 2,
        "scanned-data-manifests": 2,
        "total-delete-manifests": 1,
        "scanned-delete-manifests": 1,
    }


def test_filters_of_every_kind_are_reported(uri: str, proxy: RestProxy) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", "id bigint, s string, f double, b binary, t timestamp, n struct<x: decimal(9, 2)>"
    )
    table.append(pa.table({"id": [1, 2]}))
    _reports(proxy, 1)
    filters = [
        "id is null or f = 1.5 or not (f < 'NaN')",
        "s like 'a%' or s not like 'b%' or b = X'00'",
        "id not in (1, 22, 33) or t >= timestamp '2026-01-01 00:00:00+00:00'",
        "n.x <> 1.25 and id is not null",
    ]
    for filter in filters:
        proxy.seen.clear()
        table.scan(filter).to_arrow()
        assert _report(proxy)["filter"] is not True


def test_other_processes_report_no_scans(uri: str, proxy: RestProxy) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    state = catalog.create_table("db.t", "id bigint")._state
    assert state.reporter is not None
    assert pickle.loads(pickle.dumps(state.reporter)) is None


def test_a_report_that_fails_is_not_told(uri: str, proxy: RestProxy) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    proxy.fault = lambda seen: Fault.REFUSED_500 if seen.path.endswith("/metrics") else None
    table.append(pa.table({"id": [1, 2]}))
    assert [seen.status for seen in _reports(proxy, 1)] == [500]
    assert len(table.refresh().snapshots()) == 1


def test_a_report_that_is_not_permitted_renews_no_token(
    uri: str, proxy: RestProxy, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri, token="first")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    proxy.refuse = lambda seen: 401 if seen.path.endswith(("/metrics", "/tokens")) else None
    caplog.clear()
    table.append(pa.table({"id": [1, 2]}))
    assert [seen.status for seen in _reports(proxy, 1)] == [401]
    time.sleep(0.3)
    assert len(table.refresh().snapshots()) == 1
    assert not any(path.endswith("/tokens") for path in proxy.paths("POST"))
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_commit_stands_if_no_thread_can_report_it(
    uri: str, proxy: RestProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    # As under a limit of processes.
    before = threading.stack_size(_TOO_LARGE)
    try:
        for _ in range(5):
            table.append(pa.table({"id": [1, 2]}))
    finally:
        threading.stack_size(before)
    assert len(table.refresh().snapshots()) == 5
    table.append(pa.table({"id": [1, 2]}))
    assert [seen.status for seen in _reports(proxy, 1)] == [204]


def test_reports_can_be_left_out(uri: str, proxy: RestProxy) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri, **{"rest-metrics-reporting-enabled": "false"})
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    catalog.load_table("db.t").scan().to_arrow()
    time.sleep(0.3)
    assert _reports(proxy, 0) == []


def _report(proxy: RestProxy) -> dict[str, Any]:
    (seen,) = _reports(proxy, 1)
    assert seen.status == 204
    return dict(json.loads(seen.body))


def _reports(proxy: RestProxy, count: int) -> list[Seen]:
    """The reports that were sent, once there are so many, and all are answered."""
    for _ in range(500):
        found = [seen for seen in proxy.seen if seen.path.endswith("/metrics")]
        if len(found) >= count and all(seen.status is not None for seen in found):
            return found
        time.sleep(0.02)
    raise AssertionError("reports are missing")
