"""Rewrites groups of data files in a sort order or along a curve, by Spark's range shuffle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from pyspark.sql import DataFrame, SparkSession

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.operations.maintenance.rewrite.groups import RewrittenGroup, discard_files_of
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup, new_file_count
from icebergds.operations.maintenance.rewrite.task import RewritePlan
from icebergds.operations.read.planned_scan import PlannedScan
from icebergds.scan.plan.counts import PlanCounts
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.curve_sort import Curve, sampled_ranks, sorted_along
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
        curve: sort along a curve instead; `order` is unsorted then.
    """

    spark: SparkSession
    options: RewriteOptions
    order: SortOrder = SortOrder()  # noqa: RUF009
    curve: Curve | None = None

    def __call__(self, table: LoadedTable, plan: RewritePlan, group: FileGroup) -> RewrittenGroup:
        rows = scan_dataframe(self.spark, _scan(table, plan.read, group))
        own = self._sorting(plan.renamed(), rows, table.name)
        count = new_file_count(ceil(group.nbytes * self.options.compression_factor), self.options)
        parts = count * self.options.shuffle_partitions_per_file
        arranged = self._arranged(rows, table, plan, group, parts)
        if parts > count:
            arranged = arranged.coalesce(count)
        return RewrittenGroup(group, own, (), [self._written(arranged, own)])

    def _arranged(
        self, rows: DataFrame, table: LoadedTable, plan: RewritePlan, group: FileGroup, parts: int
    ) -> DataFrame:
        schema = table.metadata.schema()
        spec = table.metadata.specs_by_id[group.output_spec_id]
        if self.curve is None:
            return sorted_by_range(rows, schema, spec, self.order, parts)
        columns = replace(plan.read, columns=schema.select(self.curve.field_ids))
        scanned = scan_dataframe(self.spark, _scan(table, columns, group))
        total = sum(file.entry.data_file.record_count for file in group.files)
        ranks = sampled_ranks(scanned, schema, self.curve, total)
        return sorted_along(rows, schema, spec, self.curve, ranks, parts)

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


def _scan(table: LoadedTable, plan: ReadPlan, group: FileGroup) -> PlannedScan:
    splits = SplitOptions.of(table.metadata.properties)
    return PlannedScan(table.state, None, plan, group.files, splits, PlanCounts())
