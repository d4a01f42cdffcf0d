"""Changes of rows that Spark finds, as `Table` hands them on; Spark is imported by these alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.table.address import TableAddress
from icebergds.table.arguments import names_argument
from icebergds.table.row_change_options import WriteOperation
from icebergds.table.row_counts import RowCounts
from icebergds.table.rows import Rows, change_rows
from icebergds.table.scan import listed_names
from icebergds.table.whole_files import delete_whole_files, takes_whole_files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icebergds.spark.row_level.merge import MergeBuilder


def write_frame(
    address: TableAddress,
    state: TableState,
    df: DataFrame,
    options: Mapping[str, str],
    *,
    overwrite: bool,
) -> None:
    """Appends or overwrites; arguments and errors as of `Table.append` and `Table.overwrite`."""
    _require_frame(df)
    condition = options.get("overwrite-filter")
    if overwrite and condition is not None:
        zoned = {**_session_zone(df.sparkSession), **options}
        if not takes_whole_files(address, state, condition, zoned):
            given = {name: value for name, value in options.items() if name != "overwrite-filter"}
            overwrite_rows(address, state, df, condition, given)
            return
    frames = importlib.import_module("icebergds.spark.frames")
    frames.write_frame(df, address, state, options, overwrite=overwrite)


def overwrite_rows(
    address: TableAddress,
    state: TableState,
    df: Rows | DataFrame,
    condition: str | Column,
    options: Mapping[str, str],
) -> None:
    """As `Table.overwrite` where Spark finds the rows of the condition."""
    if isinstance(df, Rows):
        raise InvalidOptionError(
            f"overwrite_filter is a {type(condition).__name__}, for which the rows must be a "
            "DataFrame of Spark; give it as SQL text for rows of Arrow"
        )
    _require_frame(df)
    target = _target(address, state, "overwrite", options, df.sparkSession)
    _row_level("overwrite").overwrite_rows(target, df, condition)


def delete_rows(
    address: TableAddress,
    state: TableState,
    condition: str | Column,
    options: Mapping[str, str],
    spark: SparkSession | None,
) -> RowCounts:
    """As `Table.delete`."""
    if isinstance(condition, str):
        zoned = {**_session_zone(spark), **options}
        counts = delete_whole_files(address, state, condition, zoned)
        if counts is not None:
            return counts
    target = _target(address, state, "delete", options, spark)
    done: RowCounts = _row_level("delete").delete_rows(target, condition)
    return done


def update_rows(
    address: TableAddress,
    state: TableState,
    values: Mapping[str, str | Column],
    condition: str | Column | None,
    options: Mapping[str, str],
    spark: SparkSession | None,
) -> RowCounts:
    """As `Table.update`."""
    target = _target(address, state, "update", options, spark)
    done: RowCounts = _row_level("update").update_rows(target, values, condition)
    return done


def begin_merge(
    address: TableAddress,
    current: Callable[[], TableState],
    finish: Callable[[RowCounts], RowCounts],
    source: DataFrame,
    on: str | Column | Sequence[str],
    aliases: tuple[str, str],
    options: Mapping[str, str],
) -> MergeBuilder:
    """As `Table.merge`.

    Args:
        current: gives the table as it is when the merge is executed.
        finish: is called with what the merge did.
        aliases: of the source and of the table.
    """
    _require_frame(source, "merged")

    def target() -> Any:
        return _target(address, current(), "merge", options, source.sparkSession)

    builder = _row_level("merge").MergeBuilder
    built: MergeBuilder = builder(target, finish, source, on, *aliases)
    return built


def change_by_key(
    address: TableAddress,
    state: TableState,
    operation: WriteOperation,
    rows: Rows | DataFrame,
    keys: Sequence[str] | str | None,
    options: Mapping[str, str],
    *,
    order_by: str | None = None,
    row_kind_column: str | None = None,
) -> RowCounts:
    """As `Table.upsert`, `Table.delta` and `Table.delete_keys`."""
    names = names_argument("keys", keys)
    listed = names if names is None or isinstance(names, str) else listed_names(names)
    if not isinstance(rows, Rows):
        _require_frame(rows)
        target = _target(address, state, str(operation), options, rows.sparkSession)
        done: RowCounts = _row_level("upsert").change_by_key(
            target, rows, operation, listed, order_by, row_kind_column
        )
        return done
    named = {
        "write-operation": str(operation),
        "upsert-keys": listed,
        "upsert-order-by": order_by,
        "row-kind-column": row_kind_column,
    }
    given = {name: value for name, value in named.items() if value is not None}
    return change_rows(address, rows, {**options, **given})


def _row_level(name: str) -> Any:
    return importlib.import_module(f"icebergds.spark.row_level.{name}")


def _target(
    address: TableAddress,
    state: TableState,
    verb: str,
    options: Mapping[str, str],
    spark: SparkSession | None,
) -> Any:
    return _row_level("target").make_target(spark, address, state, verb, options)


def _require_frame(rows: object, done: str = "written") -> None:
    if not hasattr(rows, "sparkSession"):
        or_arrow = "" if done == "merged" else ", or an Arrow table, batch or reader"
        raise InvalidOptionError(
            f"rows of type {type(rows).__module__}.{type(rows).__name__} cannot be {done}: "
            f"expected a DataFrame of Spark{or_arrow}; spark.createDataFrame(...), "
            "table.scan(...).to_df(spark) and pyarrow.Table.from_pandas(...) make them"
        )


def _session_zone(spark: SparkSession | None) -> dict[str, str]:
    """The option `time-zone` of Spark's session, where there is one."""
    if spark is None and "pyspark" not in sys.modules:
        return {}
    zone: str | None = _row_level("target").session_zone(spark)
    return {} if zone is None else {"time-zone": zone}
