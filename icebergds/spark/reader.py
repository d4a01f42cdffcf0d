"""Readers: planning in Spark's planning process, reading in its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup, TaskGroup
from icebergds.spark.arrow_output import shaper
from icebergds.spark.worker import settle_worker


@dataclass(frozen=True, slots=True)
class IcebergPartition(InputPartition):
    """What one Spark task reads."""

    task_group: TaskGroup


class IcebergReader(DataSourceReader):
    """Reads one snapshot of one table, or what changed between two.

    What plans is handed in and does not travel to tasks, which need not import it.

    Args:
        plan: what all tasks share.
        plan_task_groups: plans the task groups.
    """

    def __init__(
        self, plan: ReadPlan, plan_task_groups: Callable[[ReadPlan], list[TaskGroup]]
    ) -> None:
        self._plan = plan
        self._plan_task_groups: Callable[[ReadPlan], list[TaskGroup]] | None = plan_task_groups

    def partitions(self) -> list[InputPartition]:
        """The planned task groups, at least one."""
        assert self._plan_task_groups is not None, (
            "partitions are planned where the reader was made"
        )
        task_groups = self._plan_task_groups(self._plan)
        # Without a partition Spark runs one task all the same, and 4.1 hands it None.
        return [IcebergPartition(task_group) for task_group in task_groups or [ScanTaskGroup(())]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark asks for."""
        assert isinstance(partition, IcebergPartition)
        settle_worker()
        yield from map(
            shaper(self._plan.columns), read_task_group(self._plan, partition.task_group)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plan_task_groups": None}
