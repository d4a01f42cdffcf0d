"""Which columns a dictionary makes smaller."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE_ROWS = 4_096
_PLACES = np.sort(np.random.default_rng(0).random(_SAMPLE_ROWS))
# More distinct values do not fit into a dictionary. Encoding through one is then lost time.
_MOST_DISTINCT = 300_000
# A column of n values drawn from 0.63 n different ones has n / 2 distinct values. With more, the
# dictionary takes the room that its indices save.
_MOST_DISTINCT_SHARE = 0.63


def wants_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether values repeat often enough for a dictionary, from a sample at random places.

    Neighbours would not do: equal values often stand together, and distinct ones too.
    """
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return True
    if isinstance(column.type, pa.BaseExtensionType):
        stored = [chunk.storage for chunk in column.chunks]
        column = pa.chunked_array(stored, column.type.storage_type)
    sample = column
    if len(column) > _SAMPLE_ROWS:
        places = (_PLACES * len(column)).astype(np.int64)
        # No row twice: in a short column these would pass for values that repeat.
        sample = column.take(pa.array(places[np.diff(places, prepend=-1) > 0]))
    values = len(sample) - sample.null_count
    if not values:
        return True
    drawn_from = min(_MOST_DISTINCT, _MOST_DISTINCT_SHARE * len(column) * values / len(sample))
    # How many distinct ones so many draws from so many values are expected to find.
    expected = drawn_from * -np.expm1(-values / drawn_from)
    return bool(pc.count_distinct(sample).as_py() <= expected)
