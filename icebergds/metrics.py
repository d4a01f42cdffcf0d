"""Reports of scans, commits and tasks, for whoever wants them (Java's `MetricsReporter`).

A user names who gets them with the property `metrics-reporter-impl` of a catalog or of a storage:
`package.module.name`, a function of one argument, or a class without arguments whose instances have
a method `report`. It is called in the process that planned, committed, read or wrote.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar

from icebergds.errors import InvalidOptionError

REPORTER = "metrics-reporter-impl"
"""The property that names who gets the reports; it travels with those of the storage."""

_LOG = logging.getLogger(__name__)
_OF_JAVA = "org.apache.iceberg."
_LOGGING = "org.apache.iceberg.metrics.LoggingMetricsReporter"
_ENGINE = {"engine-name": "icebergds"}


class HasRows(Protocol):
    """Rows of one batch."""

    @property
    def num_rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


_Batch = TypeVar("_Batch", bound=HasRows)


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What a planned scan reads and skips.

    Attributes:
        table_name: as in messages, such as `lake.db.events`.
        filter: as in the REST catalog specification; of values only the kind and the length.
        metrics: counts, and sizes in bytes, under Java's names: `result-data-files`,
            `skipped-data-files`, `total-file-size-in-bytes`.
        total_planning_duration: in seconds.
        metadata: who reports.
    """

    table_name: str
    snapshot_id: int
    filter: Any
    schema_id: int
    projected_field_ids: tuple[int, ...]
    projected_field_names: tuple[str, ...]
    metrics: Mapping[str, int]
    total_planning_duration: float
    metadata: Mapping[str, str] = field(default_factory=lambda: _ENGINE)

    def to_json(self) -> dict[str, Any]:
        """The `ReportMetricsRequest` of the REST catalog specification."""
        return {
            "report-type": "scan-report",
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "filter": self.filter,
            "schema-id": self.schema_id,
            "projected-field-ids": list(self.projected_field_ids),
            "projected-field-names": list(self.projected_field_names),
            "metrics": {
                **_counters(self.metrics),
                "total-planning-duration": _timer(self.total_planning_duration),
            },
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What a commit changed.

    Attributes:
        table_name: as in messages, such as `lake.db.events`.
        operation: of the new snapshot, such as `append`.
        metrics: counts, and sizes in bytes, under Java's names: `attempts`, `added-data-files`,
            `added-records`, `added-files-size-bytes`.
        total_duration: from the first attempt to the success, in seconds.
        metadata: who reports.
    """

    table_name: str
    snapshot_id: int
    sequence_number: int
    operation: str
    metrics: Mapping[str, int]
    total_duration: float
    metadata: Mapping[str, str] = field(default_factory=lambda: _ENGINE)

    def to_json(self) -> dict[str, Any]:
        """The `ReportMetricsRequest` of the REST catalog specification."""
        return {
            "report-type": "commit-report",
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "operation": self.operation,
            "metrics": {
                **_counters(self.metrics),
                "total-duration": _timer(self.total_duration),
            },
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task has read or written; in Java there is no such report.

    Attributes:
        task: `read` or `write`.
        table_location: where the table is.
        metrics: `files`, `rows` and `bytes`: of files that were written, of rows in memory that
            were read.
        total_duration: in seconds; of a reading task also that of whoever takes its rows.
    """

    task: str
    table_location: str
    metrics: Mapping[str, int]
    total_duration: float

    def to_json(self) -> dict[str, Any]:
        """The report in the form of the others."""
        return {
            "report-type": "task-report",
            "task": self.task,
            "table-location": self.table_location,
            "metrics": {
                **_counters(self.metrics),
                "total-duration": _timer(self.total_duration),
            },
        }


MetricsReport: TypeAlias = ScanReport | CommitReport | TaskReport
"""What a reporter is called with."""

MetricsReporter: TypeAlias = Callable[[MetricsReport], object]
"""Gets reports; what it raises is only logged."""


def reporter_of(properties: Mapping[str, str]) -> MetricsReporter | None:
    """The reporter that the properties of a storage name; None if they name none.

    Raises:
        InvalidOptionError: there is no such function or class, or it cannot be called.
    """
    name = properties.get(REPORTER, "").strip()
    return _reporter(name) if name else None


def report(reporter: MetricsReporter | None, made: Callable[[], MetricsReport]) -> None:
    """Makes a report for a reporter, if there is one; never fails."""
    if reporter is None:
        return
    try:
        reporter(made())
    except Exception:
        _LOG.warning("a report of metrics failed: %s", reporter, exc_info=True)


def report_task(
    properties: Mapping[str, str],
    task: str,
    table_location: str,
    started: float,
    metrics: Mapping[str, int],
) -> None:
    """Logs a task, and reports it to the reporter that the properties of its storage name.

    Args:
        started: by `time.perf_counter`.
    """
    duration = time.perf_counter() - started
    counts = " ".join(f"{name}={value}" for name, value in metrics.items())
    _LOG.info("%s: task to %s: %s, %.0f ms", table_location, task, counts, 1000 * duration)
    try:
        reporter = reporter_of(properties)
    except InvalidOptionError as error:
        # The driver has it, or would have refused it.
        _LOG.warning("a task is not reported: %s", error)
        return
    report(reporter, lambda: TaskReport(task, table_location, metrics, duration))


def reported(
    properties: Mapping[str, str], table_location: str, files: int, batches: Iterable[_Batch]
) -> Generator[_Batch]:
    """The batches of a task that reads, which is logged and reported once they are taken.

    Args:
        files: how many the task reads.
    """
    if REPORTER not in properties and not _LOG.isEnabledFor(logging.INFO):
        yield from batches
        return
    started, rows, nbytes = time.perf_counter(), 0, 0
    try:
        for batch in batches:
            rows, nbytes = rows + batch.num_rows, nbytes + batch.nbytes
            yield batch
            # It is freed before the next one is read.
            del batch
    finally:
        metrics = {"files": files, "rows": rows, "bytes": nbytes}
        report_task(properties, "read", table_location, started, metrics)


def commit_metrics(summary: Mapping[str, str], attempts: int) -> dict[str, int]:
    """The metrics of a commit, by the summary of its snapshot."""
    found = {
        name: int(summary[key])
        for name, key in _OF_SUMMARIES.items()
        if summary.get(key, "").isdecimal()
    }
    return {"attempts": attempts, **found}


@lru_cache(maxsize=64)
def _reporter(name: str) -> MetricsReporter | None:
    if name.startswith(_OF_JAVA):
        return _logged if name == _LOGGING else None
    where, _, attribute = name.rpartition(".")
    expected = (
        "expected package.module.name of a function of one argument, or of a class whose instances "
        "have a method report"
    )
    try:
        found: Any = getattr(import_module(where), attribute)
        found = found() if isinstance(found, type) else found
        reporter = getattr(found, "report", found)
    except Exception as error:
        raise InvalidOptionError(
            f"property {REPORTER!r} = {name!r}: it could not be loaded ({error or type(error)}); "
            f"{expected}"
        ) from error
    if not callable(reporter):
        raise InvalidOptionError(
            f"property {REPORTER!r} = {name!r}: it is {type(found).__name__}; {expected}"
        )
    called: MetricsReporter = reporter
    return called


def _logged(made: MetricsReport) -> None:
    _LOG.info("%s", made)


def _counters(metrics: Mapping[str, int]) -> dict[str, Any]:
    return {
        name: {"unit": "bytes" if "bytes" in name else "count", "value": value}
        for name, value in metrics.items()
    }


def _timer(seconds: float) -> dict[str, Any]:
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": int(seconds * 1e9)}


# Java's names of metrics, and those of the counts in a snapshot's summary.
_OF_SUMMARIES = {
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
    "added-files-size-bytes": "added-files-size",
    "removed-files-size-bytes": "removed-files-size",
    "total-files-size-bytes": "total-files-size",
}
