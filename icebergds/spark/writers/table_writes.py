"""Creates, replaces, appends to and overwrites tables with DataFrames, each in one commit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pyspark.sql import Column, DataFrame

from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.options import IsolationLevel
from icebergds.errors import (
    AlreadyExistsError,
    InvalidDataError,
    InvalidOptionError,
    NoSuchTableError,
)
from icebergds.expr.nodes import TRUE
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.commit_options import refuse_ignored_audit
from icebergds.operations.write.create import plan_new_table
from icebergds.operations.write.isolation import (
    check_marked_rows,
    check_rows_since_read,
    overwrite_isolation,
)
from icebergds.operations.write.options import Creation, WriteOptions
from icebergds.operations.write.replace import plan_replacement
from icebergds.spark.dataframe_schema import iceberg_schema, optional_columns
from icebergds.spark.dataframe_writes import append_or_overwrite, overwrite_by_condition
from icebergds.spark.job_descriptions import describing
from icebergds.spark.read_mark import read_marks
from icebergds.spark.row_level.upsert import change_by_key
from icebergds.spark.session import session_setting
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH


def table_to_write(options: WriteOptions) -> LoadedTable | None:
    """The table that options name; None if there is none.

    Errors are those of `load_for_write`.
    """
    try:
        return load_for_write(options.address)
    except NoSuchTableError:
        return None


def write_into(
    df: DataFrame,
    table: LoadedTable,
    options: WriteOptions,
    *,
    overwrite: bool = False,
    condition: Column | None = None,
) -> None:
    """Appends to a table or overwrites its rows, or changes them by key if options say so.

    Args:
        condition: selects the rows to replace, instead of the options' filter.
    """
    refuse_ignored_audit(session_setting(df.sparkSession), table, options)
    what = f"{'overwrite' if overwrite else 'append'} {table.name}"
    with nothing_committed(table.name, merges_schema=options.merge_schema), describing(what):
        if options.row_change is not None:
            if overwrite:
                raise InvalidOptionError(
                    f"option 'write-operation' = {str(options.row_change.operation)!r} changes "
                    "rows by key; use it with appends, not with overwrites"
                )
            change_by_key(table, df, options)
        elif condition is not None:
            overwrite_by_condition(df, table, condition, options)
        else:
            append_or_overwrite(df, table, options, overwrite=overwrite)


def create_from(df: DataFrame, options: WriteOptions) -> None:
    """Creates a table with the rows of a DataFrame.

    Raises:
        AlreadyExistsError: another writer created it meanwhile.
        InvalidDataError: the session takes two column names for the same.
    """
    _refuse_changes(options, "creates the table")
    address = options.address
    new_table = plan_new_table(address, options.creation or Creation(), _columns(df, address.path))
    with nothing_committed(address.path):
        write_into(df, LoadedTable(address, new_table, new_table.planned()), options)


def create_or_replace(df: DataFrame, options: WriteOptions) -> None:
    """Creates a table with the rows of a DataFrame, or replaces its definition and rows."""
    table = table_to_write(options)
    if table is None:
        try:
            create_from(df, options)
            return
        except AlreadyExistsError:
            # Another writer created it meanwhile, or something else has the name.
            table = table_to_write(options)
            if table is None:
                raise
    replace_by(df, table, options)


def replace_by(df: DataFrame, table: LoadedTable, options: WriteOptions) -> None:
    """Replaces a table's columns, partitioning, order and rows with those of a DataFrame.

    Snapshots, tags and other branches stay, as do properties that are not set again.

    Raises:
        InvalidDataError: the session takes two column names for the same.
        ValidationError: the rows come from an older load of the table.
    """
    _refuse_changes(options, "replaces the table")
    if options.branch != MAIN_BRANCH or options.wap_id is not None:
        raise InvalidOptionError(
            "options 'branch', 'wap.branch' and 'wap.id': a write that replaces the table commits "
            "to its main branch; leave them out, or overwrite the rows of the branch"
        )
    if options.idempotent_write is not None:
        raise InvalidOptionError(
            f"options 'txn-app-id' and 'txn-version': this write replaces table {table.name}, and "
            "with it the history by which a repeat is known; leave them out, or overwrite the rows "
            "of the table as it is"
        )
    marked = replace(options, read_marks=read_marks(df.schema))
    isolation = overwrite_isolation(marked, table)
    check_marked_rows(marked, table, isolation)
    if isolation.level is not IsolationLevel.NONE:
        check_rows_since_read(marked, table, isolation.level, TRUE)
    replaced = plan_replacement(
        table,
        options.creation or Creation(),
        _columns(df, table.name),
        only_head=isolation.level is not IsolationLevel.NONE,
    )
    write_into(df, replaced, options)


def _columns(df: DataFrame, table: str) -> Schema:
    """The columns of a new table; refuses names that Spark takes for the same."""
    is_case_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    times = Counter(name if is_case_sensitive else name.lower() for name in df.columns)
    if alike := [n for n in df.columns if times[n if is_case_sensitive else n.lower()] > 1]:
        raise InvalidDataError(
            f"table {table}: the session cannot tell columns {', '.join(alike)} apart by their "
            "names; rename all but one"
        )
    return optional_columns(iceberg_schema(df.schema))


def _refuse_changes(options: WriteOptions, does: str) -> None:
    given = {
        "write-operation": options.row_change is not None,
        "overwrite-filter": options.overwrite_filter is not None,
        "overwrite-mode": options.overwrite_mode == "dynamic",
    }
    for name, is_given in given.items():
        if is_given:
            raise InvalidOptionError(
                f"option {name!r}: this write {does}, so there are no rows to change; leave it "
                "out, or write to the table as it is"
            )
