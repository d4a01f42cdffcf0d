"""Reads the rows of a table that a query may need, with Spark's own names and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from icebergds.commit.operations import TableState
from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.expr.sql_text import sql_text
from icebergds.operations.read.aggregates import Answered, Asked, answer
from icebergds.operations.read.first_rows import FirstRows, with_first_rows
from icebergds.operations.read.options import (
    METADATA_AGGREGATES,
    ReadOptions,
    parse_read_options,
    refuse_address_options,
    refuse_stream_options,
)
from icebergds.operations.read.planned_scan import PlannedScan, plan_scan
from icebergds.operations.read.scan_summary import ScanSummary, summarize
from icebergds.operations.read.snapshot_read import resolve_read
from icebergds.scan.projection import project_columns
from icebergds.scan.read_plan import PLAIN_TYPES
from icebergds.spark.file_addresses import storage_obstacle
from icebergds.spark.native import has_native_scans
from icebergds.spark.scan import local_scan, mixed_obstacle, read_dataframe, scan_dataframe
from icebergds.spark.session import in_zone_of
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import METADATA_AGGREGATES as TABLE_PROPERTY


def query_options(spark: SparkSession, given: Mapping[str, str]) -> ReadOptions:
    """Parses the read options that a query gives.

    Raises:
        InvalidOptionError: one is unknown or malformed.
    """
    refuse_address_options(given)
    refuse_stream_options(given)
    return parse_read_options(in_zone_of(spark, given))


def schema_of_read(state: TableState, options: ReadOptions) -> Schema:
    """The columns of a read, as of its snapshot, without metadata columns.

    Raises:
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
    """
    return resolve_read(options, state.metadata, state.name)[1]


def chosen_rows(
    spark: SparkSession,
    state: TableState,
    options: ReadOptions,
    condition: Expr,
    columns: Sequence[tuple[str, ...]] | None,
    *,
    first: FirstRows | None = None,
    as_one: bool = False,
    may_be_local: bool = False,
) -> DataFrame:
    """At least the rows of a table that meet a condition, planned now.

    Args:
        condition: bound to the schema that is read.
        columns: names of columns and fields, split into parts, including metadata columns; None
            for all of the table's columns.
        first: the only rows that are needed; None if others are, too.
        as_one: do not return a union, as for `PlannedScan`.
        may_be_local: whether Spark may have few rows in its plan.

    Raises:
        InvalidFilterError, InvalidOptionError: the options do not fit the table.
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
        MissingFileError, CorruptFileError: metadata is missing or damaged.
    """
    if options.changes is not None:
        return read_dataframe(spark, state, options)
    native = has_native_scans(spark, state)
    scan = _planned(
        state, options, condition, columns, for_native=native, first=first, as_one=as_one
    )
    local = local_scan(spark, scan, first) if may_be_local and native else None
    return scan_dataframe(spark, scan) if local is None else local


@dataclass(frozen=True, slots=True)
class AnsweredRows:
    """The rows of a table for aggregates, as far as they are needed.

    Attributes:
        answered: by metadata; None if nothing is.
        rows: all others; None if there are none.
    """

    answered: Answered | None
    rows: DataFrame | None


def answered_rows(
    spark: SparkSession,
    state: TableState,
    options: ReadOptions,
    condition: Expr,
    columns: Sequence[tuple[str, ...]] | None,
    asked: Asked,
    *,
    as_one: bool = False,
) -> AnsweredRows:
    """Answers aggregates from metadata, and plans the rows that are left for them.

    Args:
        asked: its condition is that of the rows which count; the rows that are left are not
            filtered by it.
        as_one: return no rows beside an answer of groups.

    Other arguments and errors are those of `chosen_rows`.
    """
    scan, answered = _answered(spark, state, options, condition, columns, asked, as_one=as_one)
    if answered is None:
        return AnsweredRows(None, scan_dataframe(spark, scan))
    if not answered.unread:
        return AnsweredRows(answered, None)
    return AnsweredRows(answered, scan_dataframe(spark, replace(scan, files=answered.unread)))


def may_answer(spark: SparkSession, state: TableState, options: ReadOptions) -> bool:
    """Whether aggregates of a read may be answered from metadata."""
    if options.changes is not None or options.shown != PLAIN_TYPES:
        return False
    # A name that is not set is an error without a default, which takes a hundred calls to the JVM.
    if any(spark.conf.get(name, "true") == "false" for name in _SETTINGS):
        return False
    chosen = options.metadata_aggregates
    return TABLE_PROPERTY.of(state.metadata.properties) if chosen is None else chosen


_SETTINGS = (
    f"spark.icebergpy.{METADATA_AGGREGATES}",
    # Java Iceberg's.
    "spark.sql.iceberg.aggregate-push-down.enabled",
)


def _answered(
    spark: SparkSession,
    state: TableState,
    options: ReadOptions,
    condition: Expr,
    columns: Sequence[tuple[str, ...]] | None,
    asked: Asked,
    *,
    as_one: bool,
) -> tuple[PlannedScan, Answered | None]:
    scan = _planned(
        state,
        options,
        and_(condition, asked.condition),
        columns,
        for_native=has_native_scans(spark, state),
        as_one=as_one,
        stats_of=frozenset(column.field_id for column in asked.columns),
    )
    found = answer(scan, asked)
    is_mixed = bool(asked.keys) and bool(found.unread)
    if (scan.files and not found.files) or (as_one and is_mixed):
        return scan, None
    return scan, found


def chosen_rows_summary(
    spark: SparkSession,
    state: TableState,
    options: ReadOptions,
    condition: Expr,
    columns: Sequence[tuple[str, ...]] | None,
    asked: Asked | None = None,
    *,
    first: FirstRows | None = None,
    as_one: bool = False,
) -> ScanSummary:
    """What `chosen_rows` reads and skips; `options` must not ask for changes."""
    answered = None
    if asked is None:
        scan = _planned(
            state, options, condition, columns, for_native=True, first=first, as_one=as_one
        )
    else:
        scan, answered = _answered(spark, state, options, condition, columns, asked, as_one=as_one)
    shown = None if condition == TRUE else sql_text(condition, schema_of_read(state, options))
    native = has_native_scans(spark, state)
    obstacle = storage_obstacle(spark, state) or mixed_obstacle(spark, scan)
    return summarize(scan, options, shown, native, obstacle, answered)


def _planned(
    state: TableState,
    options: ReadOptions,
    condition: Expr,
    columns: Sequence[tuple[str, ...]] | None,
    *,
    for_native: bool,
    as_one: bool,
    stats_of: frozenset[int] = frozenset(),
    first: FirstRows | None = None,
) -> PlannedScan:
    schema = schema_of_read(state, options)
    read = schema if columns is None else project_columns(state.metadata, schema, columns)
    if first is not None:
        condition = and_(condition, first.condition)
        stats_of |= {column.field_id for column in first.columns}
    scan = plan_scan(
        state,
        options,
        for_native=for_native,
        rechecked=condition,
        columns=read,
        as_one=as_one,
        stats_of=stats_of,
    )
    return scan if first is None else with_first_rows(scan, first)
