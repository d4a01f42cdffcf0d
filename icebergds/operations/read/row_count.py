"""Counts the rows of a planned scan: from metadata if that is exact, else by reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from icebergds.expr.nodes import TRUE
from icebergds.operations.read.aggregates import (
    Aggregate,
    Asked,
    Function,
    answer,
    returns_deleted,
    total,
)
from icebergds.operations.read.planned_scan import PlannedScan, task_groups_of
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
    """Counts the rows of the files that the filter selects whole and whose deletes are counted.

    Raises:
        CorruptFileError, MissingFileError: a deletion vector cannot be read.
    """
    asked = Asked(TRUE, (Aggregate(Function.COUNT),))
    answered = answer(scan, asked)
    [rows] = total(answered, asked)
    return MetadataCount(rows, answered.unread)


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
    column = DELETED if returns_deleted(plan) else SPEC_ID
    return replace(plan, columns=Schema((column,)))
