"""The history of a table: which snapshots lie between two of them."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.errors import InvalidOptionError, NoSuchSnapshotError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """Snapshots that follow one another, each the parent of the next.

    Attributes:
        start: what the first one follows; None: the range begins with the oldest known snapshot.
        snapshots: the oldest first.
    """

    start: Snapshot | None
    snapshots: tuple[Snapshot, ...]


def lineage(metadata: TableMetadata, head: Snapshot | None) -> list[Snapshot]:
    """A snapshot and its ancestors as far as they are known, the newest first."""
    found: list[Snapshot] = []
    while head is not None:
        found.append(head)
        parent_id = head.parent_snapshot_id
        head = None if parent_id is None else metadata.snapshot_by_id(parent_id)
    return found


def snapshots_between(
    metadata: TableMetadata, start: Snapshot | None, end: Snapshot | None, table: str
) -> SnapshotRange:
    """The snapshots after `start` up to and with `end`.

    Args:
        start: None for all that are known.
        end: None for a table or branch without snapshots.
        table: its name, for messages.

    Raises:
        InvalidOptionError: `start` is no ancestor of `end`.
        NoSuchSnapshotError: a snapshot between them has expired.
    """
    known = lineage(metadata, end)
    if start is None:
        return SnapshotRange(None, tuple(reversed(known)))
    for index, snapshot in enumerate(known):
        if snapshot.snapshot_id == start.snapshot_id:
            return SnapshotRange(start, tuple(reversed(known[:index])))
    if end is None:
        raise InvalidOptionError(
            f"table {table}: the changes are to start at snapshot {start.snapshot_id}, but there "
            "is no snapshot up to their end: the end is earlier, or its branch has none"
        )
    if end.snapshot_id in {snapshot.snapshot_id for snapshot in lineage(metadata, start)}:
        raise InvalidOptionError(
            f"table {table}: snapshot {start.snapshot_id}, where the changes are to start, is "
            f"later than their end, {end.snapshot_id}; exchange them"
        )
    missing = known[-1].parent_snapshot_id
    if missing is not None and start.sequence_number <= known[-1].sequence_number:
        raise NoSuchSnapshotError(
            f"table {table}: the changes from snapshot {start.snapshot_id} to {end.snapshot_id} "
            f"are not known: snapshot {missing} between them has expired, or {start.snapshot_id} "
            f"is of another branch; start at snapshot {known[-1].snapshot_id} or later"
        )
    raise InvalidOptionError(
        f"table {table}: snapshot {start.snapshot_id}, where the changes are to start, is no "
        f"ancestor of their end, {end.snapshot_id}: it is of another branch, or was rolled back; "
        f"the end's nearest ancestors are {_listed(known)}"
    )


def range_since(
    metadata: TableMetadata, start_ms: int, end: Snapshot | None, table: str
) -> SnapshotRange:
    """The snapshots after a time up to and with `end`.

    Args:
        start_ms: milliseconds since 1970.
        table: its name, for messages.

    Raises:
        NoSuchSnapshotError: what the table held at that time has expired.
    """
    known = lineage(metadata, end)
    later = [snapshot for snapshot in known if snapshot.timestamp_ms > start_ms]
    # Clocks of writers differ: what follows a later snapshot is later.
    count = known.index(later[-1]) + 1 if later else 0
    if count < len(known):
        return SnapshotRange(known[count], tuple(reversed(known[:count])))
    refuse_lost_history(known, start_ms, table)
    return SnapshotRange(None, tuple(reversed(known)))


def refuse_lost_history(known: list[Snapshot], time_ms: int, table: str) -> None:
    """Refuses a time before the oldest known snapshot where that is not the table's first.

    Args:
        known: a lineage, the newest first.

    Raises:
        NoSuchSnapshotError: it is not.
    """
    if known and known[-1].parent_snapshot_id is not None:
        raise NoSuchSnapshotError(
            f"table {table}: what it held at {time_ms} ms has expired; the oldest snapshot that is "
            f"known, {known[-1].snapshot_id}, was committed at {known[-1].timestamp_ms} ms"
        )


def _listed(snapshots: list[Snapshot]) -> str:
    return ", ".join(str(snapshot.snapshot_id) for snapshot in snapshots[:5])
