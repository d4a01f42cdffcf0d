"""Which columns a dictionary makes smaller."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE_ROWS = 16_384
# Of so many values drawn at random, as few repeat if there are about half a million distinct ones,
# more than fit into a dictionary. Encoding through one is then lost time.
_DISTINCT_SHARE = 0.98


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
        places = np.random.default_rng(0).integers(0, len(column), _SAMPLE_ROWS)
        sample = column.take(pa.array(np.sort(places)))
    values = len(sample) - sample.null_count
    return values == 0 or bool(pc.count_distinct(sample).as_py() <= values * _DISTINCT_SHARE)
