"""Writes of DataFrames through a `Table`, which can shuffle them first."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import TableState
from icebergds.operations.write.distribution_mode import distribution_mode
from icebergds.operations.write.options import parse_write_options
from icebergds.spark.distribution import distribute, sort_within_tasks
from icebergds.spark.save_job import save_rows


def write_frame(
    df: DataFrame,
    address: TableAddress,
    state: TableState,
    options: Mapping[str, str],
    *,
    overwrite: bool,
) -> None:
    """Writes a DataFrame to a table, shuffled and sorted as the table asks for.

    Args:
        state: the table's, which says how.
        options: of the write, without those of the address.
        overwrite: replace rows, rather than append.

    Raises:
        InvalidOptionError: an option is unknown or malformed.
        IcebergError: the rows or the commit were refused, as `save_rows` does.
        PySparkException: the write failed for another reason.
    """
    parsed = parse_write_options({**options, "path": address.path}, address)
    metadata = state.metadata
    schema, spec, order = metadata.schema(), metadata.spec(), metadata.sort_order()
    df = distribute(df, schema, spec, order, distribution_mode(parsed, metadata))
    if parsed.use_table_distribution:
        df = sort_within_tasks(df, schema, spec, order)
    # What could be shuffled has been.
    shuffled = {**options, "distribution-mode": "none"}
    save_rows(df, address, state.io, shuffled, overwrite=overwrite)
