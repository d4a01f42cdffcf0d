"""Counts the rows of a planned scan, and finds least and greatest values.

From metadata if that is exact, else by reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.nodes import TRUE
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.types import to_array
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


def extreme_value(scan: PlannedScan, function: Function) -> pa.Scalar:
    """The least or the greatest value of the only column of a scan, null if there is none.

    NaN is greater than all other numbers, as in Spark.

    Args:
        scan: planned with the metrics of the column, which can be ordered.

    Errors are those of `count_rows`.
    """
    [column] = scan.plan.columns.fields
    asked = Asked(TRUE, (Aggregate(function, column),))
    answered = answer(scan, asked)
    parts = [to_array(column.field_type, total(answered, asked))]
    for group in task_groups_of(scan, answered.unread):
        batches = read_task_group(scan.plan, group)
        parts.extend(_extreme(batch.column(0), function) for batch in batches)
    return _extreme(pa.chunked_array(parts).combine_chunks(), function)[0]


def _extreme(values: pa.Array, function: Function) -> pa.Array:
    """An array of one value."""
    values = storage(values).drop_null()
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(values)
        numbers = values.filter(pc.invert(is_nan))
        if len(numbers) < len(values) and (function is Function.MAX or not len(numbers)):
            return values.filter(is_nan)[:1]
        values = numbers
    if not len(values):
        return pa.nulls(1, values.type)
    return pa.array([pc.min_max(values)[function.value]], values.type)
