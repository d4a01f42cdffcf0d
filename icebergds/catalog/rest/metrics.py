"""Reports commits to the server (REST catalog specification: `CommitReport`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.config import METRICS
from icebergds.catalog.rest.http import Request
from icebergds.catalog.rest.options import flag
from icebergds.catalog.rest.session import RestSession
from icebergds.commit.operations import TableState
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
# Further reports are dropped while so many wait for the server.
_WAITING = threading.BoundedSemaphore(4)


def report_commit(
    session: RestSession,
    identifier: Identifier,
    state: TableState,
    updates: Sequence[TableUpdate],
) -> None:
    """Reports the last snapshot of a commit in the background; failures are only logged."""
    added = [each.snapshot for each in updates if isinstance(each, AddSnapshot)]
    key = "rest-metrics-reporting-enabled"
    if (
        not added
        or not flag(session.name, session.config.properties, key, True)
        or not session.config.supports(session.name, METRICS)
    ):
        return
    report = _report(state, added[-1])

    def send() -> None:
        try:
            path = session.routes.metrics(identifier)
            session.client.send(Request("POST", path, body=report, answered=False))
        except Exception as error:
            _LOG.info("table %s: its commit was not reported: %s", state.name, error)
        finally:
            _WAITING.release()

    # The end of the process does not wait for it.
    if _WAITING.acquire(blocking=False):
        threading.Thread(target=send, name="icebergds-metrics", daemon=True).start()


def _report(state: TableState, snapshot: Snapshot) -> dict[str, Any]:
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
        "metadata": {"engine-name": "icebergds"},
    }
