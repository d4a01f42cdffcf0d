"""Readers: planning in Spark's planning process, reading in its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from icebergds.scan.read_changes import read_share
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanPartition, Share
from icebergds.spark.shape import shaper
from icebergds.spark.worker import settle_worker


@dataclass(frozen=True, slots=True)
class IcebergPartition(InputPartition):
    """One Spark task's share of a scan."""

    share: Share


class IcebergReader(DataSourceReader):
    """Reads one snapshot of one table, or what changed between two.

    What plans is handed in and does not travel to tasks, which need not import it.

    Args:
        plan: what all tasks share.
        plan_shares: finds the shares of the tasks.
    """

    def __init__(self, plan: ReadPlan, plan_shares: Callable[[ReadPlan], list[Share]]) -> None:
        self._plan = plan
        self._plan_shares: Callable[[ReadPlan], list[Share]] | None = plan_shares

    def partitions(self) -> list[InputPartition]:
        """The shares of the tasks, at least one."""
        assert self._plan_shares is not None, "partitions are planned where the reader was made"
        shares = self._plan_shares(self._plan)
        # Without a partition Spark runs one task all the same, and 4.1 hands it None.
        return [IcebergPartition(share) for share in shares or [ScanPartition(())]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark asks for."""
        assert isinstance(partition, IcebergPartition)
        settle_worker()
        yield from map(shaper(self._plan.columns), read_share(self._plan, partition.share))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plan_shares": None}
