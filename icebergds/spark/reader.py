"""Reads planned task groups and metadata tables in Spark tasks."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
from icebergds.operations.read.options import ReadOptions
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
        yield from map(shaper(plan.columns, plan.shown), read_task_group(plan, task_group))


@dataclass(frozen=True, slots=True)
class _Partition(InputPartition):
    """A task, compressed, because its paths have much in common."""

    packed: bytes


class MetadataTableReader(DataSourceReader):
    """Reads a metadata table; see `operations.metadata_tables`."""

    def __init__(self, plan: MetadataTablePlan, options: ReadOptions) -> None:
        self._plan = plan
        self._options: ReadOptions | None = options

    @without_frames()
    def partitions(self) -> list[InputPartition]:
        """The tasks, at least one."""
        from icebergds.operations.metadata_tables.plan import metadata_tasks
        from icebergds.operations.metadata_tables.tasks import ReadyRows

        assert self._options is not None, "partitions are planned where the reader was created"
        tasks = metadata_tasks(self._plan, self._options) or [ReadyRows(())]
        return [_Partition(zlib.compress(pickle.dumps(task), level=1)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark requires."""
        from icebergds.operations.metadata_tables.read import read_metadata_task

        assert isinstance(partition, _Partition)
        settle_worker()
        with without_frames():
            task = pickle.loads(zlib.decompress(partition.packed))
            yield from map(shaper(self._plan.columns), read_metadata_task(self._plan, task))

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need: Spark pickles the reader once its tasks are planned."""
        from icebergds.operations.metadata_tables.plan import task_plan

        if self._options is None:
            return self.__dict__
        return {**self.__dict__, "_plan": task_plan(self._plan), "_options": None}
