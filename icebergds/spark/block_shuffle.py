"""Shuffles blocks of Arrow rows with Spark, which sees only numbers and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession, functions as f

from icebergds.operations.maintenance.rewrite.groups import discard_files_of
from icebergds.operations.maintenance.rewrite.sorted_task import SortPlan, split_rows, write_ranges
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spark.errors import without_frames
from icebergds.spark.quick_batches import MAX_BYTES_PER_BATCH, UNBOUNDED
from icebergds.spark.runner import items_frame, pack_items, unpacked
from icebergds.spark.save_job import write_in_tasks
from icebergds.spark.worker import settle_worker
from icebergds.spec.manifest import DataFile

_MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# How many bytes Spark should send to a Python task at once.
_SENT_BYTES = 64 * 1024 * 1024
_LEAST_BYTES_OF_A_ROW = 1024


@dataclass(frozen=True, slots=True)
class BlockShuffle:
    """Brings rows from the tasks that read them to those that write them (`Shuffle`)."""

    spark: SparkSession

    def __call__(
        self, plan: SortPlan, files: Iterable[ScanTaskGroup], count: int
    ) -> list[list[DataFile]]:
        packed, weight = pack_items(files)
        if not len(packed):
            return []
        splitting = _Splitting(plan, _bytes_of_a_row(self.spark))
        blocks = items_frame(self.spark, packed).mapInArrow(
            splitting, "task int, place int, block binary"
        )
        shuffled = blocks.repartitionById(count, f.col("task")).sortWithinPartitions("place")
        discard = partial(discard_files_of, plan.rewrite)
        # Before the tasks that write, one stage hands out the files, and one reads them.
        results = write_in_tasks(shuffled, partial(write_ranges, plan), discard, (count, 2, weight))
        return [written for written in results if isinstance(written, list)]


@dataclass(frozen=True, slots=True)
class _Splitting:
    """Splits the rows of files, for `mapInArrow`, whose rows are groups of scan tasks.

    Attributes:
        bytes_of_a_row: as `_bytes_of_a_row` says.
    """

    plan: SortPlan
    bytes_of_a_row: int | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        with without_frames():
            for _, files in unpacked(batches):
                for blocks in split_rows(self.plan, files):
                    yield blocks
                    if self.bytes_of_a_row is not None:
                        yield from _rows_besides(blocks, self.bytes_of_a_row)


def _bytes_of_a_row(spark: SparkSession) -> int | None:
    """The bytes of a block that count as one row; None if Spark itself limits a batch's bytes.

    If Spark counts only rows, it sends 10,000 blocks at once to the tasks that write them.
    """
    if spark.conf.get(MAX_BYTES_PER_BATCH, None) != UNBOUNDED:
        return None
    rows = int(spark.conf.get(_MAX_ROWS) or 0)
    return max(_SENT_BYTES // rows, _LEAST_BYTES_OF_A_ROW) if rows > 0 else None


def _rows_besides(blocks: pa.RecordBatch, bytes_of_a_row: int) -> Iterator[pa.RecordBatch]:
    """Filler rows in the ranges of large blocks, so that Spark sends fewer blocks at once."""
    sizes = pc.binary_length(blocks.column("block")).to_numpy()
    rows = pa.array(np.repeat(np.arange(len(sizes)), sizes // bytes_of_a_row))
    if len(rows):
        columns = [blocks.column(name).take(rows) for name in ("task", "place")]
        nulls = pa.nulls(len(rows), pa.binary())
        yield pa.RecordBatch.from_arrays([*columns, nulls], schema=blocks.schema)
