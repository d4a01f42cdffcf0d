"""Chooses the columns that dictionary encoding makes smaller."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE_ROWS = 4_096
_SAMPLE_POSITIONS = np.sort(np.random.default_rng(0).random(_SAMPLE_ROWS))
# More distinct values do not fit into a dictionary, and trying one costs time.
_MOST_DISTINCT = 300_000
# A column of n values drawn from 0.63 n different ones has n / 2 distinct values. With more, the
# dictionary takes the space that its indices save.
_MOST_DISTINCT_SHARE = 0.63


def wants_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether values repeat often enough for a dictionary, judged by a sample of random rows.

    Consecutive rows are not representative: equal values are often clustered, and so are distinct
    ones.
    """
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return True
    if isinstance(column.type, pa.BaseExtensionType):
        stored = [chunk.storage for chunk in column.chunks]
        column = pa.chunked_array(stored, column.type.storage_type)
    sample = column
    if len(column) > _SAMPLE_ROWS:
        rows = (_SAMPLE_POSITIONS * len(column)).astype(np.int64)
        # No row twice: in a short column it would count as a repeated value.
        sample = column.take(pa.array(rows[np.diff(rows, prepend=-1) > 0]))
    values = len(sample) - sample.null_count
    if not values:
        return True
    drawn_from = min(_MOST_DISTINCT, _MOST_DISTINCT_SHARE * len(column) * values / len(sample))
    # The expected number of distinct values in as many draws from that many values.
    expected = drawn_from * -np.expm1(-values / drawn_from)
    return bool(pc.count_distinct(sample).as_py() <= expected)
