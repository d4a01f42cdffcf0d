"""Chooses the files that can have the first rows of a scan, in some order or in any.

The bounds of files guarantee values: if the files whose least value is at least T have n rows, the
greatest n rows of the scan are at least T. So the files that cannot reach T are left out, and no
row has to be read to find T. Deletes by position leave at least as many rows as they do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from icebergds.expr.bounds import Bounds, decode_bounds, is_floating
from icebergds.expr.metrics import INHERITED, might_match
from icebergds.expr.nodes import BoundPredicate, Expr, Operation, and_, or_
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.read.aggregates import EXACT_BOUNDS
from icebergds.operations.read.planned_scan import PlannedScan, selects_whole
from icebergds.scan.plan.files import PlannedFile
from icebergds.spec.manifest import DataFile
from icebergds.spec.types import STRING, DecimalType, NestedField

_ORDERED = (*EXACT_BOUNDS, STRING)


@dataclass(frozen=True, slots=True)
class Order:
    """The first column by which rows are ordered; others may follow."""

    column: NestedField
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows that meet a condition.

    Attributes:
        count: how many.
        condition: bound to the schema that is read; exactly the rows that it selects count.
        order: None for any rows.
    """

    count: int
    condition: Expr
    order: Order | None = None

    @property
    def columns(self) -> tuple[NestedField, ...]:
        """The column whose bounds are needed."""
        return () if self.order is None else (self.order.column,)


def with_first_rows(scan: PlannedScan, first: FirstRows) -> PlannedScan:
    """The scan without files and rows that are not among the first ones.

    Args:
        scan: planned with the metrics of the column by which rows are ordered.
    """
    if scan.plan.wrong_counts is not WrongCounts.FAIL or len(scan.files) < _FEW:
        return scan
    is_whole = selects_whole(scan, first.condition)
    if first.order is None:
        chosen = _any(scan.files, is_whole, first.count)
        return scan if chosen is None else replace(scan, files=tuple(chosen))
    certain = (file for file in scan.files if _least_rows(file) > 0 and is_whole(file))
    reaching = _threshold(first.order, certain, first.count)
    if reaching is None:
        return scan
    kept = tuple(f for f in scan.files if might_match(reaching, f.entry.data_file))
    return replace(scan, files=kept, rechecked=and_(scan.rechecked, reaching))


# There is nothing to leave out of one file.
_FEW = 2


def with_likely_rows(scan: PlannedScan, first: FirstRows) -> PlannedScan | None:
    """The scan of one small file that may have the first rows in any order; None if none may.

    Args:
        scan: whose metadata does not say which rows are left, as for equality deletes.
    """
    is_whole = selects_whole(scan, first.condition)
    file = _smallest(scan.files, is_whole, _stored_rows, first.count)
    return None if file is None else replace(scan, files=(file,))


def _any(
    files: Sequence[PlannedFile], is_whole: Callable[[PlannedFile], bool], count: int
) -> list[PlannedFile] | None:
    """As few files as have a number of rows; None if all together have fewer."""
    one = _smallest(files, is_whole, _least_rows, count)
    if one is not None:
        return [one]
    chosen: list[PlannedFile] = []
    rows = 0
    for file in sorted(files, key=lambda file: -_least_rows(file)):
        if is_whole(file):
            chosen.append(file)
            rows += _least_rows(file)
        if rows >= count:
            return chosen
    return None


def _smallest(
    files: Sequence[PlannedFile],
    is_whole: Callable[[PlannedFile], bool],
    rows: Callable[[PlannedFile], int],
    count: int,
) -> PlannedFile | None:
    """The file that is read soonest, of those with a number of rows; None if there is none."""
    large = [file for file in files if rows(file) >= count]
    large.sort(key=lambda file: (file.has_deletes, file.entry.data_file.file_size_in_bytes))
    return next(filter(is_whole, large), None)


def _stored_rows(file: PlannedFile) -> int:
    return file.entry.data_file.record_count


def _least_rows(file: PlannedFile) -> int:
    """How many rows of a file deletes leave at least."""
    counts = [entry.data_file.record_count for entry in file.deletes.position_deletes]
    if file.deletes.equality_deletes or min(counts, default=0) < 0:
        return 0
    return _stored_rows(file) - sum(counts)


def _threshold(order: Order, files: Iterable[PlannedFile], count: int) -> Expr | None:
    """A bound condition that holds for the first rows; None if there is none.

    Args:
        files: all of whose rows count that are not deleted, by position only.
    """
    kind = order.column.field_type
    if kind not in _ORDERED and not isinstance(kind, DecimalType):
        return None
    guaranteed: list[tuple[Any, int]] = []
    for file in files:
        found = _bounds(order.column, file.entry.data_file)
        if found is not None:
            bounds, rows = found
            value = bounds.lower if order.descending else bounds.upper
            rows -= _stored_rows(file) - _least_rows(file)
            if value is not None and rows > 0:
                guaranteed.append((value, rows))
    guaranteed.sort(key=lambda each: each[0], reverse=order.descending)
    totals = accumulate(rows for _, rows in guaranteed)
    at = next((at for at, total in enumerate(totals) if total >= count), None)
    if at is None:
        return None
    op = Operation.GT_EQ if order.descending else Operation.LT_EQ
    reaching: Expr = BoundPredicate(op, order.column.field_id, kind, (guaranteed[at][0],))
    if order.nulls_first:
        null = BoundPredicate(Operation.IS_NULL, order.column.field_id, kind)
        reaching = or_(reaching, null)
    return reaching


def _bounds(column: NestedField, file: DataFile) -> tuple[Bounds, int] | None:
    """The bounds of a column, and how many of its values are within; None if not known."""
    field_id, rows = column.field_id, file.record_count
    nulls = file.null_value_counts.get(field_id)
    nans = file.nan_value_counts.get(field_id) if is_floating(column.field_type) else 0
    is_counted = field_id not in INHERITED and file.value_counts.get(field_id) == rows
    if not is_counted or nulls is None or nans is None or not 0 <= nulls + nans <= rows:
        return None
    bounds = decode_bounds(
        column.field_type,
        file.lower_bounds.get(field_id),
        file.upper_bounds.get(field_id),
        nans == 0,
        file.file_format,
    )
    return bounds, rows - nulls - nans
