"""Rewrites groups of data files in a sort order, by Spark's range shuffle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from pyspark.sql import DataFrame, SparkSession

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.operations.maintenance.rewrite_groups import RewrittenGroup, discard_files_of
from icebergds.operations.maintenance.rewrite_options import RewriteOptions
from icebergds.operations.maintenance.rewrite_plan import FileGroup, new_file_count
from icebergds.operations.maintenance.rewrite_task import RewritePlan
from icebergds.operations.read.planned_scan import PlannedScan
from icebergds.scan.plan.counts import PlanCounts
from icebergds.scan.plan.splits import SplitOptions
from icebergds.spark.dataframe_schema import incoming_arrow_schema
from icebergds.spark.distribution import sorted_by_range
from icebergds.spark.save_job import write_in_tasks
from icebergds.spark.scan import scan_dataframe
from icebergds.spec.manifest import DataFile
from icebergds.spec.sort import SortOrder
from icebergds.write.rows.matching import plan_matching
from icebergds.write.rows.sorting import plan_order
from icebergds.write.task import write_batches


@dataclass(frozen=True, slots=True)
class SortedRewriter:
    """Rewrites a group so that its new files are sorted, and their ranges do not overlap.

    Attributes:
        order: of the rows; new files have its id if the table has it.
    """

    spark: SparkSession
    order: SortOrder
    options: RewriteOptions

    def __call__(self, table: LoadedTable, plan: RewritePlan, group: FileGroup) -> RewrittenGroup:
        metadata = table.metadata
        rows = scan_dataframe(self.spark, _scan(table, plan, group))
        own = self._sorting(plan.renamed(), rows, table.name)
        spec = metadata.specs_by_id[group.output_spec_id]
        count = new_file_count(ceil(group.nbytes * self.options.compression_factor), self.options)
        parts = count * self.options.shuffle_partitions_per_file
        arranged = sorted_by_range(rows, metadata.schema(), spec, self.order, parts)
        if parts > count:
            arranged = arranged.coalesce(count)
        return RewrittenGroup(group, own, (), [self._written(arranged, own)])

    def _sorting(self, plan: RewritePlan, rows: DataFrame, table: str) -> RewritePlan:
        """The plan for rows that come from Spark in the order."""
        write = plan.write
        incoming = incoming_arrow_schema(rows.schema)
        return replace(
            plan,
            write=replace(
                write,
                matching=plan_matching(incoming, write.schema, table=table),
                sort_order=self.order,
                order=plan_order(self.order, write.schema, table=table),
            ),
        )

    def _written(self, rows: DataFrame, plan: RewritePlan) -> list[DataFile]:
        task = partial(write_batches, plan.write)
        results = write_in_tasks(rows, task, partial(discard_files_of, plan))
        return [file for files in results if isinstance(files, list) for file in files]


def _scan(table: LoadedTable, plan: RewritePlan, group: FileGroup) -> PlannedScan:
    splits = SplitOptions.of(table.metadata.properties)
    return PlannedScan(table.state, None, plan.read, group.files, splits, PlanCounts())
