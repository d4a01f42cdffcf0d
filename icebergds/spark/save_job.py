"""Saves of DataFrames that a `Table` asks for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from pyspark.sql import DataFrame

from icebergds.catalog.address import TableAddress
from icebergds.io.fileio import FileIO
from icebergds.operations.write.cleanup import WRITE_ID
from icebergds.operations.write.options import parse_write_options
from icebergds.spark.errors import own_errors, prepare_thread


def save_rows(
    df: DataFrame,
    address: TableAddress,
    io: FileIO,
    options: Mapping[str, str],
    *,
    overwrite: bool = False,
) -> Mapping[str, str]:
    """Writes rows to a table, or changes its rows by them, in one commit.

    Args:
        io: the table's storage.
        options: of the write, without those of the address.
        overwrite: replace rows, rather than append.

    Returns:
        The summary of the snapshot; empty where nothing was to be committed.

    Raises:
        InvalidOptionError: an option is unknown or malformed.
        IcebergError: the rows or the commit were refused, as `plan_job` and `commit_job` do.
        PySparkException: the job failed for another reason.
    """
    parse_write_options({**options, "path": address.path}, address)
    write_id = str(uuid.uuid4())
    # Relative paths are relative to this process: the data source runs elsewhere.
    location_map = json.dumps({"": io.working_directory, **io.location_map})
    named = {**address.options(), "location-map": location_map, **options, "write-id": write_id}
    prepare_thread(df.sparkSession)
    writer = df.write.format("icebergpy").mode("overwrite" if overwrite else "append")
    with own_errors():
        writer.options(**named).save(address.path)
    summaries = (s.summary for s in reversed(address.load().metadata.snapshots))
    return next((found for found in summaries if found.get(WRITE_ID) == write_id), {})
