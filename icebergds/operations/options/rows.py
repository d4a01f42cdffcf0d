"""Converts users' rows to Arrow: those of pyarrow, pandas, polars, DuckDB and others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from icebergds.errors import IcebergError, InvalidDataError

ArrowRows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader
"""Rows as an Arrow table, record batch or record batch reader."""


class ArrowStream(Protocol):
    """Rows that are handed over by Arrow's PyCapsule protocol, as polars and DuckDB do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream
"""Rows in this process: `ArrowRows`, a DataFrame of pandas, or any other stream of Arrow."""


def arrow_rows(rows: object, place: str) -> ArrowRows | None:
    """Rows as Arrow, without copying what is Arrow already; None for Spark's and other objects.

    The levels of a pandas index that have names are columns, and others are left out.

    Args:
        place: what the rows are for, for messages: `table db.t`.

    Raises:
        InvalidDataError: the rows have values or types that Arrow does not have.
    """
    if isinstance(rows, ArrowRows):
        return rows
    # Spark's DataFrames are streams too, but would collect all of their rows here.
    if hasattr(rows, "sparkSession") or type(rows).__module__.startswith("pyspark."):
        return None
    pandas = sys.modules.get("pandas")
    is_pandas = pandas is not None and isinstance(rows, pandas.DataFrame)
    if not is_pandas and not hasattr(rows, "__arrow_c_stream__"):
        return None
    try:
        return _of_pandas(rows) if is_pandas else pa.RecordBatchReader.from_stream(rows)
    except IcebergError:
        raise
    except Exception as error:
        # Every library has errors of its own.
        raise InvalidDataError(
            f"{place}: rows of type {type(rows).__module__}.{type(rows).__name__} cannot be "
            f"converted to Arrow: {'; '.join(map(str, error.args))}"
        ) from error


def batches_of_rows(rows: ArrowRows) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return iter([rows])
    return iter(rows) if isinstance(rows, pa.RecordBatchReader) else iter(rows.to_batches())


def _of_pandas(frame: Any) -> pa.Table:
    names = frame.index.names
    if all(name is None for name in names):
        return pa.Table.from_pandas(frame, preserve_index=False)
    kept = frame.reset_index(level=[at for at, name in enumerate(names) if name is not None])
    return pa.Table.from_pandas(kept, preserve_index=False)
