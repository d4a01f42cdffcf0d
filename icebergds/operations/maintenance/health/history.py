"""Measures the history of a table from its metadata alone: commits, growth, refs, old files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot, summary_count

_MOST_STATES = 120
_PERIODS = 48


@dataclass(frozen=True, slots=True)
class RetainedState:
    """A branch after one of its commits; figures are None if the commit did not record them.

    Attributes:
        timestamp_ms: in milliseconds since the epoch.
        rows: before deletes.
    """

    timestamp_ms: int
    files: int | None
    rows: int | None
    size_in_bytes: int | None


@dataclass(frozen=True, slots=True)
class RefPosition:
    """A branch or tag, and the snapshot that it refers to."""

    name: str
    kind: str
    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class CommitRate:
    """How many snapshots were committed in each of several periods of the same length.

    Attributes:
        start_ms, end_ms: the first and the last snapshot, in milliseconds since the epoch.
    """

    start_ms: int = 0
    end_ms: int = 0
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The snapshots that a table has, and what they hold.

    Attributes:
        commits: of all branches.
        operations: how many snapshots were made by each operation, such as `append`.
        growth: the branch after its commits, oldest first; of many commits, some.
        refs: the branches and tags.
        held_bytes: about how many bytes of files only older snapshots refer to, by what commits
            recorded that they removed.
        expirable_bytes: about how many of them `expire_snapshots()` would delete.
        unrecorded: how many snapshots removed files without recording their size.
    """

    commits: CommitRate = CommitRate()
    operations: tuple[tuple[str, int], ...] = ()
    growth: tuple[RetainedState, ...] = ()
    refs: tuple[RefPosition, ...] = ()
    held_bytes: int = 0
    expirable_bytes: int = 0
    unrecorded: int = 0


def measure_history(
    metadata: TableMetadata, head: Snapshot | None, expirable: frozenset[int]
) -> TableHistory:
    """Measures the history of a table, and of a branch.

    Args:
        head: the branch's newest snapshot.
        expirable: ids of the snapshots that may expire.
    """
    snapshots, by_id = metadata.snapshots, metadata.snapshots_by_id
    # What a commit removed is last referred to by its parent.
    removing = [each for each in snapshots if each.parent_snapshot_id in by_id]
    removed = [summary_count(each, "removed-files-size") for each in removing]
    pairs = list(zip(removing, removed, strict=True))
    operations = Counter(each.operation or "not recorded" for each in snapshots)
    return TableHistory(
        commits=_rate([each.timestamp_ms for each in snapshots]),
        operations=tuple(operations.most_common()),
        growth=_growth(metadata.lineage(head)[::-1]),
        refs=tuple(
            RefPosition(name, str(ref.ref_type), ref.snapshot_id, of.timestamp_ms)
            for name, ref in metadata.refs.items()
            if (of := by_id.get(ref.snapshot_id)) is not None
        ),
        held_bytes=sum(size or 0 for size in removed),
        expirable_bytes=sum(
            size or 0 for each, size in pairs if each.parent_snapshot_id in expirable
        ),
        unrecorded=sum(size is None and _removes_files(each) for each, size in pairs),
    )


def _removes_files(snapshot: Snapshot) -> bool:
    names = ("deleted-data-files", "removed-delete-files")
    return any(summary_count(snapshot, name) for name in names)


def _rate(times: Sequence[int]) -> CommitRate:
    if not times:
        return CommitRate()
    start, end = min(times), max(times)
    # Floats, so that no damaged time overflows.
    shares = (np.array(times, np.float64) - start) / max(end - start, 1)
    periods = np.minimum((shares * _PERIODS).astype(np.int64), _PERIODS - 1)
    return CommitRate(start, end, tuple(np.bincount(periods, minlength=_PERIODS).tolist()))


def _growth(lineage: Sequence[Snapshot]) -> tuple[RetainedState, ...]:
    most = min(len(lineage), _MOST_STATES)
    chosen = np.linspace(0, max(len(lineage) - 1, 0), most).round().astype(int).tolist()
    return tuple(
        RetainedState(
            lineage[at].timestamp_ms,
            summary_count(lineage[at], "total-data-files"),
            summary_count(lineage[at], "total-records"),
            summary_count(lineage[at], "total-files-size"),
        )
        for at in chosen
    )
