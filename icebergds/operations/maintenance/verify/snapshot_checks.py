"""Compares snapshots with each other, and their summaries with the files that manifests list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from icebergds.commit.file_selection import file_keys
from icebergds.commit.repair_files import TOTALS, WHOLE_SIZE, file_counts
from icebergds.operations.maintenance.verify.findings import (
    REPAIR,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.operations.maintenance.verify.walk import Walk
from icebergds.spec.manifest import ManifestEntryStatus
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot

_COUNTS = (
    "records",
    "files-size",
    "delete-files",
    "position-deletes",
    "equality-deletes",
    "position-delete-files",
    "equality-delete-files",
    "dvs",
)
_CHANGES: Mapping[ManifestEntryStatus, Mapping[str, str]] = {
    ManifestEntryStatus.ADDED: {f"added-{name}": name for name in ("data-files", *_COUNTS)},
    ManifestEntryStatus.DELETED: {
        "deleted-data-files": "data-files",
        "deleted-records": "records",
        **{f"removed-{name}": name for name in _COUNTS[1:]},
    },
}
"""Entries of summaries, and what `file_counts` calls them."""


def check_snapshots(metadata: TableMetadata, walk: Walk, location: str) -> Iterator[Finding]:
    """What is wrong with sequence numbers, totals and changes of snapshots.

    Args:
        location: of the metadata file.
    """
    # Most manifests are those of many snapshots.
    live = {path: file_counts([m.live()]) for path, m in walk.manifests.items()}
    changed = _changed(walk)
    for snapshot in metadata.snapshots:
        yield from _order(metadata, snapshot, location)
        yield from _listed_numbers(walk, snapshot)
        if walk.is_whole(snapshot.snapshot_id):
            own = [m.path for m in walk.of_snapshot(snapshot.snapshot_id)]
            totals = sum((live[path] for path in own), Counter[str]())
            yield from _totals(walk, snapshot, location, totals)
            for status, names in _CHANGES.items():
                of_status = changed.get((snapshot.snapshot_id, status), {})
                found = sum((of_status[p] for p in own if p in of_status), Counter[str]())
                yield from _changes(walk, snapshot, location, status, names, found)


_Changed: TypeAlias = dict[tuple[int, ManifestEntryStatus], dict[str, Counter[str]]]


def _changed(walk: Walk) -> _Changed:
    """The counts of files that each snapshot added or removed, by manifest."""
    found: _Changed = {}
    for path, manifest in walk.manifests.items():
        columns = manifest.columns
        for status in _CHANGES:
            of_status = columns.status == status.value
            for snapshot_id in np.unique(columns.snapshot_id[of_status]).tolist():
                own = columns.filter(of_status & (columns.snapshot_id == snapshot_id))
                found.setdefault((snapshot_id, status), {})[path] = file_counts([own])
    return found


def _order(metadata: TableMetadata, snapshot: Snapshot, location: str) -> Iterator[Finding]:
    parent = (
        None
        if snapshot.parent_snapshot_id is None
        else metadata.snapshot_by_id(snapshot.parent_snapshot_id)
    )
    if parent is None or metadata.format_version == 1:
        return
    own, before = snapshot.sequence_number, parent.sequence_number
    # Snapshots of version 1 have the number 0.
    if own <= before and before > 0:
        yield Finding(
            FindingKind.SEQUENCE_NUMBERS,
            location,
            f"sequence-number of snapshot {snapshot.snapshot_id}",
            f"{own:,}",
            f"{before:,} of its parent",
            "deletes apply to the rows of other commits than they were meant for",
            "roll back to the parent, and commit again",
        )


def _listed_numbers(walk: Walk, snapshot: Snapshot) -> Iterator[Finding]:
    for manifest in walk.lists.get(snapshot.snapshot_id, ()):
        if manifest.sequence_number > snapshot.sequence_number:
            yield Finding(
                FindingKind.SEQUENCE_NUMBERS,
                manifest.manifest_path,
                "sequence_number",
                f"{manifest.sequence_number:,}",
                f"{snapshot.sequence_number:,} of snapshot {snapshot.snapshot_id}",
                "deletes of the snapshot do not apply to its files",
                "roll back to an earlier snapshot, and commit again",
            )


def _totals(
    walk: Walk, snapshot: Snapshot, location: str, found: Counter[str]
) -> Iterator[Finding]:
    is_head = snapshot.snapshot_id in walk.heads
    for name in TOTALS:
        text = snapshot.summary.get(f"total-{name}")
        if text is None or _is_right(text, name, found):
            continue
        yield Finding(
            FindingKind.SNAPSHOT_TOTALS,
            location,
            f"total-{name} of snapshot {snapshot.snapshot_id}",
            text,
            str(found[name]),
            "no row depends on it; engines that estimate by totals plan badly",
            REPAIR if is_head else "expire the snapshot",
            is_repairable=is_head,
            severity=Severity.NOTE,
        )


def _changes(
    walk: Walk,
    snapshot: Snapshot,
    location: str,
    status: ManifestEntryStatus,
    names: Mapping[str, str],
    found: Counter[str],
) -> Iterator[Finding]:
    """Compares what a snapshot says that it added or removed with what its manifests say."""
    wrong = {
        name: text
        for name, count in names.items()
        if (text := snapshot.summary.get(name)) is not None and not _is_right(text, count, found)
    }
    if not wrong:
        return
    # Writers need not list what they remove, and some entries have the id of another snapshot.
    compared = _compared(walk, snapshot, status)
    if compared is None and status is ManifestEntryStatus.ADDED and found:
        compared = found
    if compared is None:
        return
    for name, text in wrong.items():
        if _is_right(text, names[name], compared):
            continue
        yield Finding(
            FindingKind.SNAPSHOT_CHANGES,
            location,
            f"{name} of snapshot {snapshot.snapshot_id}",
            text,
            str(compared[names[name]]),
            "no row depends on it; what counts changes by summaries is wrong",
            "none is needed; it goes when the snapshot expires",
            severity=Severity.NOTE,
        )


def _compared(walk: Walk, snapshot: Snapshot, status: ManifestEntryStatus) -> Counter[str] | None:
    """The counts of files that only the snapshot or only its parent has; None if not known."""
    parent = snapshot.parent_snapshot_id
    if parent is not None and not walk.is_whole(parent):
        return None
    own = [m.live() for m in walk.of_snapshot(snapshot.snapshot_id)]
    before = [] if parent is None else [m.live() for m in walk.of_snapshot(parent)]
    some, others = (own, before) if status is ManifestEntryStatus.ADDED else (before, own)
    known = {key for columns in others for key in file_keys(columns)}
    return file_counts(
        columns.filter(np.array([key not in known for key in file_keys(columns)], np.bool_))
        for columns in some
    )


def _is_right(text: str, name: str, found: Counter[str]) -> bool:
    if name == "files-size" and text.isdecimal():
        # Some engines count the file of a deletion vector, others its blob.
        return found[name] <= int(text) <= found[WHOLE_SIZE]
    return text == str(found[name])
