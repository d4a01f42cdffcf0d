"""Rewrites groups of data files in a sort order or along a curve."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Protocol

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.operations.maintenance.rewrite.groups import RewrittenGroup
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup, new_file_count
from icebergds.operations.maintenance.rewrite.sorted_task import (
    SortPlan,
    plan_sample,
    plan_sort,
    sample_rows,
)
from icebergds.operations.maintenance.rewrite.task import RewritePlan
from icebergds.operations.runner import Runner
from icebergds.reporting import stage
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.sort import SortOrder
from icebergds.write.rows.arrangement import Arranging, Curve
from icebergds.write.rows.sorting import plan_order

# Size of a range's rows in data files; in memory, they take several times as much.
_RANGE_BYTES = 8 * 1024 * 1024
_MOST_RANGES = 4096


class Shuffle(Protocol):
    """Moves rows from the tasks that read them to those that write them."""

    def __call__(
        self, plan: SortPlan, files: Iterable[ScanTaskGroup], count: int
    ) -> list[list[DataFile]]:
        """Writes the rows of files by `count` tasks; deletes the new files if that fails.

        Runs `split_rows` for each of `files`, then `write_ranges` for the blocks of each task,
        ordered by `place`.

        Returns:
            What each task wrote, in any order.
        """
        ...


@dataclass(frozen=True, slots=True)
class SortedRewriter:
    """Rewrites a group so that its new files are sorted, and their ranges do not overlap.

    Attributes:
        runner: runs the tasks that sample keys.
        order: the rows' sort order; new files have its id if the table has it.
        curve: sort along a curve instead; `order` is unsorted then.
    """

    runner: Runner
    shuffle: Shuffle
    options: RewriteOptions
    order: SortOrder = SortOrder()  # noqa: RUF009
    curve: Curve | None = None

    def __call__(self, table: LoadedTable, plan: RewritePlan, group: FileGroup) -> RewrittenGroup:
        metadata = table.metadata
        splits = SplitOptions.of(metadata.properties)
        files = partial(pack_files, group.files, metadata, metadata.schema(), splits)
        own = self._sorting(plan.renamed(), table.name)
        count = new_file_count(ceil(group.nbytes * self.options.compression_factor), self.options)
        sort = self._plan(own, group, files(), count)
        return RewrittenGroup(group, own, self.shuffle(sort, files(), count), is_shuffled=True)

    def _sorting(self, plan: RewritePlan, table: str) -> RewritePlan:
        """The plan to write rows in the sort order."""
        write = plan.write
        order = plan_order(self.order, write.schema, table=table)
        return replace(plan, write=replace(write, sort_order=self.order, order=order))

    def _plan(
        self, own: RewritePlan, group: FileGroup, files: Iterable[ScanTaskGroup], count: int
    ) -> SortPlan:
        # If the files have the spec of the new ones, all rows belong to one partition.
        spec = PartitionSpec() if group.keeps_order else own.write.spec
        arranging = Arranging(spec, self.order, self.curve)
        rows = int(group.files.entries.record_count.sum())
        sample = plan_sample(own.read, arranging, rows, group.nbytes)
        with stage("sample keys"):
            sampled = self.runner.run(partial(sample_rows, sample), files)
        return plan_sort(
            own,
            arranging,
            sample,
            sampled,
            tasks=count,
            ranges_per_task=max(
                self.options.shuffle_partitions_per_file, _ranges_of_task(group.nbytes, count)
            ),
        )


def _ranges_of_task(nbytes: int, tasks: int) -> int:
    """How many ranges a task writes, small enough to be sorted in memory."""
    return min(ceil(nbytes / tasks / _RANGE_BYTES), max(_MOST_RANGES // tasks, 1))
