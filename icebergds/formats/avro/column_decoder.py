"""Decodes Avro values column by column: each step of the schema for all records at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from icebergds.formats.avro.columns import (
    Column,
    ItemCollector,
    Items,
    NotVectorisableError,
    Numbers,
    Rows,
    Slices,
    is_number,
    is_slice,
    key_value,
    null_column,
    put,
    take_rows,
)
from icebergds.formats.avro.cursors import Cursors, Int64s
from icebergds.formats.avro.schema import (
    AVRO_NULL,
    AvroArray,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroUnion,
    without_null,
)

_Pair = tuple[AvroNode, AvroNode]
_Visit = Callable[[Int64s, Rows], Int64s]


class ColumnDecoder(Cursors):
    """Decodes values of any type for all records of a buffer; see `Cursors` on damaged data.

    Args:
        pieces: the buffer, in pieces.
        max_elements: arrays with larger blocks count as damaged, as each element takes a step.
    """

    def __init__(self, pieces: Iterable[bytes | memoryview], max_elements: int = 50_000) -> None:
        super().__init__(pieces)
        self.max_elements = max_elements

    def skip(self, node: AvroNode, at: Int64s) -> Int64s:
        """Skips a value of each record; returns the cursors after it."""
        match node:
            case AvroPrimitive():
                return self._skip_primitive(node, at)
            case AvroUnion(branches=branches):
                return self._skip_union(branches, at)
            case AvroRecord(fields=fields):
                for field in fields:
                    at = self.skip(field.node, at)
                return at
            case AvroArray(items=items):
                return self._elements(at, self._skipper(items), skip_sized=True)
            case AvroMap(values=values):
                return self._elements(
                    at, lambda sub, _: self.skip(values, self.slices(sub)[2]), skip_sized=True
                )

    def read(self, node: AvroNode, at: Int64s) -> tuple[Column, Int64s]:
        """Reads a value of each record; also returns the cursors after it.

        Raises:
            NotVectorisableError: the type is not one that manifests use.
        """
        match node:
            case AvroPrimitive():
                return self._read_primitive(node, at)
            case AvroUnion():
                return self._read_union(node, at)
            case AvroArray(items=items):
                return self._read_items(items, at)
            case _:
                raise NotVectorisableError(f"values of type {node}")

    def read_keys(
        self, node: AvroNode, at: Int64s, wanted: frozenset[int]
    ) -> tuple[Mapping[int, Column], Int64s]:
        """Reads the values of some keys from an array of key-value records.

        Every wanted key gets a column, which is null if a record does not have the key.
        """
        inner = without_null(node)
        pair = key_value(inner.items) if isinstance(inner, AvroArray) else None
        if pair is None:
            raise NotVectorisableError(f"not a map with integer keys: {node}")
        found = {key: null_column(pair[1], len(at)) for key in wanted}
        rows: Rows = None
        if isinstance(node, AvroUnion):
            at, rows = self._present(node, at)
        if rows is None:
            return found, self._elements(at, self._picker(pair, found, None))
        if rows.size:
            at[rows] = self._elements(at[rows], self._picker(pair, found, rows))
        return found, at

    def _skip_primitive(self, node: AvroPrimitive, at: Int64s) -> Int64s:
        match node.kind:
            case "null":
                return at
            case "int" | "long" | "enum":
                return self.skip_varint(at)
            case "string" | "bytes":
                return self.slices(at)[2]
            case "boolean":
                return self.moved(at, 1)
            case "float":
                return self.moved(at, 4)
            case "double":
                return self.moved(at, 8)
            case _:
                return self.moved(at, node.size)

    def _skip_union(self, branches: tuple[AvroNode, ...], at: Int64s) -> Int64s:
        tags = self.bytes[at]
        at = self.moved(at, 1)
        after = np.full_like(at, self.over)
        for index, branch in enumerate(branches):
            rows = np.flatnonzero(tags == 2 * index)
            if rows.size == len(at):
                return self.skip(branch, at)
            if rows.size:
                after[rows] = self.skip(branch, at[rows])
        return after

    def _read_primitive(self, node: AvroPrimitive, at: Int64s) -> tuple[Column, Int64s]:
        match node.kind:
            case "null":
                return null_column(node, len(at)), at
            case "int" | "long" | "enum":
                numbers, at = self.varint(at)
                return Numbers(numbers), at
            case "string" | "bytes":
                starts, lengths, at = self.slices(at)
                return Slices(starts, lengths), at
            case "boolean":
                flags = self.bytes[at]
                return Numbers(flags == 1), self.moved(at, np.where(flags > 1, self.over, 1))
            case "float":
                return Numbers(self.every_byte("<f4")[at]), self.moved(at, 4)
            case "double":
                return Numbers(self.every_byte("<f8")[at]), self.moved(at, 8)
            case _:
                return Slices(at, np.full_like(at, node.size)), self.moved(at, node.size)

    def _read_union(self, node: AvroUnion, at: Int64s) -> tuple[Column, Int64s]:
        inner = without_null(node)
        at, rows = self._present(node, at)
        if rows is None:
            return self.read(inner, at)
        column = null_column(inner, len(at))
        if rows.size:
            part, at[rows] = self.read(inner, at[rows])
            put(part, column, rows)
        return column, at

    def _present(self, node: AvroUnion, at: Int64s) -> tuple[Int64s, Rows]:
        """Cursors after the index of the branch, and the records whose value is not null."""
        if len(node.branches) != 2 or AVRO_NULL not in node.branches:
            raise NotVectorisableError(f"union {node}")
        tags = self.bytes[at]
        after = self.moved(at, 1)
        null_tag = 2 * node.branches.index(AVRO_NULL)
        present = tags == 2 - null_tag
        if present.all():
            return after, None
        after[~present & (tags != null_tag)] = self.over
        return after, np.flatnonzero(present)

    def _elements(self, at: Int64s, visit: _Visit, skip_sized: bool = False) -> Int64s:
        """Visits all elements of an array; returns the cursors after it.

        Blocks that state their size in bytes are skipped whole if `skip_sized`.
        """
        after = at
        rows: Rows = None
        while True:
            counts, at = self.varint(at)
            if counts.min() < 0:
                counts, at = self._sized_blocks(counts, at, skip_sized)
            at = self._visit_block(at, counts, rows, visit)
            more = counts != 0
            if more.all():
                continue
            if rows is None:
                if not more.any():
                    return at
                rows, after = np.arange(len(at)), at.copy()
            after[rows] = at
            rows, at = rows[more], at[more]
            if not rows.size:
                return after

    def _sized_blocks(self, counts: Int64s, at: Int64s, skip: bool) -> tuple[Int64s, Int64s]:
        """Reads the sizes after negative counts; the counts of skipped blocks stay negative."""
        sized = np.flatnonzero(counts < 0)
        sizes, starts = self.varint(at[sized])
        if skip:
            at[sized] = self.past_slices(starts, sizes)
        else:
            counts[sized] = -counts[sized]
            at[sized] = starts
        return counts, at

    def _visit_block(self, at: Int64s, counts: Int64s, rows: Rows, visit: _Visit) -> Int64s:
        least, most = max(int(counts.min()), 0), int(counts.max())
        if most > self.max_elements:
            damaged = counts > self.max_elements
            at[damaged], counts[damaged] = self.over, 0
            least, most = max(int(counts.min()), 0), int(counts.max())
        for _ in range(least):
            at = visit(at, rows)
        for step in range(least, most):
            some = np.flatnonzero(counts > step)
            at[some] = visit(at[some], some if rows is None else rows[some])
        return at

    def _skipper(self, items: AvroNode) -> _Visit:
        pair = key_value(items)
        if pair is None:
            return lambda at, _: self.skip(items, at)
        if is_number(pair[1]):
            return lambda at, _: self.pairs(at).after
        if is_slice(pair[1]):
            return lambda at, _: self._read_pair(pair, at)[2]
        return lambda at, _: self.skip(pair[1], self.skip_varint(at))

    def _read_pair(
        self, pair: _Pair, at: Int64s
    ) -> tuple[int | Int64s, Callable[[], Numbers | Slices], Int64s]:
        """Keys of key-value records, a function for their values, and the cursors after them."""
        if is_number(pair[1]):
            pairs = self.pairs(at)
            return pairs.keys, lambda: Numbers(_spread(pairs.values, len(at))), pairs.after
        if is_slice(pair[1]):
            pairs = self.pairs(at)
            starts, lengths = pairs.after, pairs.values
            after = self.past_slices(starts, lengths)
            return pairs.keys, lambda: Slices(starts, _spread(lengths, len(at))), after
        keys, at = self.varint(at)
        values, at = self._read_element(pair[1], at)
        return keys, lambda: values, at

    def _read_element(self, node: AvroNode, at: Int64s) -> tuple[Numbers | Slices, Int64s]:
        values, at = self.read(node, at)
        if isinstance(values, Items):
            raise NotVectorisableError("an array of arrays")
        return values, at

    def _picker(self, pair: _Pair, found: Mapping[int, Column], among: Rows) -> _Visit:
        """Puts the values of wanted keys into their columns; visits the records `among`."""
        if not found:
            return lambda at, _: self._read_pair(pair, at)[2]

        def visit(at: Int64s, rows: Rows) -> Int64s:
            keys, values, at = self._read_pair(pair, at)
            if isinstance(keys, int):
                if keys in found:
                    put(values(), found[keys], _within(among, rows))
                return at
            for key, column in found.items():
                hits = np.flatnonzero(keys == key)
                if hits.size:
                    put(take_rows(values(), hits), column, _within(among, _within(rows, hits)))
            return at

        return visit

    def _read_items(self, items: AvroNode, at: Int64s) -> tuple[Items, Int64s]:
        pair = key_value(items)
        empty = null_column(items if pair is None else pair[1], 0)
        if isinstance(empty, Items):
            raise NotVectorisableError("an array of arrays")
        collector = ItemCollector(len(at), empty)

        def visit(at: Int64s, rows: Rows) -> Int64s:
            if pair is None:
                values, at = self._read_element(items, at)
                collector.add(rows, 0, values)
            else:
                keys, values_of, at = self._read_pair(pair, at)
                collector.add(rows, keys, values_of())
            return at

        at = self._elements(at, visit)
        return collector.items(pair is not None), at


def _spread(values: int | Int64s, count: int) -> Int64s:
    return np.full(count, values) if isinstance(values, int) else values


def _within(outer: Rows, inner: Rows) -> Rows:
    """Maps rows of a part to rows of the whole."""
    if outer is None:
        return inner
    return outer if inner is None else outer[inner]
