"""Makes DataFrames that prune by their own conditions, on classic Spark and Spark Connect."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import TRUE
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import chosen_columns
from icebergds.spark.frames.table_load import TableLoad, load_of_state
from icebergds.spark.row_level.conditions import check_condition, named_columns
from icebergds.spark.session import is_connect
from icebergds.spec.schema import Schema


def pruning_frame(
    spark: SparkSession, load: TableLoad, by_source: Callable[[], DataFrame] | None = None
) -> DataFrame:
    """All rows of a load.

    Args:
        by_source: makes the same DataFrame with Spark's public methods only; None to plan all rows.
    """
    if is_connect(spark):
        from icebergds.spark.frames.connect_frame import connect_frame

        return connect_frame(spark, load)
    from icebergds.spark.frames.classic_frame import classic_frame

    return classic_frame(spark, load, by_source or (lambda: _planned(spark, load)))


def filtered_frame(
    spark: SparkSession, state: TableState, options: ReadOptions, condition: Column
) -> DataFrame:
    """The rows of a table that meet a Spark condition, which also prunes the scan.

    Args:
        options: of the read; they have no filter.

    Raises:
        InvalidFilterError: the condition names unknown columns, or is not a deterministic boolean.
        InvalidOptionError: an option does not fit the table, or chooses fields inside of a column.
    """
    shown: list[str] = []

    def needed(state: TableState, table: Schema) -> Schema:
        chosen = chosen_columns(options, state.metadata, table)
        shown.extend(field.name for field in chosen.fields)
        if options.columns is None:
            return chosen
        fields = {field.field_id: field for field in table.fields}
        for field in chosen.fields:
            if fields.setdefault(field.field_id, field) != field:
                raise InvalidOptionError(
                    f"table {state.name}: columns choose fields inside of {field.name!r}, and the "
                    "filter is a Column; give the filter as SQL text, or select the fields of the "
                    "DataFrame"
                )
        named = named_columns([condition], [field.name for field in fields.values()])
        wanted = {*shown, *named}
        return Schema(tuple(field for field in fields.values() if field.name in wanted))

    load = load_of_state(spark, state, options, needed)
    frame = pruning_frame(spark, load)
    check_condition(frame, condition, f"table {state.name}: filter")
    rows = frame.where(condition)
    return rows if options.columns is None else rows.select(*(in_backticks((n,)) for n in shown))


def _planned(spark: SparkSession, load: TableLoad) -> DataFrame:
    rows = load.planned(spark, TRUE).rows(spark)
    return rows.toDF(*load.schema.names)
