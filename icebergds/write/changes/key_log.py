"""Collects the keys of a task's rows in order, and finds the last row of each key.

Rows are buffered in memory up to a limit. Then only the last row of each key is kept; if these are
still too many, they are spilled to temporary files by hash, with all rows of a key in one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import TracebackType

import numpy as np
import pyarrow as pa

from icebergds.formats.deletes.key_hash import Hashes
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.io.failures import storage_failures
from icebergds.write.changes.row_kinds import Mask
from icebergds.write.deletes.keys import KeyPlan

_ORDER = "order"
_MAY_EXIST = "may_exist"
_IS_DELETED = "is_deleted"
_BUCKET_BITS = 6


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """Distinct keys.

    Attributes:
        columns: the key columns, in the order of the key plan.
        may_exist: whether earlier commits may have rows with the key.
        is_deleted: whether the last row of the key deletes it.
        hashes: of the keys, in any order; None if they were not computed.
    """

    columns: tuple[pa.Array, ...]
    may_exist: Mask
    is_deleted: Mask
    hashes: Hashes | None

    def __len__(self) -> int:
        return len(self.may_exist)


class KeyLog:
    """Collects keys; a context manager, which deletes temporary files at exit.

    Args:
        keys: the key columns.
        limit: how many rows to buffer in memory.
    """

    def __init__(self, keys: KeyPlan, limit: int) -> None:
        self._keys = keys
        self._limit = limit
        self._names = [f"key{at}" for at in range(len(keys.fields))]
        self._buffered: list[pa.Table] = []
        self._buffered_rows = 0
        # Of the keys that the buffer has, if each is there once.
        self._hashes: Hashes | None = None
        self._superseded = PositionCollector()
        self._spill: _Spill | None = None

    def __enter__(self) -> KeyLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._spill is not None:
            self._spill.remove()

    def add(
        self, columns: Sequence[pa.Array], first: int, may_exist: Mask, is_deleted: Mask
    ) -> None:
        """Adds rows.

        Args:
            columns: the key columns.
            first: the number of the first row; numbers are consecutive, and ascend between calls.
            may_exist: whether earlier commits may have rows with the key, for each row.
            is_deleted: whether the row deletes its key.
        """
        order = pa.array(np.arange(first, first + len(may_exist), dtype=np.int64))
        # Copied, because slices would keep all columns of their batches in memory.
        columns = [column.take(pa.array(np.arange(len(column)))) for column in columns]
        rows = pa.table(
            [*columns, order, pa.array(may_exist), pa.array(is_deleted)],
            names=[*self._names, _ORDER, _MAY_EXIST, _IS_DELETED],
        )
        self._buffered.append(rows)
        self._buffered_rows += rows.num_rows
        if self._buffered_rows >= self._limit:
            self._reduce_buffered()
            # At most half full, the buffer has room for many rows before it is reduced again.
            if self._buffered_rows > self._limit // 2:
                self._spill_buffered()

    def distinct(self) -> Iterator[DistinctKeys]:
        """The distinct keys of all rows; no rows can be added afterwards."""
        if self._spill is None:
            self._reduce_buffered()
            buffered, self._buffered = self._buffered, []
            yield from (self._distinct(table) for table in buffered if table.num_rows)
            return
        self._spill_buffered()
        for table in self._spill.buckets():
            yield self._distinct(self._reduced(table))

    def superseded(self) -> PositionSet:
        """The numbers of rows that later rows of their keys replace; known after `distinct`."""
        return self._superseded.result()

    def _distinct(self, table: pa.Table) -> DistinctKeys:
        table = table.combine_chunks()
        may_exist, is_deleted = (
            _flat(table.column(name)).to_numpy(zero_copy_only=False)
            for name in (_MAY_EXIST, _IS_DELETED)
        )
        return DistinctKeys(self._columns(table), may_exist, is_deleted, self._hashes)

    def _columns(self, table: pa.Table) -> tuple[pa.Array, ...]:
        return tuple(_flat(table.column(name)) for name in self._names)

    def _reduce_buffered(self) -> None:
        if len(self._buffered) > 0:
            reduced = self._reduced(pa.concat_tables(self._buffered))
            self._buffered, self._buffered_rows = [reduced], reduced.num_rows

    def _reduced(self, table: pa.Table) -> pa.Table:
        """The last row of each key; `may_exist` if it is true for any row of the key."""
        hashes = np.sort(self._keys.hashes(self._columns(table)))
        is_distinct = bool((hashes[1:] != hashes[:-1]).all())
        self._hashes = hashes if is_distinct else None
        # Mostly so, and found out in less than half the time of grouping.
        if is_distinct:
            return table
        grouped = table.group_by(self._names, use_threads=False).aggregate(
            [(_ORDER, "max"), (_MAY_EXIST, "any")]
        )
        columns = [*self._names, f"{_ORDER}_max", f"{_MAY_EXIST}_any"]
        reduced = grouped.select(columns).rename_columns([*self._names, _ORDER, _MAY_EXIST])
        before, last = _numbers(table), _numbers(reduced)
        if len(last) < len(before):
            self._superseded.add(before[~np.isin(before, last, assume_unique=True)])
        order = np.argsort(before)
        at = pa.array(order[np.searchsorted(before, last, sorter=order)])
        return reduced.append_column(_IS_DELETED, table.column(_IS_DELETED).take(at))

    def _spill_buffered(self) -> None:
        self._reduce_buffered()
        if self._spill is None:
            self._spill = _Spill()
        for table in self._buffered:
            if table.num_rows:
                self._spill.write(table, self._keys.hashes(self._columns(table)))
        self._buffered, self._buffered_rows = [], 0


class _Spill:
    """Temporary files, one for each range of hashes."""

    def __init__(self) -> None:
        with storage_failures("writing temporary files in", gettempdir()):
            self._directory = TemporaryDirectory(
                prefix="icebergds-keys-", ignore_cleanup_errors=True
            )
        self._writers: dict[int, pa.RecordBatchFileWriter] = {}

    def write(self, table: pa.Table, hashes: Hashes) -> None:
        buckets = (hashes >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint8)
        order = np.argsort(buckets, kind="stable")
        rows = table.take(pa.array(order))
        ends = np.cumsum(np.bincount(buckets, minlength=1 << _BUCKET_BITS))
        for bucket, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                with self._failures("writing"):
                    self._writer(bucket, table.schema).write_table(rows.slice(start, end - start))

    def buckets(self) -> Iterator[pa.Table]:
        """The rows of each file; nothing can be written afterwards."""
        with self._failures("writing"):
            for writer in self._writers.values():
                writer.close()
        for bucket in sorted(self._writers):
            with self._failures("reading"), pa.OSFile(self._path(bucket)) as file:
                rows = pa.ipc.open_stream(file).read_all()
            yield rows

    def remove(self) -> None:
        for writer in self._writers.values():
            # An error here, as on a full disk, must not hide the original one.
            with suppress(Exception):
                writer.close()
        self._directory.cleanup()

    def _failures(self, operation: str) -> AbstractContextManager[None]:
        return storage_failures(f"{operation} temporary files in", self._directory.name)

    def _writer(self, bucket: int, schema: pa.Schema) -> pa.RecordBatchFileWriter:
        if bucket not in self._writers:
            self._writers[bucket] = pa.ipc.new_stream(self._path(bucket), schema)
        return self._writers[bucket]

    def _path(self, bucket: int) -> str:
        return str(Path(self._directory.name) / f"{bucket}.arrow")


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat


def _numbers(table: pa.Table) -> Positions:
    numbers: Positions = table.column(_ORDER).to_numpy()
    return numbers
