"""Sorts the rows of a group of data files by tasks that exchange blocks of Arrow rows.

Tasks read files and split their rows into ranges of the sort keys; others sort one range after the
other and write them. The bounds of the ranges come from a sample of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.maintenance.rewrite.task import RewritePlan
from icebergds.operations.runner import TaskAttempt
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile
from icebergds.write.rows.arrangement import Arranging, RowKeys, column_ranks, plan_keys
from icebergds.write.rows.fanout import combined, merged
from icebergds.write.rows.ranges import Ranges, in_order, ranges_of
from icebergds.write.task import matched, write_batches

_BLOCKS = pa.schema([("task", pa.int32()), ("place", pa.int32()), ("block", pa.binary())])
_SAMPLED_ROWS = 100_000
_SAMPLED_BYTES = 256 * 1024 * 1024
# Size of the rows sorted at once if a range is larger than the sample predicted.
_SORTED_BYTES = 256 * 1024 * 1024
# Rows are split together until their blocks are so large on average, or they take too much memory.
_BLOCK_BYTES = 256 * 1024
_SPLIT_BYTES = 128 * 1024 * 1024
_LARGEST_BLOCK = 4 * 1024 * 1024
# Size of the blocks handed to Spark at once.
_SENT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SortPlan:
    """Shared by all tasks that sort a group of files; created by `plan_sort`.

    Attributes:
        ranges_per_task: how many ranges a task writes one after the other.
    """

    rewrite: RewritePlan
    keys: RowKeys
    ranges: Ranges
    ranges_per_task: int


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """Shared by all tasks that sample keys.

    Attributes:
        read: the columns that keys are computed from.
        share: the share of rows to sample.
    """

    read: ReadPlan
    share: float


def plan_sample(read: ReadPlan, arranging: Arranging, rows: int, nbytes: int) -> SamplePlan:
    """Plans a sample of the keys of files, of bounded size.

    Args:
        read: how the files are read.
        rows: how many they have.
        nbytes: their size.
    """
    columns = read.table_schema.select(arranging.field_ids)
    share = min(1.0, _SAMPLED_ROWS / max(rows, 1), _SAMPLED_BYTES / max(nbytes, 1))
    return SamplePlan(replace(read, columns=columns), share)


def sample_rows(plan: SamplePlan, files: ScanTaskGroup, attempt: TaskAttempt) -> pa.RecordBatch:
    """Some of the rows of files, each with the same probability."""
    chance = np.random.default_rng(attempt.partition_id)
    batches = [
        batch.take(pa.array(np.flatnonzero(chance.random(batch.num_rows) < plan.share)))
        for batch in read_scan_tasks(plan.read, files)
    ]
    return _as_one(plan, batches)


def plan_sort(
    rewrite: RewritePlan,
    arranging: Arranging,
    sample: SamplePlan,
    sampled: Sequence[pa.RecordBatch],
    *,
    tasks: int,
    ranges_per_task: int,
) -> SortPlan:
    """Plans how rows are sorted.

    Args:
        sampled: the rows that tasks have sampled.
        tasks: how many tasks write the rows; the first ones write the lowest.
    """
    rows, columns = _as_one(sample, sampled), sample.read.columns
    write = rewrite.write
    ranks = column_ranks(arranging, columns, rows)
    table = write.matching.table
    ranges = ranges_of(
        plan_keys(arranging, columns, ranks, table=table).of(rows), tasks * ranges_per_task
    )
    keys = plan_keys(arranging, write.schema, ranks, table=table)
    return SortPlan(rewrite, keys, ranges, ranges_per_task)


def split_rows(plan: SortPlan, files: ScanTaskGroup) -> Iterator[pa.RecordBatch]:
    """Splits the rows of files into blocks, each with rows of one range.

    Returns:
        Batches of blocks, with the columns `task`: which task writes it; `place`: the number of its
        range; `block`: its rows.
    """
    limit = min(_SPLIT_BYTES, plan.ranges.count * _BLOCK_BYTES)
    rows = matched(plan.rewrite.write.matching, read_scan_tasks(plan.rewrite.read, files))
    blocks = _Blocks(plan)
    for batch in combined(rows, limit):
        for place, part in plan.ranges.split(batch, plan.keys.of):
            pieces = ceil(part.nbytes / _LARGEST_BLOCK)
            step = ceil(part.num_rows / max(pieces, 1))
            for start in range(0, part.num_rows, step):
                blocks.add(place, part.slice(start, step))
                if blocks.size >= _SENT_BYTES:
                    yield blocks.take()
    if blocks.size:
        yield blocks.take()


def write_ranges(
    plan: SortPlan, blocks: Iterable[pa.RecordBatch], *, partition_id: int, attempt_id: int
) -> list[DataFile]:
    """Writes the rows of blocks, sorted; deletes the files if it fails.

    Args:
        blocks: those that `split_rows` returned for this task, ordered by `place`; blocks may be
            null.

    Returns:
        The new files.
    """
    return write_batches(
        plan.rewrite.write,
        _sorted(plan, blocks),
        partition_id=partition_id,
        attempt_id=attempt_id,
    )


def _sorted(plan: SortPlan, blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = schema_to_arrow(plan.rewrite.write.schema)
    for _, placed in groupby(_placed(blocks), key=lambda block: block[0]):
        rows = [pa.ipc.read_record_batch(block, schema) for _, block in placed]
        yield from in_order(rows, plan.keys.of, _SORTED_BYTES)


def _placed(blocks: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
    """The blocks, each with the number of its range."""
    for batch in blocks:
        places, found = batch.column("place").to_numpy(), batch.column("block")
        for at in np.flatnonzero(found.is_valid()):
            yield places[at], found[at].as_buffer()


class _Blocks:
    """Collects blocks, and packs them as a batch."""

    def __init__(self, plan: SortPlan) -> None:
        self._plan = plan
        self._begin()

    @property
    def size(self) -> int:
        """The size of the blocks, in bytes."""
        return self._ends[-1]

    def add(self, place: int, rows: pa.RecordBatch) -> None:
        self._places.append(place)
        # Its length is a multiple of 8, so that the columns of all blocks are aligned.
        self._sink.write(rows.serialize())
        self._ends.append(self._sink.tell())

    def take(self) -> pa.RecordBatch:
        """Removes and returns the blocks."""
        ends = pa.py_buffer(np.array(self._ends, np.int32))
        blocks = pa.Array.from_buffers(
            pa.binary(), len(self._places), [None, ends, self._sink.getvalue()]
        )
        places = np.array(self._places, np.int32)
        self._begin()
        tasks = places // self._plan.ranges_per_task
        return pa.RecordBatch.from_arrays(
            [pa.array(tasks, pa.int32()), pa.array(places), blocks], schema=_BLOCKS
        )

    def _begin(self) -> None:
        self._places: list[int] = []
        self._ends = [0]
        self._sink: Any = pa.BufferOutputStream()


def _as_one(plan: SamplePlan, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    found = merged([batch for batch in batches if batch.num_rows])
    return found[0] if found else pa.RecordBatch.from_pylist([], schema_to_arrow(plan.read.columns))
