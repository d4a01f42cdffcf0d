"""Holds columns of decoded Avro values, and converts them to Arrow arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.avro.cursors import Int64s
from icebergds.formats.avro.schema import (
    AvroArray,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    without_null,
)

Bools = npt.NDArray[np.bool_]
Rows = Int64s | None
"""Indices of some records; None for all."""

_NUMBERS: dict[str, Any] = {"boolean": np.bool_, "float": np.float32, "double": np.float64}


class NotVectorisableError(Exception):
    """The schema or the data cannot be decoded column by column."""


@dataclass(slots=True)
class Numbers:
    """A number per record; `valid` is None if every record has one."""

    values: npt.NDArray[Any]
    valid: Bools | None = None


@dataclass(slots=True)
class Slices:
    """A slice of the decoded buffer per record, in ascending order."""

    starts: Int64s
    lengths: Int64s
    valid: Bools | None = None


@dataclass(slots=True)
class Items:
    """An array or map per record: the elements of all records, concatenated.

    `counts` is the number of elements of each record; `keys` is None for arrays.
    """

    counts: Int64s
    keys: Int64s | None
    values: Numbers | Slices
    valid: Bools | None = None


Column = Numbers | Slices | Items


def is_number(node: AvroNode) -> bool:
    """Whether values are stored as one varint."""
    return isinstance(node, AvroPrimitive) and node.kind in ("int", "long", "enum")


def is_slice(node: AvroNode) -> bool:
    """Whether values are stored as a length and that many bytes."""
    return isinstance(node, AvroPrimitive) and node.kind in ("string", "bytes")


def key_value(items: AvroNode) -> tuple[AvroNode, AvroNode] | None:
    """The types of key and value, if an array's elements are records of a number and a value."""
    match items:
        case AvroRecord(fields=(key, value)) if is_number(key.node):
            return key.node, value.node
        case _:
            return None


def null_column(node: AvroNode, records: int) -> Column:
    """A column of nulls for values of a type."""
    valid = np.zeros(records, np.bool_)
    match without_null(node):
        case AvroArray(items=items):
            pair = key_value(items)
            values = null_column(items if pair is None else pair[1], 0)
            if isinstance(values, Items):
                raise NotVectorisableError("an array of arrays")
            no_keys = None if pair is None else np.zeros(0, np.int64)
            return Items(np.zeros(records, np.int64), no_keys, values, valid)
        case AvroPrimitive(kind="string" | "bytes" | "fixed"):
            return Slices(np.zeros(records, np.int64), np.zeros(records, np.int64), valid)
        case AvroPrimitive(kind=kind):
            return Numbers(np.zeros(records, _NUMBERS.get(kind, np.int64)), valid)
        case other:
            raise NotVectorisableError(f"values of type {other}")


def put(part: Column, column: Column, rows: Rows) -> None:
    """Copies the values of some records into a column of nulls."""
    match part, column:
        case Numbers(), Numbers():
            column.values = _placed(part.values, column.values, rows)
        case Slices(), Slices():
            column.starts = _placed(part.starts, column.starts, rows)
            column.lengths = _placed(part.lengths, column.lengths, rows)
        case Items(), Items():
            column.counts = _placed(part.counts, column.counts, rows)
            column.keys, column.values = part.keys, part.values
        case _:
            raise TypeError(f"cannot put {type(part)} into a column of {type(column)}")
    if rows is None:
        column.valid = part.valid
    elif column.valid is not None:
        column.valid[rows] = True if part.valid is None else part.valid


def take_rows(column: Numbers | Slices, rows: Rows) -> Numbers | Slices:
    """The values of some records."""
    if rows is None:
        return column
    valid = None if column.valid is None else column.valid[rows]
    if isinstance(column, Numbers):
        return Numbers(column.values[rows], valid)
    return Slices(column.starts[rows], column.lengths[rows], valid)


@dataclass(slots=True)
class ItemCollector:
    """Collects array elements in decoding order: the first of all records, the second, ..."""

    records: int
    empty: Numbers | Slices
    counts: Int64s = field(init=False)
    parts: list[tuple[Int64s, Int64s, int | Int64s, Numbers | Slices]] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.records, np.int64)
        self.parts = []

    def add(self, rows: Rows, keys: int | Int64s, values: Numbers | Slices) -> None:
        """Adds one element of some records; keys are ignored for arrays."""
        where = np.arange(self.records) if rows is None else rows
        self.parts.append((where, self.counts[where], keys, values))
        self.counts[where] += 1

    def items(self, has_keys: bool) -> Items:
        """All elements, record by record."""
        total = int(self.counts.sum())
        firsts = np.cumsum(self.counts) - self.counts
        keys = np.zeros(total, np.int64) if has_keys else None
        valid = np.zeros(total, np.bool_)
        values: Numbers | Slices
        if isinstance(self.empty, Numbers):
            values = Numbers(np.zeros(total, self.empty.values.dtype), valid)
        else:
            values = Slices(np.zeros(total, np.int64), np.zeros(total, np.int64), valid)
        for rows, positions, part_keys, part in self.parts:
            targets = firsts[rows] + positions
            put(part, values, targets)
            if keys is not None:
                keys[targets] = part_keys
        if valid.all():
            values.valid = None
        return Items(self.counts, keys, values)


def column_to_arrow(column: Column, data: bytes) -> pa.Array:
    """Converts a column to bool, int64, float, double, binary, list or map; copies from `data`."""
    match column:
        case Numbers(values=numbers, valid=valid):
            return pa.array(numbers, mask=None if valid is None else ~valid)
        case Slices():
            return _slices_to_arrow(column, data)
        case Items():
            return _items_to_arrow(column, data)


def _placed(part: npt.NDArray[Any], whole: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
    if rows is None:
        return part
    whole[rows] = part
    return whole


def _slices_to_arrow(column: Slices, data: bytes) -> pa.Array:
    """Arrow binary, by way of an array in which every second element is a gap between slices."""
    count = len(column.starts)
    if not count:
        return pa.array([], pa.binary())
    starts, ends = column.starts, column.starts + column.lengths
    if column.valid is not None:
        reached = np.maximum.accumulate(np.where(column.valid, ends, 0))
        starts = np.where(column.valid, starts, reached)
        ends = np.where(column.valid, ends, reached)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1]
    slices_and_gaps = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    indices = np.arange(0, 2 * count, 2)
    missing = None if column.valid is None else ~column.valid
    return slices_and_gaps.take(pa.array(indices, mask=missing))


def _items_to_arrow(column: Items, data: bytes) -> pa.Array:
    offsets = np.zeros(len(column.counts) + 1, np.int32)
    np.cumsum(column.counts, out=offsets[1:])
    values = column_to_arrow(column.values, data)
    if column.keys is None:
        kind, child = pa.list_(values.type), values
    else:
        kind = pa.map_(pa.int64(), values.type)
        keys = pa.array(column.keys)
        child = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    valid = column.valid
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        kind, len(column.counts), [bits, pa.py_buffer(offsets)], children=[child]
    )
