"""Computes partition statistics, from those of an ancestor if it can."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.errors import CorruptFileError, InvalidOptionError, MissingFileError
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.side_by_side import manifest_decoders, reading_ahead
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.operations.statistics.partition_stats_file import (
    partition_stats_type,
    read_partition_stats,
    write_partition_stats,
)
from icebergds.operations.statistics.partition_totals import PartitionStats, PartitionTotals
from icebergds.operations.statistics.statistics_commits import commit_new_file, refuse_in_clear
from icebergds.reporting import advancing, expect, stage
from icebergds.spec.manifest import ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.statistics import PartitionStatisticsFile
from icebergds.spec.updates.table_updates import SetPartitionStatistics

_LOG = logging.getLogger(__name__)


def compute_partition_stats(
    table: LoadedTable, snapshot_id: int | None
) -> tuple[PartitionStatisticsFile | None, TableState]:
    """Writes and commits the partition statistics file of a snapshot, unless it has one.

    If an ancestor has one, only the manifests that were added since are read.

    Args:
        snapshot_id: the current snapshot by default.

    Returns:
        The file, None if the snapshot has no files, and the table.

    Raises:
        InvalidOptionError: the table is not partitioned.
        NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
        CorruptFileError, MissingFileError: a manifest is damaged or missing.
        CommitConflictError, CommitStateUnknownError: as for all commits.
        UnsupportedFeatureError: the table is encrypted (see `refuse_in_clear`), or its catalog
            restricts what may be read.
    """
    metadata = table.metadata
    table.io.require_rows()
    refuse_in_clear(table.metadata, table.name)
    if not partition_stats_type(metadata).fields:
        raise InvalidOptionError(
            f"table {table.name}: it is not partitioned, so it has no partition statistics; "
            "table.update_spec() adds partition fields"
        )
    if snapshot_id is None:
        snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None:
        return None, table.state
    snapshot, _ = resolve_snapshot(metadata, TimeTravel(snapshot_id), table.name)
    assert snapshot is not None, "it was looked up by its id"
    lineage = metadata.lineage(snapshot)
    last = _last_file(metadata, lineage)
    if last is not None and last.snapshot_id == snapshot_id:
        return last, table.state
    with stage("read manifests"):
        partitions = _partitions(table.state, lineage, last)
    if not partitions:
        return None, table.state
    file = write_partition_stats(table.io, metadata, snapshot_id, partitions)
    return file, commit_new_file(table, SetPartitionStatistics(file))


def _last_file(
    metadata: TableMetadata, lineage: Sequence[Snapshot]
) -> PartitionStatisticsFile | None:
    """The file of the newest snapshot that has one."""
    files = {file.snapshot_id: file for file in metadata.partition_statistics}
    return next((files[one.snapshot_id] for one in lineage if one.snapshot_id in files), None)


def _partitions(
    state: TableState, lineage: Sequence[Snapshot], last: PartitionStatisticsFile | None
) -> list[PartitionStats]:
    if last is not None:
        try:
            known = list(read_partition_stats(state.io, state.metadata, last))
            return _from_changes(state, lineage, last.snapshot_id, known)
        except (CorruptFileError, MissingFileError) as error:
            _LOG.warning("table %s: partition statistics start anew: %s", state.name, error)
    totals = _totals(state)
    for columns in _read_all(state, read_snapshot_manifests(state.io, lineage[0])):
        totals.add_all(columns)
    return totals.partitions()


def _from_changes(
    state: TableState, lineage: Sequence[Snapshot], last_id: int, known: list[PartitionStats]
) -> list[PartitionStats]:
    """Adds the changes of the snapshots after one."""
    totals = _totals(state, known)
    for snapshot in lineage:
        if snapshot.snapshot_id == last_id:
            break
        # Later snapshots may merge these manifests, and then no longer show what was removed.
        manifests = [
            manifest
            for manifest in read_snapshot_manifests(state.io, snapshot)
            if manifest.added_snapshot_id == snapshot.snapshot_id
        ]
        for columns in _read_all(state, manifests):
            totals.add_changes(columns, snapshot.snapshot_id)
    return totals.partitions()


def _totals(state: TableState, known: Sequence[PartitionStats] = ()) -> PartitionTotals:
    metadata = state.metadata
    committed_ms = {one.snapshot_id: one.timestamp_ms for one in metadata.snapshots}
    return PartitionTotals(partition_stats_type(metadata), committed_ms, known)


def _read_all(state: TableState, manifests: Sequence[ManifestFile]) -> Iterator[EntryColumns]:
    """The entries of manifests without statistics, read in parallel, a few of them ahead."""
    metadata, io = state.metadata, reading_ahead(state.io, manifests)

    def read(manifest: ManifestFile) -> EntryColumns:
        return read_manifest_columns(
            io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
            stats_ids=frozenset(),
            live_only=False,
        )

    readers = manifest_decoders(manifests)
    expect(len(manifests))
    with ThreadPoolExecutor(readers) as pool:
        for start in range(0, len(manifests), readers):
            yield from advancing(pool.map(read, manifests[start : start + readers]))
