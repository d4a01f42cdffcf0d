"""Reads scans of few rows in this process: that takes less time than to start a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from icebergds.expr.nodes import BoundPredicate, Operation, and_, conjuncts
from icebergds.operations.read.chosen_files import deletes_by_kind
from icebergds.operations.read.first_rows import FirstRows, with_likely_rows
from icebergds.operations.read.planned_scan import PlannedScan, residual_of, task_groups_of
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.types import is_scalar

MOST_ROWS = 1000
"""How many rows are few, by default."""

_MOST_BYTES = 8 << 20
_MOST_FILES = 4
# Values that an IN may have.
_MOST_VALUES = 100


def few_rows(
    scan: PlannedScan, first: FirstRows | None, most: int = MOST_ROWS
) -> list[pa.RecordBatch] | None:
    """At least the rows of a scan that are needed, if they are few and in little data.

    Args:
        first: the only rows that are needed; None if others are, too.
        most: how many rows are few.

    Returns:
        Batches in the Arrow storage types of the scan's columns; None if there are more rows, or it
        takes too much to find out.

    Raises:
        CorruptFileError, MissingFileError: a data or delete file is damaged or does not exist.
    """
    any_of = first if first is not None and first.order is None else None
    is_part = any_of is not None and len(scan.files) > _MOST_FILES
    if any_of is not None and is_part:
        likely = with_likely_rows(scan, any_of)
        if likely is None:
            return None
        scan = likely
    if not may_be_few(scan, first, most):
        return None
    if any_of is not None:
        batch_size = min(scan.plan.batch_size, max(any_of.count, most))
        plan = replace(scan.plan, batch_size=batch_size)
        scan = replace(scan, plan=plan, rechecked=and_(scan.rechecked, any_of.condition))
    found, rows = [], 0
    for batch in batches_of(scan):
        if any_of is not None:
            batch = batch.slice(0, any_of.count - rows)
        rows += batch.num_rows
        if rows > most:
            return None
        if batch.num_rows:
            found.append(batch)
        if any_of is not None and rows >= any_of.count:
            return found
    return None if is_part else found


def batches_of(scan: PlannedScan) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a scan that meet all of its conditions; errors are those of `few_rows`."""
    plan = scan.checking_plan
    for group in task_groups_of(scan, scan.files):
        yield from read_task_group(plan, group)


def may_be_few(scan: PlannedScan, first: FirstRows | None, most: int) -> bool:
    """Whether it takes little to find out if `few_rows` has the rows of a scan."""
    files = [file.entry.data_file for file in scan.files]
    if most <= 0 or not files or len(files) > _MOST_FILES:
        return False
    deletes = deletes_by_kind(scan.files)
    read = (*files, *deletes.positions, *deletes.vectors, *deletes.keys)
    if sum(file.stored_size for file in read) > _MOST_BYTES:
        return False
    if not all(is_scalar(column.field_type) for column in scan.plan.columns.fields):
        return False
    if all(file.record_count >= 0 for file in files) and (
        sum(file.record_count for file in files) <= most
    ):
        return True
    if first is not None and first.order is None and first.count <= most:
        return True
    residual = residual_of(replace(scan, plan=scan.checking_plan))
    return all(any(_chooses_few(part) for part in conjuncts(residual(file))) for file in scan.files)


def _chooses_few(part: object) -> bool:
    """Whether a condition compares a column with single values."""
    if not isinstance(part, BoundPredicate):
        return False
    is_set = part.op is Operation.IN and len(part.values) <= _MOST_VALUES
    return part.op is Operation.EQ or is_set
