"""Commits statistics files to a table's metadata (spec: Table Statistics, Partition Statistics)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.errors import CommitStateUnknownError, NoSuchSnapshotError, UnsupportedFeatureError
from icebergds.interrupts import interrupts_held
from icebergds.operations.evolution.commit import commit_update
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID, STATISTICS_IN_CLEAR
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.table_updates import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)
from icebergds.spec.values.dates import now_ms

_LOG = logging.getLogger(__name__)

StatisticsUpdate: TypeAlias = (
    SetStatistics | RemoveStatistics | SetPartitionStatistics | RemovePartitionStatistics
)


def refuse_in_clear(metadata: TableMetadata, name: str) -> None:
    """Refuses statistics files of an encrypted table, unless its property takes them in clear.

    Args:
        name: the table's, in the error.

    Raises:
        UnsupportedFeatureError: the table is encrypted, and does not have the property.
        InvalidOptionError: the property is malformed.
    """
    is_encrypted = ENCRYPTION_KEY_ID.of(metadata.properties) is not None or metadata.encryption_keys
    if is_encrypted and not STATISTICS_IN_CLEAR.of(metadata.properties):
        raise UnsupportedFeatureError(
            f"table {name} is encrypted, and statistics files cannot be: they show how many values "
            "columns have, hashes of values, and partitions; if everyone who reads the table's "
            f"storage may see these, set {STATISTICS_IN_CLEAR.name} = true"
        )


def update_statistics(table: LoadedTable, updates: Sequence[StatisticsUpdate]) -> TableState:
    """Sets and removes statistics files in one commit; nothing if that changes nothing.

    Raises:
        NoSuchSnapshotError: the table does not have the snapshot of a file, or no longer has it.
        UnsupportedFeatureError: a file is set, and the table is encrypted; see `refuse_in_clear`.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether they were changed is not known.
    """

    def produce(state: TableState) -> Change:
        if any(isinstance(update, SetStatistics | SetPartitionStatistics) for update in updates):
            refuse_in_clear(state.metadata, state.name)
        for update in updates:
            _check_snapshot(state.metadata, update)
        return Change([], updates)

    def is_updated(state: TableState) -> bool:
        before = state.metadata
        if not all(_is_known(before, update) for update in updates):
            return False
        changed = apply_updates(before, updates, now_ms=now_ms())
        return _statistics(changed) == _statistics(before)

    return commit_update(table, produce, is_updated)


def commit_new_file(
    table: LoadedTable, update: SetStatistics | SetPartitionStatistics
) -> TableState:
    """Commits a statistics file that was written for this; deletes it if it is not committed.

    Errors are those of `update_statistics`.
    """
    with interrupts_held():
        try:
            return update_statistics(table, [update])
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            location = _file(update).statistics_path
            try:
                table.io.delete(location)
            except Exception as error:
                _LOG.warning("table %s: %s was left behind: %s", table.name, location, error)
            raise


def _file(
    update: SetStatistics | SetPartitionStatistics,
) -> StatisticsFile | PartitionStatisticsFile:
    if isinstance(update, SetStatistics):
        return update.statistics
    return update.partition_statistics


def _is_known(metadata: TableMetadata, update: StatisticsUpdate) -> bool:
    """Whether the table has the snapshot of a file that is set."""
    if not isinstance(update, SetStatistics | SetPartitionStatistics):
        return True
    return _file(update).snapshot_id in metadata.snapshots_by_id


def _check_snapshot(metadata: TableMetadata, update: StatisticsUpdate) -> None:
    if _is_known(metadata, update):
        return
    assert isinstance(update, SetStatistics | SetPartitionStatistics)
    file = _file(update)
    raise NoSuchSnapshotError(
        f"snapshot {file.snapshot_id}, which the statistics file {file.statistics_path} is of, "
        "does not exist, or was expired meanwhile; compute statistics of one of table.snapshots()"
    )


def _statistics(metadata: TableMetadata) -> tuple[set[object], set[object]]:
    return (
        {(file.snapshot_id, file.statistics_path) for file in metadata.statistics},
        {(file.snapshot_id, file.statistics_path) for file in metadata.partition_statistics},
    )
