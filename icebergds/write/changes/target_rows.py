"""Carries what a task needs to know of data files among the rows that change them.

A change of rows is shuffled by data file. What is known of a file on the driver, such as the
deletes that apply to it, goes the same way, as a row of its own: each task gets the files that it
changes, and no others.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TARGET_COLUMN = "_target"
"""Binary; in rows that describe the data file of `_file` and change nothing, null in others."""


def pack_target(path: str, target: object) -> bytes:
    """The value of `TARGET_COLUMN` for a data file.

    Args:
        path: of the data file, as manifests have it.
        target: what tasks need to know of it.
    """
    return pickle.dumps((path, target), pickle.HIGHEST_PROTOCOL)


def take_targets(
    batches: Iterable[pa.RecordBatch], targets: MutableMapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """The rows that change something, without `TARGET_COLUMN`.

    Args:
        targets: gets what the other rows say of data files, by path; complete once all batches
            have passed.
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
