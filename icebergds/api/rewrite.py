"""Implements `Table.rewrite_data_files`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from icebergds.api.jobs import filter_argument, task_runner, zone_of
from icebergds.api.table_definition import sort_order_of
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.expr.sql import parse_filter
from icebergds.operations.maintenance.rewrite.groups import GroupRewriter
from icebergds.operations.maintenance.rewrite.options import (
    BINPACK,
    CURVES,
    SORT,
    RewriteOptions,
    check_strategy,
)
from icebergds.operations.maintenance.rewrite.rewrite_data_files import (
    RewrittenDataFiles,
    rewrite_data_files,
)
from icebergds.operations.maintenance.rewrite.sorted_rewrite import SortedRewriter
from icebergds.operations.options.arguments import mapping_argument
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortDirection, SortOrder
from icebergds.spec.transforms import IdentityTransform
from icebergds.write.rows.arrangement import Curve
from icebergds.write.rows.curve_keys import can_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As Java Iceberg has it: strategy 'sort' with the order zorder(a, b).
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


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


def rewriter_of(
    table: LoadedTable,
    strategy: str,
    sort_order: Any,
    options: RewriteOptions,
    spark: SparkSession | None,
) -> GroupRewriter | None:
    """Returns the rewriter of each group of files; None to keep rows in their order.

    Args:
        strategy: `binpack`, `sort`, `zorder` or `hilbert`.
        sort_order: for `sort`, the table's order by default; or the columns of a curve.

    Raises:
        InvalidOptionError: the two do not fit each other or the table, or no Spark session is
            active.
    """
    check_strategy(strategy)
    if strategy == BINPACK:
        if sort_order is not None:
            raise InvalidOptionError(
                "strategy = 'binpack' keeps the order of rows; to sort them, use strategy='sort'"
            )
        return None
    schema = table.metadata.schema()
    curve = next((name for name in CURVES if name == strategy), None)
    called = _CALL.fullmatch(sort_order) if isinstance(sort_order, str) else None
    if called is not None and called[1].lower() in CURVES:
        curve = next(name for name in CURVES if name == called[1].lower())
        if strategy not in (SORT, curve):
            raise InvalidOptionError(f"sort_order = {sort_order!r}: the strategy is {strategy!r}")
        sort_order = called[2]
    if curve is None:
        order = _order(table, sort_order)
    else:
        field_ids = _columns(table, curve, sort_order, schema)
    from icebergds.spark.block_shuffle import BlockShuffle
    from icebergds.spark.runner import SparkRunner
    from icebergds.spark.session import active_session

    session = spark or active_session(f"strategy = {strategy!r}")
    by = SparkRunner(session), BlockShuffle(session)
    if curve is None:
        return SortedRewriter(*by, options, order)
    return SortedRewriter(*by, options, curve=Curve(curve, field_ids))


def check_condition(table: LoadedTable, where: str, time_zone: str | None) -> None:
    """Checks the condition on a table that may have no files yet.

    In Java Iceberg's procedure, the sort order follows the strategy, so users may pass it as the
    condition.

    Raises:
        InvalidFilterError: the condition does not fit the table; the error says if it is a sort
            order.
    """
    schema = table.metadata.schema()
    try:
        bind(parse_filter(where, time_zone=time_zone), schema, case_sensitive=False)
    except InvalidFilterError as error:
        if not _is_sort_order(where, schema):
            raise
        raise InvalidFilterError(
            f"where = {where!r} is a sort order and not a condition: give it as "
            f"sort_order={where!r}"
        ) from error


def _is_sort_order(text: str, schema: Schema) -> bool:
    called = _CALL.fullmatch(text)
    if called is not None and called[1].lower() in CURVES:
        text = called[2]
    try:
        return sort_order_of(text, schema).is_sorted
    except InvalidOptionError:
        return False


def _order(table: LoadedTable, given: Any) -> SortOrder:
    metadata = table.metadata
    order = metadata.sort_order()
    if given is not None:
        order = sort_order_of(given, metadata.schema())
        # If the table has this order, use its id.
        known = (own for own in metadata.sort_orders if own.fields == order.fields)
        order = next(known, replace(order, order_id=0))
    if not order.is_sorted:
        raise InvalidOptionError(
            f"strategy = 'sort': table {table.name} has no sort order; give one, such as "
            "sort_order='ts desc, id'"
        )
    return order


def _columns(table: LoadedTable, curve: str, given: Any, schema: Schema) -> tuple[int, ...]:
    if given is None:
        raise InvalidOptionError(
            f"strategy = {curve!r} needs columns: give sort_order, such as sort_order='a, b'"
        )
    field_ids = []
    for field in sort_order_of(given, schema).fields:
        name = ".".join(schema.paths_by_id[field.source_id])
        source = schema.find_field(field.source_id)
        is_plain = isinstance(field.transform, IdentityTransform)
        if not is_plain or field.direction is not SortDirection.ASC:
            raise InvalidOptionError(
                f"sort_order = {given!r}: {curve} takes names of columns, without transforms and "
                "directions"
            )
        if source is None or not can_order(source.field_type):
            raise InvalidOptionError(
                f"sort_order = {given!r}: column {name!r} of table {table.name} has a type without "
                f"an order, so it cannot be part of a {curve} key"
            )
        field_ids.append(field.source_id)
    if len(set(field_ids)) < len(field_ids):
        raise InvalidOptionError(f"sort_order = {given!r}: a column is named twice")
    return tuple(field_ids)
