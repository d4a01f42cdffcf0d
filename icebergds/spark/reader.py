"""Readers: planning in Spark's planning process, or before it; reading in its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from icebergds.scan.packing import pack_task_group, unpack_task_group
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spark.arrow_output import shaper
from icebergds.spark.worker import settle_worker


@dataclass(frozen=True, slots=True)
class IcebergPartition(InputPartition):
    """What one Spark task reads: a packed task group (`scan.packing`)."""

    packed: bytes


class IcebergReader(DataSourceReader):
    """Reads one snapshot of one table, or what changed between two.

    What plans is handed in and does not travel to tasks, which need not import it.

    Args:
        plan: what all tasks share.
        task_groups: gives the packed task groups of a plan (`scan.packing`).
    """

    def __init__(self, plan: ReadPlan, task_groups: Callable[[ReadPlan], list[bytes]]) -> None:
        self._plan = plan
        self._task_groups: Callable[[ReadPlan], list[bytes]] | None = task_groups

    def partitions(self) -> list[InputPartition]:
        """The planned task groups, at least one."""
        assert self._task_groups is not None, "partitions are planned where the reader was made"
        # Without a partition Spark runs one task all the same, and 4.1 hands it None.
        packed = self._task_groups(self._plan) or [pack_task_group(ScanTaskGroup(()))]
        return [IcebergPartition(task_group) for task_group in packed]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark asks for."""
        return read_partition(self._plan, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_task_groups": None}


def read_partition(plan: ReadPlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the exact Arrow schema that Spark asks for."""
    assert isinstance(partition, IcebergPartition)
    settle_worker()
    yield from map(shaper(plan.columns), read_task_group(plan, unpack_task_group(partition.packed)))
