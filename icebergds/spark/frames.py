"""Writes of DataFrames through a `Table`, which can shuffle them first."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame

from icebergds.commit.operations import TableState
from icebergds.spark.distribution import default_mode, distribute, sort_within_tasks
from icebergds.table.address import TableAddress
from icebergds.table.write_options import parse_write_options

DISTRIBUTION_MODE = "write.distribution-mode"


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
        PySparkException: the write failed; its message is that of our error.
    """
    parsed = parse_write_options({**options, "path": address.path}, address)
    metadata = state.metadata
    schema, spec, order = metadata.schema(), metadata.spec(), metadata.sort_order()
    if parsed.use_table_distribution:
        mode = (
            parsed.distribution_mode
            or metadata.properties.get(DISTRIBUTION_MODE)
            or default_mode(spec, order)
        )
        df = distribute(df, schema, spec, order, mode.lower())
        df = sort_within_tasks(df, schema, spec, order)
    # Relative paths are relative to this process: the data source runs elsewhere.
    location_map = {"": state.io.working_directory, **state.io.location_map}
    writer = df.write.format("icebergpy").mode("overwrite" if overwrite else "append")
    named = {**address.options(), "location-map": json.dumps(location_map), **options}
    writer.options(**named).save(address.path)
