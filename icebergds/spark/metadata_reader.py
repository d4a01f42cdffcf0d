"""Reads metadata tables in Spark tasks."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
from icebergds.operations.read.options import ReadOptions
from icebergds.spark.arrow_output import shaper
from icebergds.spark.errors import without_frames
from icebergds.spark.worker import settle_worker


@dataclass(frozen=True, slots=True)
class _Partition(InputPartition):
    """A task, packed: the paths in it have much in common."""

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
