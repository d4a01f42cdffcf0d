"""Sends metadata of data files to tasks in additional rows of the changes.

Changes are shuffled by data file. Metadata of a file, such as the deletes that apply to it, is
shuffled with them in an additional row, so that each task gets only the files that it changes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TARGET_COLUMN = "_icebergds_target"
"""Binary: packed metadata of the data file `_file` in additional rows; null in other rows."""


def pack_target(path: str, target: object) -> bytes:
    """The value of `TARGET_COLUMN` for a data file.

    Args:
        path: the path of the data file, as in manifests.
        target: the metadata for tasks.
    """
    return pickle.dumps((path, target), pickle.HIGHEST_PROTOCOL)


def take_targets(
    batches: Iterable[pa.RecordBatch], targets: MutableMapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Removes the additional rows and `TARGET_COLUMN`; collects the metadata.

    Args:
        targets: receives the metadata by path; complete once all batches are consumed.
    """
    for batch in batches:
        if TARGET_COLUMN not in batch.schema.names:
            yield batch
            continue
        packed = batch.column(TARGET_COLUMN)
        rows = batch.drop_columns([TARGET_COLUMN])
        if packed.null_count < len(packed):
            targets.update(pickle.loads(value) for value in packed.drop_null().to_pylist())
            rows = rows.filter(pc.is_null(packed))
        yield rows
