"""Implements `Table.rewrite_data_files`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from icebergds.api.maintenance import filter_argument, task_runner, zone_of
from icebergds.api.rewrite_strategy import check_condition, rewriter_of
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.expr.nodes import Expr
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.rewrite_data_files import (
    RewrittenDataFiles,
    rewrite_data_files,
)
from icebergds.operations.options.arguments import mapping_argument
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.sort import SortOrder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite_files(
    table: LoadedTable,
    strategy: str,
    where: str | Expr | None,
    sort_order: str | SortOrder | None,
    write: WriteOptions,
    options: Mapping[str, str] | None,
    spark: SparkSession | None,
) -> tuple[RewrittenDataFiles, TableState]:
    """Implements `Table.rewrite_data_files`."""
    where = filter_argument("where", where)
    chosen = RewriteOptions.of(mapping_argument("options", options), table.metadata.properties)
    write = replace(write, time_zone=write.time_zone or zone_of(spark))
    if isinstance(where, str):
        check_condition(table, where, write.time_zone)
    rewriter = rewriter_of(table, strategy, sort_order, chosen, spark)
    with nullcontext() if chosen.partial_progress else nothing_committed(table.name):
        return rewrite_data_files(table, task_runner(spark), write, chosen, where, rewriter)
