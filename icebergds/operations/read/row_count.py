"""Counts the rows of a planned scan: from metadata if that is exact, else by reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from icebergds.expr.metrics import must_match
from icebergds.expr.nodes import Expr
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.read.aggregates import live_rows
from icebergds.operations.read.planned_scan import PlannedScan, residual_of, task_groups_of
from icebergds.scan.column_paths import locate
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup
from icebergds.spec.reserved import DELETED, SPEC_ID
from icebergds.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class MetadataCount:
    """The rows of a scan that metadata counts, and the files that it does not count.

    Attributes:
        rows: the scan's rows in the files that metadata counts exactly.
        unread: the other files.
    """

    rows: int
    unread: tuple[PlannedFile, ...]


def count_from_metadata(scan: PlannedScan) -> MetadataCount:
    """Counts the rows of the files that the filter selects whole and whose deletes are counted."""
    if scan.plan.wrong_counts is not WrongCounts.FAIL:
        # Metadata is known to be wrong, so the rows in the files are counted.
        return MetadataCount(0, scan.files)
    residual = residual_of(scan)
    returns_deleted = _returns_deleted(scan.plan)
    rows, unread = 0, []
    for file in scan.files:
        known = _known_rows(file, residual, returns_deleted)
        if known is None:
            unread.append(file)
        else:
            rows += known
    return MetadataCount(rows, tuple(unread))


def count_rows(scan: PlannedScan) -> int:
    """The number of rows of a scan; files that metadata does not count are read in this process.

    Raises:
        CorruptFileError, MissingFileError: a data or delete file is damaged or does not exist.
    """
    counted = count_from_metadata(scan)
    task_groups = task_groups_of(scan, counted.unread)
    return counted.rows + read_count(counting_plan(scan.plan), task_groups)


def read_count(plan: ReadPlan, task_groups: Iterable[TaskGroup]) -> int:
    """The number of rows of task groups, which are read; errors as for `count_rows`."""
    total = 0
    for task_group in task_groups:
        for batch in read_task_group(plan, task_group):
            total += batch.num_rows
    return total


def counting_plan(plan: ReadPlan) -> ReadPlan:
    """The plan of a scan that returns as many rows in a single column, which is not read."""
    column = DELETED if _returns_deleted(plan) else SPEC_ID
    return replace(plan, columns=Schema((column,)))


def _returns_deleted(plan: ReadPlan) -> bool:
    return locate(plan.columns.fields, DELETED.field_id) is not None


def _known_rows(
    file: PlannedFile,
    residual: Callable[[PlannedFile], Expr],
    returns_deleted: bool,
) -> int | None:
    data_file = file.entry.data_file
    if returns_deleted:
        # A negative count is unknown.
        rows = data_file.record_count if data_file.record_count >= 0 else None
    else:
        rows = live_rows(file)
    return rows if rows is not None and must_match(residual(file), data_file) else None
