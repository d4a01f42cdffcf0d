"""Reports scans, commits and tasks to OpenTelemetry: `metrics-reporter-impl=icebergds.otel.report`.

Spans and measurements go to the providers that the process has set up, or the environment for it
(`opentelemetry-instrument`); without providers nothing is told. Names and units of what Java
Iceberg reports are those of its `OtelMetricsReporter` (apache/iceberg#16250); the span of a task
and its counts are our own.
"""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

from icebergds.metrics import CommitReport, MetricsReport, ScanReport
from icebergds.version import __version__

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError(f"{missing}: pip install 'icebergds[otel]'") from missing

_NAME = "icebergds"


def report(report: MetricsReport) -> None:
    """Ends a span for a report, adds its counts to counters, its duration to a histogram."""
    if isinstance(report, ScanReport):
        span, names, seconds = "iceberg.scan.planning", _SCAN, report.total_planning_duration
        labels: dict[str, Any] = {"iceberg.table.name": report.table_name}
        details: dict[str, Any] = {
            "iceberg.snapshot.id": report.snapshot_id,
            "iceberg.schema.id": report.schema_id,
            "iceberg.scan.filter": json.dumps(report.filter),
        }
    elif isinstance(report, CommitReport):
        span, names, seconds = "iceberg.commit", _COMMIT, report.total_duration
        labels = {"iceberg.table.name": report.table_name, "iceberg.operation": report.operation}
        details = {
            "iceberg.snapshot.id": report.snapshot_id,
            "iceberg.sequence_number": report.sequence_number,
        }
    else:
        span, seconds = f"icebergds.{report.task}", report.total_duration
        details = dict[str, Any]()
        names = {name: f"{span}.{name}" for name in report.metrics}
        labels = {"iceberg.table.location": report.table_location}
    counts = {names[name]: count for name, count in report.metrics.items() if name in names}
    ended = time.time_ns()
    trace.get_tracer(_NAME, __version__).start_span(
        span,
        start_time=ended - int(seconds * 1e9),
        attributes={**labels, **details, **counts},
    ).end(ended)
    for name, count in counts.items():
        _counter(name).add(count, labels)
    _histogram(f"{span}.duration").record(seconds * 1e3, labels)


@cache
def _counter(name: str) -> metrics.Counter:
    return metrics.get_meter(_NAME, __version__).create_counter(
        name, unit="By" if "bytes" in name else ""
    )


@cache
def _histogram(name: str) -> metrics.Histogram:
    return metrics.get_meter(_NAME, __version__).create_histogram(name, unit="ms")


_SCAN = {
    "result-data-files": "iceberg.scan.result.data_files",
    "result-delete-files": "iceberg.scan.result.delete_files",
    "total-data-manifests": "iceberg.scan.data_manifests.total",
    "scanned-data-manifests": "iceberg.scan.data_manifests.scanned",
    "skipped-data-manifests": "iceberg.scan.data_manifests.skipped",
    "total-delete-manifests": "iceberg.scan.delete_manifests.total",
    "scanned-delete-manifests": "iceberg.scan.delete_manifests.scanned",
    "skipped-delete-manifests": "iceberg.scan.delete_manifests.skipped",
    "total-file-size-in-bytes": "iceberg.scan.file_size.bytes",
    "total-delete-file-size-in-bytes": "iceberg.scan.delete_file_size.bytes",
    "skipped-data-files": "iceberg.scan.data_files.skipped",
    "equality-delete-files": "iceberg.scan.delete_files.equality",
    "positional-delete-files": "iceberg.scan.delete_files.positional",
    "dvs": "iceberg.scan.dvs",
}
_COMMIT = {
    "attempts": "iceberg.commit.attempts",
    "added-data-files": "iceberg.commit.data_files.added",
    "removed-data-files": "iceberg.commit.data_files.removed",
    "total-data-files": "iceberg.commit.data_files.total",
    "added-delete-files": "iceberg.commit.delete_files.added",
    "removed-delete-files": "iceberg.commit.delete_files.removed",
    "total-delete-files": "iceberg.commit.delete_files.total",
    "added-equality-delete-files": "iceberg.commit.delete_files.equality.added",
    "removed-equality-delete-files": "iceberg.commit.delete_files.equality.removed",
    "added-positional-delete-files": "iceberg.commit.delete_files.positional.added",
    "removed-positional-delete-files": "iceberg.commit.delete_files.positional.removed",
    "added-dvs": "iceberg.commit.dvs.added",
    "removed-dvs": "iceberg.commit.dvs.removed",
    "added-records": "iceberg.commit.records.added",
    "removed-records": "iceberg.commit.records.removed",
    "total-records": "iceberg.commit.records.total",
    "added-files-size-bytes": "iceberg.commit.file_size.added_bytes",
    "removed-files-size-bytes": "iceberg.commit.file_size.removed_bytes",
    "total-files-size-bytes": "iceberg.commit.file_size.total_bytes",
    "added-positional-deletes": "iceberg.commit.positional_deletes.added",
    "removed-positional-deletes": "iceberg.commit.positional_deletes.removed",
    "total-positional-deletes": "iceberg.commit.positional_deletes.total",
    "added-equality-deletes": "iceberg.commit.equality_deletes.added",
    "removed-equality-deletes": "iceberg.commit.equality_deletes.removed",
    "total-equality-deletes": "iceberg.commit.equality_deletes.total",
    "manifests-created": "iceberg.commit.manifests.created",
    "manifests-replaced": "iceberg.commit.manifests.replaced",
    "manifests-kept": "iceberg.commit.manifests.kept",
    "manifest-entries-processed": "iceberg.commit.manifest_entries.processed",
}
