"""Row-level entry points of `Table`; imports Spark lazily."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from icebergds.api.scan import listed_names
from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.operations.options.arguments import names_argument
from icebergds.operations.write.arrow_rows import Rows, change_rows
from icebergds.operations.write.metadata_delete import delete_by_metadata, is_metadata_delete
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.row_counts import RowCounts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icebergds.spark.row_level.merge import MergeBuilder
    from icebergds.spark.row_level.target import Target


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
        if not is_metadata_delete(address, state, condition, zoned):
            given = {name: value for name, value in options.items() if name != "overwrite-filter"}
            overwrite_rows(address, state, df, condition, given)
            return
    from icebergds.spark import dataframe_writes

    dataframe_writes.write_frame(df, address, state, options, overwrite=overwrite)


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
    from icebergds.spark.row_level import overwrite

    target = _target(address, state, "overwrite", options, df.sparkSession)
    overwrite.overwrite_rows(target, df, condition)


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
        counts = delete_by_metadata(address, state, condition, zoned)
        if counts is not None:
            return counts
    from icebergds.spark.row_level import delete

    return delete.delete_rows(_target(address, state, "delete", options, spark), condition)


def update_rows(
    address: TableAddress,
    state: TableState,
    values: Mapping[str, str | Column],
    condition: str | Column | None,
    options: Mapping[str, str],
    spark: SparkSession | None,
) -> RowCounts:
    """As `Table.update`."""
    from icebergds.spark.row_level import update

    target = _target(address, state, "update", options, spark)
    return update.update_rows(target, values, condition)


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

    from icebergds.spark.row_level.merge import MergeBuilder

    def target() -> Target:
        return _target(address, current(), "merge", options, source.sparkSession)

    return MergeBuilder(target, finish, source, on, *aliases)


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
        from icebergds.spark.row_level import upsert

        _require_frame(rows)
        target = _target(address, state, str(operation), options, rows.sparkSession)
        return upsert.change_by_key(target, rows, operation, listed, order_by, row_kind_column)
    named = {
        "write-operation": str(operation),
        "upsert-keys": listed,
        "upsert-order-by": order_by,
        "row-kind-column": row_kind_column,
    }
    given = {name: value for name, value in named.items() if value is not None}
    return change_rows(address, rows, {**options, **given})


def _target(
    address: TableAddress,
    state: TableState,
    verb: str,
    options: Mapping[str, str],
    spark: SparkSession | None,
) -> Target:
    from icebergds.spark.row_level.target import make_target

    return make_target(spark, address, state, verb, options)


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
    from icebergds.spark.row_level.target import session_zone

    zone = session_zone(spark)
    return {} if zone is None else {"time-zone": zone}
