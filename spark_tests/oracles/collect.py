"""The rows of a Spark DataFrame as an Arrow table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame


def collect(frame: DataFrame) -> pa.Table:
    """`frame.toArrow()`, but for the cast at its end.

    That cast fails where a null struct has required fields ("nulls in input cannot be viewed as
    non-nullable"), although the batches are right.
    """
    try:
        return frame.toArrow()
    except pa.ArrowInvalid:
        classic: Any = frame
        return pa.Table.from_batches(classic._collect_as_arrow(empty_list_if_zero_records=False))
