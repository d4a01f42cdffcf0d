"""The keys of a task's rows in the order of the rows, and which row of a key is the last.

Rows wait in memory up to a limit. Then each key is reduced to its last row; where that leaves too
many, they go to temporary files, apart by hash, so that all rows of a key are in one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import numpy as np
import pyarrow as pa

from icebergds.formats.deletes.key_hash import Hashes
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.write.changes.row_kinds import Mask
from icebergds.write.deletes.keys import KeyPlan

_ORDER = "order"
_IS_OLD = "is_old"
_BUCKET_BITS = 6


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """Some keys, each once.

    Attributes:
        columns: the key columns, in the order of the plan's.
        is_old: whether rows of earlier commits may have the key.
    """

    columns: tuple[pa.Array, ...]
    is_old: Mask

    def __len__(self) -> int:
        return len(self.is_old)


class KeyLog:
    """Gathers keys; to be used as a context, whose end deletes temporary files.

    Args:
        keys: the key columns.
        limit: how many rows wait in memory.
    """

    def __init__(self, keys: KeyPlan, limit: int) -> None:
        self._keys = keys
        self._limit = limit
        self._names = [f"key{at}" for at in range(len(keys.fields))]
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
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

    def add(self, columns: Sequence[pa.Array], first: int, is_old: Mask) -> None:
        """Takes rows.

        Args:
            columns: the key columns.
            first: the first row's number; the others follow, and rows come in this order.
            is_old: of which rows' keys earlier commits may have rows.
        """
        order = pa.array(np.arange(first, first + len(is_old), dtype=np.int64))
        # In memory of their own: keys would keep all columns of their batches.
        columns = [column.take(pa.array(np.arange(len(column)))) for column in columns]
        rows = pa.table([*columns, order, pa.array(is_old)], names=[*self._names, _ORDER, _IS_OLD])
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        if self._waiting_rows >= self._limit:
            self._reduce_waiting()
            # What is little leaves room for as much again before it has to be reduced once more.
            if self._waiting_rows > self._limit // 2:
                self._spill_waiting()

    def distinct(self) -> Iterator[DistinctKeys]:
        """The keys of all rows, each once; ends the gathering."""
        if self._spill is None:
            self._reduce_waiting()
            waiting, self._waiting = self._waiting, []
            yield from (self._distinct(table) for table in waiting if table.num_rows)
            return
        self._spill_waiting()
        for table in self._spill.buckets():
            yield self._distinct(self._reduced(table))

    def superseded(self) -> PositionSet:
        """The numbers of rows that later rows of the same key followed; known after `distinct`."""
        return self._superseded.result()

    def _distinct(self, table: pa.Table) -> DistinctKeys:
        table = table.combine_chunks()
        columns = tuple(_flat(table.column(name)) for name in self._names)
        return DistinctKeys(columns, _flat(table.column(_IS_OLD)).to_numpy(zero_copy_only=False))

    def _reduce_waiting(self) -> None:
        if len(self._waiting) > 0:
            reduced = self._reduced(pa.concat_tables(self._waiting))
            self._waiting, self._waiting_rows = [reduced], reduced.num_rows

    def _reduced(self, table: pa.Table) -> pa.Table:
        """The last row of each key; is old if one of its rows is."""
        grouped = table.group_by(self._names, use_threads=False).aggregate(
            [(_ORDER, "max"), (_IS_OLD, "any")]
        )
        columns = [*self._names, f"{_ORDER}_max", f"{_IS_OLD}_any"]
        reduced = grouped.select(columns).rename_columns([*self._names, _ORDER, _IS_OLD])
        if reduced.num_rows < table.num_rows:
            before, last = _numbers(table), _numbers(reduced)
            self._superseded.add(before[~np.isin(before, last, assume_unique=True)])
        return reduced

    def _spill_waiting(self) -> None:
        self._reduce_waiting()
        if self._spill is None:
            self._spill = _Spill()
        for table in self._waiting:
            columns = [_flat(table.column(name)) for name in self._names]
            if table.num_rows:
                self._spill.write(table, self._keys.hashes(columns))
        self._waiting, self._waiting_rows = [], 0


class _Spill:
    """Temporary files, each with the rows of some hashes."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="icebergds-keys-")
        self._writers: dict[int, pa.RecordBatchFileWriter] = {}

    def write(self, table: pa.Table, hashes: Hashes) -> None:
        buckets = (hashes >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint8)
        order = np.argsort(buckets, kind="stable")
        rows = table.take(pa.array(order))
        ends = np.cumsum(np.bincount(buckets, minlength=1 << _BUCKET_BITS))
        for bucket, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                self._writer(bucket, table.schema).write_table(rows.slice(start, end - start))

    def buckets(self) -> Iterator[pa.Table]:
        """The rows of each file; ends the writing."""
        for writer in self._writers.values():
            writer.close()
        for bucket in sorted(self._writers):
            with pa.OSFile(self._path(bucket)) as file:
                yield pa.ipc.open_stream(file).read_all()

    def remove(self) -> None:
        for writer in self._writers.values():
            # A full disk must not hide the error that it caused first.
            with suppress(Exception):
                writer.close()
        self._directory.cleanup()

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
