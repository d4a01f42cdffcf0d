"""Finds the snapshots between two snapshots, or since a time, in a table's history."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.errors import InvalidOptionError, NoSuchSnapshotError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """Consecutive snapshots, each the parent of the next.

    Attributes:
        start: the parent of the first one (exclusive); None if the range begins with the oldest
            known snapshot.
        snapshots: oldest first.
    """

    start: Snapshot | None
    snapshots: tuple[Snapshot, ...]


def snapshots_between(
    metadata: TableMetadata, start: Snapshot | None, end: Snapshot | None, table: str
) -> SnapshotRange:
    """The snapshots after `start`, up to and including `end`.

    Args:
        start: None for all known snapshots.
        end: None if the table or branch has no snapshots up to the end.
        table: the table's name in messages.

    Raises:
        InvalidOptionError: `start` is not an ancestor of `end`.
        NoSuchSnapshotError: a snapshot between them has expired.
    """
    known = metadata.lineage(end)
    if start is None:
        return SnapshotRange(None, tuple(reversed(known)))
    for index, snapshot in enumerate(known):
        if snapshot.snapshot_id == start.snapshot_id:
            return SnapshotRange(start, tuple(reversed(known[:index])))
    if end is None:
        raise InvalidOptionError(
            f"table {table}: the changes start at snapshot {start.snapshot_id}, but there is no "
            "snapshot at their end: the end is before the first snapshot, or the branch has none"
        )
    if end.snapshot_id in {snapshot.snapshot_id for snapshot in metadata.lineage(start)}:
        raise InvalidOptionError(
            f"table {table}: snapshot {start.snapshot_id}, where the changes start, is later than "
            f"their end, {end.snapshot_id}; swap them"
        )
    missing = known[-1].parent_snapshot_id
    if missing is not None and start.sequence_number <= known[-1].sequence_number:
        raise NoSuchSnapshotError(
            f"table {table}: the changes from snapshot {start.snapshot_id} to {end.snapshot_id} "
            f"cannot be read: snapshot {missing} between them has expired, or snapshot "
            f"{start.snapshot_id} is on another branch; start at snapshot "
            f"{known[-1].snapshot_id} or later"
        )
    raise InvalidOptionError(
        f"table {table}: snapshot {start.snapshot_id}, where the changes start, is not an ancestor "
        f"of their end, {end.snapshot_id}: it is on another branch, or was rolled back; the newest "
        f"possible starts are {_listed(known)}"
    )


def range_since(
    metadata: TableMetadata, start_ms: int, end: Snapshot | None, table: str
) -> SnapshotRange:
    """The snapshots committed after a time, up to and including `end`.

    Args:
        start_ms: milliseconds since 1970.
        table: the table's name in messages.

    Raises:
        NoSuchSnapshotError: the snapshot that was current at that time has expired.
    """
    known = metadata.lineage(end)
    later = [snapshot for snapshot in known if snapshot.timestamp_ms > start_ms]
    # Writers' clocks differ: a snapshot that follows a later one counts as later.
    count = known.index(later[-1]) + 1 if later else 0
    if count < len(known):
        return SnapshotRange(known[count], tuple(reversed(known[:count])))
    refuse_expired_history(known, start_ms, table)
    return SnapshotRange(None, tuple(reversed(known)))


def refuse_expired_history(known: list[Snapshot], time_ms: int, table: str) -> None:
    """Refuses a time before the oldest known snapshot, unless that is the table's first snapshot.

    Args:
        known: a lineage, newest first.

    Raises:
        NoSuchSnapshotError: the snapshot that was current at that time has expired.
    """
    if known and known[-1].parent_snapshot_id is not None:
        raise NoSuchSnapshotError(
            f"table {table}: the snapshot that was current at {time_ms} ms has expired; the oldest "
            f"snapshot left, {known[-1].snapshot_id}, was committed at {known[-1].timestamp_ms} ms"
        )


def _listed(snapshots: list[Snapshot]) -> str:
    return ", ".join(str(snapshot.snapshot_id) for snapshot in snapshots[:5])
