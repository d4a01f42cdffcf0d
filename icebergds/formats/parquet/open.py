"""Parquet files opened with Arrow, all in the same way."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def open_parquet(
    handle: pa.NativeFile, metadata: pq.FileMetaData | None = None, buffer_size: int = 0
) -> pq.ParquetFile:
    """Reads through a buffer, or without one fetches all it needs at once."""
    return pq.ParquetFile(
        handle,
        metadata=metadata,
        pre_buffer=not buffer_size,
        buffer_size=buffer_size,
        # Nanoseconds, the default, would wrap outside of the years 1677 to 2262.
        coerce_int96_timestamp_unit="us",
    )
