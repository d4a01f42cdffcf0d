"""Row-level entry points of `Table`; imports Spark lazily."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from icebergds.api.jobs import zone_of
from icebergds.api.progress import describing_statement
from icebergds.api.scan import TableScan
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import IcebergError, InvalidFilterError, InvalidOptionError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.expr.sql import parse_filter
from icebergds.operations.conditions import (
    Setting,
    default_setting,
    named_by,
    plannable_condition,
)
from icebergds.operations.options.rows import ArrowRows, Rows, arrow_rows
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write import arrow_rows as in_process, matching_rows
from icebergds.operations.write.append_overwrite import in_commit_with_columns
from icebergds.operations.write.commit_options import refuse_ignored_audit
from icebergds.operations.write.metadata_delete import delete_by_metadata, is_metadata_delete
from icebergds.operations.write.options import WriteOptions, refuse_options_of_writes
from icebergds.operations.write.row_counts import RowCounts, counts_of
from icebergds.spec.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icebergds.spark.row_level.conditions import Value
    from icebergds.spark.row_level.matching_changes import MatchedBy
    from icebergds.spark.row_level.merge import MergeBuilder


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a statement: how many rows changed, and the table afterwards."""

    counts: RowCounts
    state: TableState


def write_rows(
    table: LoadedTable, rows: Rows | DataFrame, options: WriteOptions, *, overwrite: bool
) -> Committed | None:
    """Implements `Table.append` and `Table.overwrite`."""
    given = _in_process(rows, table.name)
    if given is not None:
        return in_process.write_rows(options, given, overwrite=overwrite, table=table)
    df = _frame(rows)
    refuse_ignored_audit(_session_setting(df.sparkSession), table, options)
    from icebergds.spark import dataframe_writes

    return dataframe_writes.append_or_overwrite(df, table, options, overwrite=overwrite)


def overwrite_rows(
    table: LoadedTable, rows: Rows | DataFrame, condition: str | Column, options: WriteOptions
) -> Committed | None:
    """Implements `Table.overwrite` for conditions that only Spark can evaluate."""
    if _in_process(rows, table.name) is not None:
        raise InvalidOptionError(
            f"overwrite_filter is a {type(condition).__name__}, which needs the rows as a Spark "
            "DataFrame; with other rows, give overwrite_filter as SQL text"
        )
    df = _frame(rows)
    refuse_ignored_audit(_session_setting(df.sparkSession), table, options)
    from icebergds.spark import dataframe_writes

    return dataframe_writes.overwrite_by_condition(df, table, condition, options)


def replace_rows(
    table: LoadedTable, df: DataFrame, replaced: str | MatchedBy, alias: str, options: WriteOptions
) -> Changed:
    """Implements INSERT INTO ... REPLACE for rows that only Spark finds.

    Args:
        alias: the name of the table in the condition.
    """
    from icebergds.spark import dataframe_writes
    from icebergds.spark.dataframe_schema import iceberg_schema, optional_columns

    refuse_ignored_audit(_session_setting(df.sparkSession), table, options)
    plain = replace(options, merge_schema=False)

    def change(given: LoadedTable) -> Changed:
        return _changed(
            given, dataframe_writes.overwrite_by_condition(df, given, replaced, plain, alias)
        )

    if not options.merge_schema:
        return change(table)
    return _with_columns(table, optional_columns(iceberg_schema(df.schema)), change)


def _with_columns(
    table: LoadedTable, columns: Schema, change: Callable[[LoadedTable], Changed]
) -> Changed:
    changed, state = in_commit_with_columns(table, columns, change)
    return replace(changed, state=state)


def delete_rows(
    table: LoadedTable,
    condition: str | Column,
    options: WriteOptions,
    spark: SparkSession | None,
    alias: str | None = None,
) -> Changed:
    """Implements `Table.delete`."""
    refuse_options_of_writes(options, "delete")
    refuse_ignored_audit(_session_setting(spark), table, options)
    options = options.in_zone(zone_of(spark))
    row_filter = _plannable(table, condition, options, spark, alias)
    kept = table.keeping_reads()
    if row_filter is not None and is_metadata_delete(kept, row_filter, options):
        committed, counts = delete_by_metadata(kept, row_filter, options)
        snapshot_id = None if committed is None else committed.snapshot.snapshot_id
        return Changed(replace(counts, snapshot_id=snapshot_id), _state_after(table, committed))
    if _session(spark) is None:
        if row_filter is None:
            raise _only_by_spark(table, condition, options)
        return _changed(table, matching_rows.delete_matching(kept, row_filter, options))
    from icebergds.spark.row_level.matching_changes import delete_matching
    from icebergds.spark.row_level.target import make_target

    target = make_target(spark, kept, "delete", options, alias)
    return _changed(table, delete_matching(target, condition, row_filter))


def update_rows(
    table: LoadedTable,
    values: Mapping[str, Value],
    condition: str | Column | None,
    options: WriteOptions,
    spark: SparkSession | None,
    alias: str | None = None,
) -> Changed:
    """Implements `Table.update`."""
    from icebergds.spark.row_level.matching_changes import update_matching
    from icebergds.spark.row_level.target import make_target

    refuse_options_of_writes(options, "update")
    refuse_ignored_audit(_session_setting(spark), table, options)
    target = make_target(spark, table, "update", options, alias)
    return _changed(table, update_matching(target, values, condition))


def begin_merge(
    current: Callable[[], LoadedTable],
    finish: Callable[[Changed], RowCounts],
    source: DataFrame,
    on: str | Column | Sequence[str],
    aliases: tuple[str, str],
    options: WriteOptions,
) -> MergeBuilder:
    """Implements `Table.merge`.

    Args:
        current: returns the table's current state, when the merge is executed.
        finish: called with the result of the merge.
        aliases: of the source and of the table.
    """
    source = _frame(source, "merged")
    refuse_options_of_writes(options, "merge")
    from icebergds.spark.row_level.merge import MergeBuilder
    from icebergds.spark.row_level.target import Target, make_target

    def changed(table: LoadedTable, run: Callable[[Target], Committed | None]) -> Changed:
        refuse_ignored_audit(_session_setting(source.sparkSession), table, options)
        target = make_target(source.sparkSession, table, "merge", options)
        return _changed(table, run(target))

    def execute(
        run: Callable[[Target], Committed | None], columns: Schema | None = None
    ) -> RowCounts:
        with nothing_committed(options.address.path):
            table = current()
            with describing_statement("merge", table.name):
                if columns is None:
                    return finish(changed(table, run))
                return finish(_with_columns(table, columns, lambda wider: changed(wider, run)))

    return MergeBuilder(execute, source, on, *aliases)


def change_by_key(table: LoadedTable, rows: Rows | DataFrame, options: WriteOptions) -> Changed:
    """Implements `Table.upsert`, `Table.delta` and `Table.delete_keys`.

    Args:
        options: say which change (`row_change`).
    """
    given = _in_process(rows, table.name)
    if given is not None:
        return _changed(table, in_process.change_rows(table, options, given))
    from icebergds.spark.row_level import upsert

    df = _frame(rows)
    refuse_ignored_audit(_session_setting(df.sparkSession), table, options)
    return _changed(table, upsert.change_by_key(table, df, options))


def _changed(table: LoadedTable, committed: Committed | None) -> Changed:
    return Changed(counts_of(committed), _state_after(table, committed))


def _state_after(table: LoadedTable, committed: Committed | None) -> TableState:
    return table.state if committed is None else committed.state


def _in_process(rows: Any, table: str) -> ArrowRows | None:
    """Rows to write in this process; None for a Spark DataFrame, and if they are not rows."""
    # A scan's Arrow stream would turn read errors into Arrow errors.
    is_scan = isinstance(rows, TableScan)
    return rows.to_arrow_batch_reader() if is_scan else arrow_rows(rows, f"table {table}")


def _frame(rows: Any, done: str = "written") -> DataFrame:
    """Returns the rows if they are a Spark DataFrame, or else raises."""
    if hasattr(rows, "sparkSession"):
        return rows  # type: ignore[no-any-return]
    expected = "a Spark DataFrame"
    if done == "written":
        expected += ", or rows of pyarrow, pandas, polars or another library with Arrow streams"
    how = "spark.createDataFrame(...) or table.scan(...).to_df(spark)"
    if type(rows).__module__.startswith("pyspark.pandas."):
        how = "its to_spark()"
    elif hasattr(rows, "collect") and done == "written":
        how = "its collect()"
    raise InvalidOptionError(
        f"rows of type {type(rows).__module__}.{type(rows).__name__} cannot be {done}: expected "
        f"{expected}; convert the rows, such as with {how}"
    )


def _plannable(
    table: LoadedTable,
    condition: str | Column,
    options: WriteOptions,
    spark: SparkSession | None,
    alias: str | None,
) -> Expr | None:
    """The condition for planning, without the table's alias; None if only Spark evaluates it."""
    schema = table.metadata.schema()
    if not isinstance(condition, str):
        from icebergds.spark.row_level.column_conditions import column_filter
        from icebergds.spark.session import active_session

        return column_filter(
            spark or active_session("table.delete"), condition, schema, alias
        ).exact
    setting, zone = _session_setting(spark), options.time_zone
    return plannable_condition(condition, schema, zone, setting, named_by(alias))


def _only_by_spark(
    table: LoadedTable, condition: str | Column, options: WriteOptions
) -> IcebergError:
    """The error for a condition that cannot be evaluated without Spark."""
    hint = "no SparkSession is active; start one, or pass it as spark="
    try:
        parsed = parse_filter(str(condition), time_zone=options.time_zone)
        bind(parsed, table.metadata.schema(), case_sensitive=False)
    except InvalidFilterError as error:
        return InvalidFilterError(f"{error}. Spark evaluates more conditions, but {hint}")
    return InvalidFilterError(
        f"table {table.name}: only Spark can evaluate {condition!r} as Spark does, and {hint}"
    )


def _session_setting(spark: SparkSession | None) -> Setting:
    """The settings of the Spark session, or Spark's defaults without a session."""
    session = _session(spark)
    if session is None:
        return default_setting
    from icebergds.spark.session import session_setting

    return session_setting(session)


def _session(spark: SparkSession | None) -> SparkSession | None:
    """The session, or the active one; None if there is none."""
    if spark is None and "pyspark" not in sys.modules:
        return None
    from icebergds.spark.session import session_or_active

    return session_or_active(spark)
