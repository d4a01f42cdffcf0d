"""Shuffles blocks of rows in this process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from icebergds.operations.maintenance.rewrite.groups import discard_files_of
from icebergds.operations.maintenance.rewrite.sorted_task import SortPlan, split_rows, write_ranges
from icebergds.operations.runner import Runner, TaskAttempt
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile

_BLOCKS_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class LocalShuffle:
    """Brings blocks to the tasks that write them, with nulls; those of a range in any order."""

    runner: Runner

    def __call__(
        self, plan: SortPlan, files: Sequence[ScanTaskGroup], count: int
    ) -> list[list[DataFile]]:
        packed = pickle.dumps(plan)
        found = self.runner.run(partial(_split, packed), files)
        blocks = pa.concat_tables(found) if found else None
        items = [] if blocks is None else [_of_task(blocks, number) for number in range(count)]
        discard = partial(discard_files_of, plan.rewrite)
        return self.runner.run(partial(_write, packed), items, discard)


def _split(plan: bytes, files: ScanTaskGroup, _: TaskAttempt) -> pa.Table:
    schema = pa.schema([("task", pa.int32()), ("place", pa.int32()), ("block", pa.binary())])
    blocks = pa.Table.from_batches(list(split_rows(pickle.loads(plan), files)), schema)
    nulls = blocks.set_column(2, schema.field(2), pa.nulls(len(blocks), pa.binary()))
    return pa.concat_tables([blocks, nulls])


def _of_task(blocks: pa.Table, number: int) -> pa.Table:
    own = blocks.filter(pa.compute.equal(blocks["task"], number))
    return own.take(pa.array(range(len(own) - 1, -1, -1), pa.int64())).sort_by("place")


def _write(plan: bytes, blocks: pa.Table, attempt: TaskAttempt) -> list[DataFile]:
    return write_ranges(
        pickle.loads(plan),
        blocks.to_batches(_BLOCKS_AT_ONCE),
        partition_id=attempt.partition_id,
        attempt_id=attempt.attempt_id,
    )
