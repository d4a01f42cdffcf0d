"""Sorts rows by a table's sort order, and checks whether rows are sorted (spec: Sorting)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import VoidTransform
from icebergds.write.rows.source_columns import TransformedColumn, transformed_column


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A sort order for batches of one schema; created by `plan_order`.

    Attributes:
        order_id: the sort order's id.
        keys: the sort keys, most significant first.
    """

    order_id: int
    keys: tuple[SortKey, ...]

    def sort(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Sorts the rows; the sort is stable."""
        columns = self.columns(batch)
        if batch.num_rows < 2 or _in_order(columns):
            return batch
        return batch.take(sorted_indices(columns))

    def columns(self, batch: pa.RecordBatch) -> list[KeyColumn]:
        """The columns to compare rows by, most significant first."""
        return [column for key in self.keys for column in key.columns(batch)]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Values compared in Arrow's order; nulls are ordered by the preceding is-null column."""

    values: pa.Array
    descending: bool = False

    def row(self, at: int) -> KeyColumn:
        """A copy of one row's value."""
        return self.take(pa.array([at]))

    def take(self, rows: pa.Array) -> KeyColumn:
        """A copy of some rows' values."""
        return KeyColumn(self.values.take(rows), self.descending)


def concatenated(parts: Sequence[Sequence[KeyColumn]]) -> list[KeyColumn]:
    """The key columns of all rows of some batches; at least one batch."""
    return [
        KeyColumn(pa.concat_arrays([part.values for part in column]), column[0].descending)
        for column in zip(*parts, strict=True)
    ]


def sorted_indices(columns: Sequence[KeyColumn]) -> pa.Array:
    """The indices that sort rows by at least one key column; equal rows keep their order."""
    names = [str(at) for at in range(len(columns))]
    table = pa.table([column.values for column in columns], names)
    directions = [
        (name, "descending" if column.descending else "ascending")
        for name, column in zip(names, columns, strict=True)
    ]
    return pc.sort_indices(table, sort_keys=directions)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a sort order.

    Attributes:
        column: the values to compare.
        descending: whether greater values come first.
        nulls_first: whether nulls come first, for either direction.
    """

    column: TransformedColumn
    descending: bool
    nulls_first: bool

    def columns(self, batch: pa.RecordBatch) -> list[KeyColumn]:
        """The columns to compare: which values are null, then the values."""
        values = self.column.values(batch)
        if pa.types.is_null(values.type):
            return []
        nulls = KeyColumn(values.is_null(), self.nulls_first)
        return [nulls, KeyColumn(_comparable(values), self.descending)]


def plan_order(order: SortOrder, schema: Schema, *, table: str) -> RowOrder | None:
    """Plans the sorting of a schema's batches; None for the unsorted order.

    Args:
        order: the table's sort order.
        schema: the schema of the batches.
        table: the table's name or location, for messages.

    Raises:
        UnsupportedFeatureError: a transform is unknown.
        InvalidMetadataError: the order does not fit the schema.
    """
    if not order.is_sorted:
        return None
    what = f"sort order {order.order_id} of table {table}"
    keys = tuple(
        _key(schema, field, what)
        for field in order.fields
        if not isinstance(field.transform, VoidTransform)
    )
    return RowOrder(order.order_id, keys)


class OrderCheck:
    """Checks batch by batch whether all rows of a file are sorted."""

    def __init__(self, order: RowOrder) -> None:
        self._order = order
        self._last: list[KeyColumn] = []
        self.in_order = True

    def add(self, batch: pa.RecordBatch) -> None:
        """Checks the file's next rows."""
        if not self.in_order or not batch.num_rows:
            return
        columns = self._order.columns(batch)
        firsts = [column.row(0) for column in columns]
        if self._last:
            firsts = concatenated([self._last, firsts])
        self.in_order = _in_order(firsts) and _in_order(columns)
        self._last = [column.row(batch.num_rows - 1) for column in columns]


def _key(schema: Schema, field: SortField, what: str) -> SortKey:
    return SortKey(
        transformed_column(schema, field.source_ids, field.transform, what),
        field.direction is SortDirection.DESC,
        field.null_order is NullOrder.NULLS_FIRST,
    )


def _comparable(values: pa.Array) -> pa.Array:
    """Floats as integers in total order: -NaN, -Infinity, ..., -0, 0, ..., Infinity, NaN."""
    if not pa.types.is_floating(values.type):
        return values
    integer = pa.int32() if values.type.bit_width == 32 else pa.int64()
    bits = np.asarray(values.view(integer).fill_null(0))
    # For negative floats, larger bits mean a smaller value.
    ordered = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return pa.array(ordered, integer, mask=values.is_null().to_numpy(zero_copy_only=False))


def _in_order(columns: Sequence[KeyColumn]) -> bool:
    """Whether the rows are sorted."""
    if not columns or len(columns[0].values) < 2:
        return True
    tied = np.ones(len(columns[0].values) - 1, np.bool_)
    for column in columns:
        above, below = column.values[:-1], column.values[1:]
        if column.descending:
            above, below = below, above
        # Nulls are equal; if only one value is null, the is-null column has decided.
        wrong = pc.fill_null(pc.greater(above, below), False).to_numpy(zero_copy_only=False)
        if (tied & wrong).any():
            return False
        tied &= pc.fill_null(pc.equal(above, below), True).to_numpy(zero_copy_only=False)
        if not tied.any():
            return True
    return True
