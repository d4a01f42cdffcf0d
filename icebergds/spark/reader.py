"""Reads planned task groups in Spark tasks; planning runs in Spark's planning process or before."""

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
from icebergds.spark.errors import without_frames
from icebergds.spark.worker import settle_worker


@dataclass(frozen=True, slots=True)
class IcebergPartition(InputPartition):
    """What one Spark task reads: a packed task group (`scan.packing`)."""

    packed: bytes


class IcebergReader(DataSourceReader):
    """Reads one snapshot of a table, or the changes between two.

    The planning function is not pickled with the reader, so tasks need not import its modules.

    Args:
        plan: what all tasks share.
        task_groups: returns the packed task groups of a plan (`scan.packing`).
    """

    def __init__(self, plan: ReadPlan, task_groups: Callable[[ReadPlan], list[bytes]]) -> None:
        self._plan = plan
        self._task_groups: Callable[[ReadPlan], list[bytes]] | None = task_groups

    @without_frames()
    def partitions(self) -> list[InputPartition]:
        """The planned task groups, at least one."""
        assert self._task_groups is not None, "partitions are planned where the reader was created"
        # Without partitions Spark still runs one task, and 4.1 passes None to it.
        packed = self._task_groups(self._plan) or [pack_task_group(ScanTaskGroup(()))]
        return [IcebergPartition(task_group) for task_group in packed]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark requires."""
        return read_partition(self._plan, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_task_groups": None}


def read_partition(plan: ReadPlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the exact Arrow schema that Spark requires."""
    assert isinstance(partition, IcebergPartition)
    settle_worker()
    with without_frames():
        task_group = unpack_task_group(partition.packed)
        yield from map(shaper(plan.columns), read_task_group(plan, task_group))
