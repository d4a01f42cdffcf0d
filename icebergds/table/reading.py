"""From the options of a read to its plan, for Spark and for reads without it alike."""

from __future__ import annotations

from icebergds.commit.operations import TableState
from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.scan.plan import plan_scan
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanPartition
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.table.read_options import ReadOptions, split_options


def make_read_plan(
    options: ReadOptions, state: TableState, schema: Schema, columns: Schema
) -> ReadPlan:
    """What all tasks of a read share.

    Args:
        schema: the schema that is read.
        columns: the output.

    Raises:
        InvalidFilterError: the filter cannot be parsed, bound or used.
    """
    return ReadPlan(
        io=state.io,
        columns=columns,
        table_schema=schema,
        specs=state.metadata.specs_by_id,
        row_filter=bound_filter(options, schema),
        name_mapping=state.metadata.name_mapping(),
        batch_size=options.batch_size,
        delete_cache_bytes=options.delete_cache_bytes,
    )


def plan_shares(
    options: ReadOptions, state: TableState, snapshot: Snapshot | None, plan: ReadPlan
) -> list[ScanPartition]:
    """The shares of the read's tasks; errors as for `plan_scan`."""
    return plan_scan(
        state.io,
        state.metadata,
        snapshot,
        plan.table_schema,
        plan.row_filter,
        split_options(options, state.metadata.properties),
    )


def bound_filter(options: ReadOptions, schema: Schema) -> Expr:
    """The filter of a read, bound to the schema that is read; TRUE where there is none.

    Raises:
        InvalidFilterError: it cannot be parsed, bound or used.
    """
    if options.filter is None:
        return TRUE
    parsed = parse_filter(options.filter, time_zone=options.time_zone)
    return bind(parsed, schema, case_sensitive=False)
