"""Upserts and streams of changes: rows of a DataFrame arranged so that those of one key meet."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icebergds.errors import InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.operations.write.distribution_mode import distribution_mode
from icebergds.operations.write.key_changes import key_ids_of
from icebergds.operations.write.options import parse_write_options
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spark.distribution import KeyedRows, partition_keys
from icebergds.spark.row_level.target import Target, save_change


def change_by_key(
    target: Target,
    df: DataFrame,
    operation: WriteOperation,
    keys: str | None,
    order_by: str | None,
    row_kind_column: str | None,
) -> RowCounts:
    """Changes the rows of a table that have the keys of a DataFrame's rows.

    Args:
        keys: columns joined by commas; None for the table's identifier fields.
        order_by: the column that says which row of a key is the last; where it is None, a stream
            of changes is taken in the frame's own order, by one task.
        row_kind_column: the column that says what a row of a stream of changes does.

    Raises:
        InvalidOptionError: there are no keys, or columns are not there.
        PySparkException: the job failed for a reason of Spark's or of the query's.
    """
    key_ids = key_ids_of(target.state, keys)
    named = {
        "upsert-keys": keys,
        "upsert-order-by": order_by,
        "row-kind-column": row_kind_column,
        "rows-are-ordered": None if order_by is None else "true",
    }
    options = {
        **target.options,
        "write-operation": operation.value,
        **{name: value for name, value in named.items() if value is not None},
    }
    if operation is WriteOperation.DELTA and order_by is None:
        return save_change(target, df.coalesce(1), options)
    meeting = _meeting(target, df, key_ids)
    df = meeting.without_keys(meeting.rows.repartition(*meeting.keys))
    if order_by is not None:
        if order_by.lower() not in {name.lower() for name in df.columns}:
            raise InvalidOptionError(
                f"order_by = {order_by!r}: the rows have no such column, only "
                f"{', '.join(df.columns)}"
            )
        df = df.sortWithinPartitions(f.col(quote_name((order_by,))).asc_nulls_first())
    return save_change(target, df, options)


def _meeting(target: Target, df: DataFrame, key_ids: tuple[int, ...]) -> KeyedRows:
    """Rows with what is equal for those of one key: the partition, for few files, or the key."""
    metadata = target.state.metadata
    schema, spec = metadata.schema(), metadata.spec()
    sources = spec.source_ids
    keys = tuple(f.col(quote_name(schema.paths_by_id[key_id])) for key_id in key_ids)
    parsed = parse_write_options({**target.options, "path": target.address.path}, target.address)
    if sources and sources <= set(key_ids) and distribution_mode(parsed, metadata) == "hash":
        keyed = partition_keys(df, schema, spec)
        if keyed.keys:
            return keyed
    return KeyedRows(df, keys)
