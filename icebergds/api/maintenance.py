"""Maintenance entry points of `Table`; imports Spark lazily."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from icebergds.api.outcomes import nothing_committed
from icebergds.api.table_definition import sort_order_of
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.operations.maintenance.rewrite_data_files import (
    RewrittenDataFiles,
    rewrite_data_files,
)
from icebergds.operations.maintenance.rewrite_groups import GroupRewriter
from icebergds.operations.maintenance.rewrite_options import RewriteOptions
from icebergds.operations.maintenance.runner import LocalRunner, Runner
from icebergds.operations.options.arguments import mapping_argument, text_argument
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.sort import SortOrder
from icebergds.suggestions import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STRATEGIES = ("binpack", "sort")


def rewrite_files(
    table: LoadedTable,
    strategy: str,
    where: str | None,
    sort_order: str | SortOrder | None,
    write: WriteOptions,
    options: Mapping[str, str] | None,
    spark: SparkSession | None,
) -> tuple[RewrittenDataFiles, TableState]:
    """Implements `Table.rewrite_data_files`."""
    if strategy not in _STRATEGIES:
        near = did_you_mean(str(strategy), _STRATEGIES, shown=repr)
        raise InvalidOptionError(
            f"strategy = {strategy!r}: expected {' or '.join(map(repr, _STRATEGIES))}"
            + (f"; {near}" if near else "")
        )
    where = text_argument("where", where)
    chosen = RewriteOptions.of(mapping_argument("options", options), table.metadata.properties)
    runner, zone = _runner(spark)
    write = replace(write, time_zone=write.time_zone or zone)
    rewriter = None
    if strategy == "sort":
        rewriter = _sorted_rewriter(table, sort_order, chosen, spark)
    elif sort_order is not None:
        raise InvalidOptionError(f"strategy = {strategy!r} takes no sort_order; use 'sort'")
    with nullcontext() if chosen.partial_progress else nothing_committed(table.name):
        return rewrite_data_files(table, runner, write, chosen, where, rewriter)


def _sorted_rewriter(
    table: LoadedTable,
    sort_order: str | SortOrder | None,
    options: RewriteOptions,
    spark: SparkSession | None,
) -> GroupRewriter:
    metadata = table.metadata
    order = metadata.sort_order()
    if sort_order is not None:
        order = sort_order_of(sort_order, metadata.schema())
        # With its id, if the table has this order.
        known = (o for o in metadata.sort_orders if o.fields == order.fields)
        order = next(known, replace(order, order_id=0))
    if not order.fields:
        raise InvalidOptionError(
            f"strategy = 'sort': table {table.name} has no sort order; give one, such as "
            "sort_order='ts desc, id'"
        )
    from icebergds.spark.session import active_session
    from icebergds.spark.sorted_rewrite import SortedRewriter

    return SortedRewriter(spark or active_session(), order, options)


def _runner(spark: SparkSession | None) -> tuple[Runner, str | None]:
    """A runner on a Spark session, or on the active one, or else here; and the session's zone."""
    if spark is None and "pyspark" not in sys.modules:
        return LocalRunner(), None
    from icebergds.spark.runner import runner_of
    from icebergds.spark.session import session_zone

    return runner_of(spark), session_zone(spark)
