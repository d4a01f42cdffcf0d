"""Opens Parquet files with pyarrow, always with the same options."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def open_parquet(
    handle: pa.NativeFile, metadata: pq.FileMetaData | None = None, buffer_size: int = 0
) -> pq.ParquetFile:
    """Opens a file whose columns are read through buffers, or whole if `buffer_size` is 0."""
    return pq.ParquetFile(
        handle,
        metadata=metadata,
        pre_buffer=False,
        buffer_size=buffer_size,
        # Nanoseconds, the default, would wrap outside of the years 1677 to 2262.
        coerce_int96_timestamp_unit="us",
    )
