"""Shuffles blocks of Arrow rows by Spark, which sees numbers and bytes only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession, functions as f

from icebergds.operations.maintenance.rewrite_groups import discard_files_of
from icebergds.operations.maintenance.sorted_task import SortPlan, split_rows, write_ranges
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spark.errors import without_frames
from icebergds.spark.runner import items_frame, unpacked
from icebergds.spark.save_job import write_in_tasks
from icebergds.spark.worker import settle_worker
from icebergds.spec.manifest import DataFile


@dataclass(frozen=True, slots=True)
class BlockShuffle:
    """Brings rows from the tasks that read them to those that write them (`Shuffle`)."""

    spark: SparkSession

    def __call__(
        self, plan: SortPlan, files: Sequence[ScanTaskGroup], count: int
    ) -> list[list[DataFile]]:
        if not files:
            return []
        blocks = items_frame(self.spark, files).mapInArrow(
            _Splitting(plan), "task int, place int, block binary"
        )
        shuffled = blocks.repartitionById(count, f.col("task")).sortWithinPartitions("place")
        discard = partial(discard_files_of, plan.rewrite)
        results = write_in_tasks(shuffled, partial(write_ranges, plan), discard)
        return [written for written in results if isinstance(written, list)]


@dataclass(frozen=True, slots=True)
class _Splitting:
    """Splits the rows of files, for `mapInArrow`, whose rows are groups of scan tasks."""

    plan: SortPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        with without_frames():
            for _, files in unpacked(batches):
                yield from split_rows(self.plan, files)
