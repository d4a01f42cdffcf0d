"""Reports scans and commits to the server (REST catalog specification: `ReportMetricsRequest`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.config import METRICS
from icebergds.catalog.rest.http import Request
from icebergds.catalog.rest.options import flag
from icebergds.catalog.rest.session import RestSession
from icebergds.commit.operations import ScanReport, TableState
from icebergds.expr.json import anonymous_filter_to_json
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.updates.table_updates import AddSnapshot, TableUpdate

_LOG = logging.getLogger(__name__)

# Java Iceberg's names of the counts in a snapshot's summary.
_COUNTS = {
    "added-data-files": "added-data-files",
    "removed-data-files": "deleted-data-files",
    "total-data-files": "total-data-files",
    "added-delete-files": "added-delete-files",
    "added-equality-delete-files": "added-equality-delete-files",
    "added-positional-delete-files": "added-position-delete-files",
    "added-dvs": "added-dvs",
    "removed-positional-delete-files": "removed-position-delete-files",
    "removed-dvs": "removed-dvs",
    "removed-equality-delete-files": "removed-equality-delete-files",
    "removed-delete-files": "removed-delete-files",
    "total-delete-files": "total-delete-files",
    "added-records": "added-records",
    "removed-records": "deleted-records",
    "total-records": "total-records",
    "added-positional-deletes": "added-position-deletes",
    "removed-positional-deletes": "removed-position-deletes",
    "total-positional-deletes": "total-position-deletes",
    "added-equality-deletes": "added-equality-deletes",
    "removed-equality-deletes": "removed-equality-deletes",
    "total-equality-deletes": "total-equality-deletes",
    "manifests-created": "manifests-created",
    "manifests-replaced": "manifests-replaced",
    "manifests-kept": "manifests-kept",
    "manifest-entries-processed": "entries-processed",
}
_BYTES = {
    "added-files-size-bytes": "added-files-size",
    "removed-files-size-bytes": "removed-files-size",
    "total-files-size-bytes": "total-files-size",
}
_METADATA = {"engine-name": "icebergds"}
# Further reports are dropped while this many are being sent.
_WAITING = threading.BoundedSemaphore(4)


@dataclass(frozen=True, slots=True)
class RestScanReporter:
    """Implements `ScanReporter`; other processes, which have no session, get None.

    Attributes:
        name: the table's name in messages.
    """

    session: RestSession = field(repr=False)
    identifier: Identifier
    name: str

    def report(self, scan: ScanReport) -> None:
        """Implements `ScanReporter.report`."""
        _send(self.session, self.identifier, self.name, lambda: _scan_report(self.name, scan))

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def scan_reporter(
    session: RestSession, identifier: Identifier, name: str
) -> RestScanReporter | None:
    """Reports scans of a table to the server; None if reporting is off."""
    return RestScanReporter(session, identifier, name) if _is_told(session) else None


def report_commit(
    session: RestSession,
    identifier: Identifier,
    state: TableState,
    updates: Sequence[TableUpdate],
) -> None:
    """Reports the last snapshot of a commit in the background; failures are only logged."""
    added = [each.snapshot for each in updates if isinstance(each, AddSnapshot)]
    if added and _is_told(session):
        _send(session, identifier, state.name, lambda: _commit_report(state, added[-1]))


def _is_told(session: RestSession) -> bool:
    key = "rest-metrics-reporting-enabled"
    enabled = flag(session.name, session.config.properties, key, True)
    return enabled and session.config.supports(session.name, METRICS)


def _send(
    session: RestSession, identifier: Identifier, name: str, report: Callable[[], dict[str, Any]]
) -> None:
    def send() -> None:
        try:
            path = session.routes.metrics(identifier)
            # A server may refuse only reports, and other requests would wait for a new token.
            request = Request("POST", path, body=report(), answered=False, renews=False)
            session.client.send(request)
        except Exception as error:
            _LOG.info("table %s: the server did not take a report: %s", name, error)
        finally:
            _WAITING.release()

    # The process does not wait for it at exit.
    if not _WAITING.acquire(blocking=False):
        return
    try:
        threading.Thread(target=send, name="icebergds-metrics", daemon=True).start()
    except RuntimeError as error:
        # The process cannot start further threads.
        _WAITING.release()
        _LOG.info("table %s: nothing is reported: %s", name, error)


def _scan_report(name: str, scan: ScanReport) -> dict[str, Any]:
    ids = sorted(scan.columns.fields_by_id)
    metrics: dict[str, Any] = {
        key: {"unit": "bytes" if key.endswith("-in-bytes") else "count", "value": value}
        for key, value in scan.counts().items()
    }
    metrics["total-planning-duration"] = {
        "count": 1,
        "time-unit": "nanoseconds",
        "total-duration": int(scan.planned_in_s * 1e9),
    }
    return {
        "report-type": "scan-report",
        "table-name": name,
        "snapshot-id": scan.snapshot_id,
        "filter": anonymous_filter_to_json(scan.row_filter, scan.schema),
        "schema-id": scan.schema.schema_id,
        "projected-field-ids": ids,
        "projected-field-names": [scan.columns.find_name(field_id) for field_id in ids],
        "metrics": metrics,
        "metadata": _METADATA,
    }


def _commit_report(state: TableState, snapshot: Snapshot) -> dict[str, Any]:
    summary = snapshot.summary
    metrics: dict[str, Any] = {
        name: {"unit": unit, "value": int(summary[key])}
        for unit, names in (("count", _COUNTS), ("bytes", _BYTES))
        for name, key in names.items()
        if summary.get(key, "").isdecimal()
    }
    metrics["attempts"] = {"unit": "count", "value": 1}
    return {
        "report-type": "commit-report",
        "table-name": state.name,
        "snapshot-id": snapshot.snapshot_id,
        "sequence-number": snapshot.sequence_number,
        "operation": snapshot.operation,
        "metrics": metrics,
        "metadata": _METADATA,
    }
