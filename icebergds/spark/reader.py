"""Readers: planning in Spark's planning process, reading in its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from icebergds.commit.operations import TableState
from icebergds.expr.nodes import and_
from icebergds.scan.read import read_partition
from icebergds.scan.tasks import ScanPartition
from icebergds.spark.pushdown import bound_spark_filter
from icebergds.spark.shape import shaper
from icebergds.spark.worker import settle_worker
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.table.read_options import ReadOptions
from icebergds.table.reading import make_read_plan, plan_shares


@dataclass(frozen=True, slots=True)
class IcebergPartition(InputPartition):
    """One Spark task's share of a scan."""

    share: ScanPartition


@dataclass(frozen=True, slots=True)
class _Planning:
    """What only planning needs; it does not travel to tasks."""

    options: ReadOptions
    state: TableState
    snapshot: Snapshot | None


class IcebergReader(DataSourceReader):
    """Reads one snapshot of one table."""

    def __init__(
        self,
        options: ReadOptions,
        state: TableState,
        snapshot: Snapshot | None,
        table_schema: Schema,
        columns: Schema,
    ) -> None:
        self._planning: _Planning | None = _Planning(options, state, snapshot)
        self._plan = make_read_plan(options, state, table_schema, columns)

    def partitions(self) -> list[InputPartition]:
        """The shares of the tasks, at least one."""
        planning = self._planning
        assert planning is not None, "partitions are planned where the reader was made"
        shares = plan_shares(planning.options, planning.state, planning.snapshot, self._plan)
        # Without a partition Spark runs one task all the same, and 4.1 hands it None.
        return [IcebergPartition(share) for share in shares or [ScanPartition(())]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark asks for."""
        assert isinstance(partition, IcebergPartition)
        settle_worker()
        yield from map(shaper(self._plan.columns), read_partition(self._plan, partition.share))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planning": None}


class PushdownReader(IcebergReader):
    """A reader that takes Spark's own filters; asked for with `option("pushdown", "true")`."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Adds what can be used to the scan's filter; Spark evaluates all of them again."""
        schema = self._plan.table_schema
        pushed = and_(*(bound_spark_filter(item, schema) for item in filters))
        self._plan = replace(self._plan, row_filter=and_(self._plan.row_filter, pushed))
        yield from filters
