"""Marks the schema of a load with its snapshot, for overwrites with rows from that load.

Spark does not tell a writer where its rows come from, and a load, as in a temporary view, stays at
its snapshot. Only the metadata of columns reaches the writer: Spark passes it on with a column, and
an INSERT gives its rows the metadata of the view's columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import StructField, StructType

from icebergds.operations.write.read_marks import ReadMark
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot

_KEY = "icebergpy.read"
_NO_SNAPSHOT = "none"


def marked_schema(
    schema: StructType, metadata: TableMetadata, branch: str, snapshot: Snapshot | None
) -> StructType:
    """A schema whose first column says which snapshot is read.

    Args:
        branch: the branch whose newest snapshot is read.
        snapshot: None if the branch has none.
    """
    if metadata.table_uuid is None or not schema.fields:
        return schema
    snapshot_id = _NO_SNAPSHOT if snapshot is None else str(snapshot.snapshot_id)
    first = schema.fields[0]
    mark = {_KEY: f"{metadata.table_uuid}/{snapshot_id}/{branch}"}
    marked = StructField(first.name, first.dataType, first.nullable, {**first.metadata, **mark})
    return StructType([marked, *schema.fields[1:]])


def read_marks(schema: StructType) -> tuple[ReadMark, ...]:
    """The snapshots that the columns of a DataFrame were read from, as far as Spark knows."""
    return tuple(dict.fromkeys(_marks(schema)))


def _marks(schema: StructType) -> Iterator[ReadMark]:
    for field in schema.fields:
        text = (field.metadata or {}).get(_KEY)
        match text.split("/", 2) if isinstance(text, str) else ():
            case [table_uuid, snapshot_id, branch] if snapshot_id == _NO_SNAPSHOT:
                yield ReadMark(table_uuid, None, branch)
            case [table_uuid, snapshot_id, branch] if snapshot_id.isdecimal():
                yield ReadMark(table_uuid, int(snapshot_id), branch)
            case _:
                pass
