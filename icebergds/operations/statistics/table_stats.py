"""Computes table statistics: how many distinct values columns have (spec: Table Statistics)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.formats.puffin import NewBlob, encode_puffin
from icebergds.io.failures import storage_failures
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.operations.runner import Runner
from icebergds.operations.statistics.column_sketches import sketch_columns, sketched_fields
from icebergds.operations.statistics.statistics_commits import commit_new_file, refuse_in_clear
from icebergds.operations.statistics.theta_sketch import ThetaSketch
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.statistics import BlobMetadata, StatisticsFile
from icebergds.spec.types import NestedField
from icebergds.spec.updates.table_updates import SetStatistics

THETA_BLOB = "apache-datasketches-theta-v1"
NDV = "ndv"
_PROPERTIES = {"created-by": "icebergds"}


def compute_table_stats(
    table: LoadedTable,
    columns: Sequence[tuple[str, ...]] | None,
    snapshot_id: int | None,
    runner: Runner,
) -> tuple[StatisticsFile | None, TableState]:
    """Writes and commits the statistics file of a snapshot; replaces the one that it has.

    Args:
        columns: the parts of each name; all top-level columns of primitive types by default.
        snapshot_id: the current snapshot by default.

    Returns:
        The file, None if the table has no snapshot, and the table.

    Raises:
        InvalidOptionError: there is no such column, or not of a primitive type.
        NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
        CorruptFileError, MissingFileError: a file of the table is damaged or missing.
        CommitConflictError, CommitStateUnknownError: as for all commits.
        UnsupportedFeatureError: the table is encrypted; see `refuse_in_clear`.
    """
    refuse_in_clear(table.metadata, table.name)
    metadata = table.metadata
    if snapshot_id is None:
        snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None:
        return None, table.state
    snapshot, schema = resolve_snapshot(metadata, TimeTravel(snapshot_id), table.name)
    assert snapshot is not None, "it was looked up by its id"
    fields = sketched_fields(schema, columns, table.name)
    sketches = sketch_columns(table.state, snapshot_id, fields, runner)
    blobs = [_blob(field, sketch, snapshot) for field, sketch in zip(fields, sketches, strict=True)]
    file = _written(table, snapshot, blobs)
    return file, commit_new_file(table, SetStatistics(file))


def _blob(field: NestedField, sketch: ThetaSketch, snapshot: Snapshot) -> NewBlob:
    return NewBlob(
        THETA_BLOB,
        (field.field_id,),
        sketch.to_bytes(),
        snapshot.snapshot_id,
        snapshot.sequence_number,
        {NDV: str(int(sketch.estimate))},
    )


def _written(table: LoadedTable, snapshot: Snapshot, blobs: Sequence[NewBlob]) -> StatisticsFile:
    # Not compressed, because hashes are random.
    data, placed = encode_puffin(blobs, _PROPERTIES)
    name = f"{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    location = f"{table.metadata.metadata_directory}/{name}"
    with storage_failures("writing the statistics file", location):
        table.io.write(location, data)
    return StatisticsFile(
        snapshot.snapshot_id,
        location,
        len(data),
        len(data) - placed[-1].offset - placed[-1].length,
        tuple(
            BlobMetadata(
                blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties
            )
            for blob in placed
        ),
    )
