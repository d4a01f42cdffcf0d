"""Reads of a table that are not yet bound to a Spark session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from icebergds.commit.operations import TableState
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.read.scan_options import scan_options
from icebergds.operations.read.snapshot_read import (
    plan_read,
    plan_task_groups,
)
from icebergds.scan.read.changes import read_task_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TableScan:
    """A read that is not yet bound to a Spark session."""

    _state: TableState = field(repr=False)
    filter: str | None
    columns: str | None
    snapshot_id: int | None
    branch: str | None
    tag: str | None
    options: Mapping[str, str]

    def to_arrow(self) -> pa.Table:
        """The rows, read here without Spark, in Arrow's storage types (`formats.arrow.types`).

        Raises:
            InvalidFilterError: the filter cannot be parsed, bound or used.
            InvalidOptionError: no such column, or options that contradict each other.
            NoSuchSnapshotError: no such snapshot, branch or tag.
            InvalidDataError: updates are asked for, and identifiers do not tell rows apart.
        """
        options, snapshot, plan = plan_read(self._state, self._options())
        task_groups = plan_task_groups(options, self._state, snapshot, plan)
        batches = [
            batch for task_group in task_groups for batch in read_task_group(plan, task_group)
        ]
        return pa.Table.from_batches(batches, schema_to_arrow(plan.columns))

    def to_df(self, spark: SparkSession) -> DataFrame:
        """The scan as a DataFrame, from a load of its own, pinned to this state of the table.

        Timestamps without an offset, in the filter and in options, are in the session's time zone.
        Where the session has native scans (`register(spark, native_scans=True)`), the scan is
        planned here, Spark's own reader reads the files that it reads right, and every column may
        hold nulls as far as Spark knows.

        Raises:
            InvalidOptionError: an option that is an argument of `scan` as well.
        """
        from icebergds.spark.scan import scan_dataframe

        return scan_dataframe(spark, self._state, self._options())

    def _options(self) -> dict[str, str]:
        arguments = {
            "filter": self.filter,
            "columns": self.columns,
            "snapshot-id": None if self.snapshot_id is None else str(self.snapshot_id),
            "branch": self.branch,
            "tag": self.tag,
        }
        return scan_options(self._state.io, arguments, self.options)


def listed_names(names: Sequence[str]) -> str:
    """Names as the option `columns` has them; one with a comma in it is a whole name."""
    return ",".join(f"`{n}`" if "," in n and "`" not in n else n for n in names)
