"""Compares snapshots with each other, and their summaries with the files that manifests list."""

from __future__ import annotations

from collections.abc import Iterator

from icebergds.commit.repair_files import live_totals
from icebergds.operations.maintenance.verify.findings import (
    REPAIR,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.operations.maintenance.verify.walk import Walk
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot


def check_snapshots(metadata: TableMetadata, walk: Walk, location: str) -> Iterator[Finding]:
    """What is wrong with sequence numbers, row ids and totals of snapshots.

    Args:
        location: of the metadata file.
    """
    for snapshot in metadata.snapshots:
        yield from _order(metadata, snapshot, location)
        yield from _listed_numbers(walk, snapshot)
        if walk.is_whole(snapshot.snapshot_id):
            yield from _totals(walk, snapshot, location)


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


def _totals(walk: Walk, snapshot: Snapshot, location: str) -> Iterator[Finding]:
    is_head = snapshot.snapshot_id in walk.heads
    found = live_totals(m.live() for m in walk.of_snapshot(snapshot.snapshot_id))
    for name, number in found.items():
        text = snapshot.summary.get(name)
        if text is None or text == number:
            continue
        yield Finding(
            FindingKind.SNAPSHOT_TOTALS,
            location,
            f"{name} of snapshot {snapshot.snapshot_id}",
            text,
            number,
            "no row depends on it; engines that estimate by totals plan badly",
            REPAIR if is_head else "expire the snapshot",
            is_repairable=is_head,
            severity=Severity.NOTE,
        )
