"""Compares the reads that the rows of an overwrite come from with the current table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class ReadMark:
    """A read that rows come from.

    Attributes:
        snapshot_id: the head of the branch when it was read; None if it had none.
    """

    table_uuid: str
    snapshot_id: int | None
    branch: str


def oldest_read(marks: Sequence[ReadMark], metadata: TableMetadata, branch: str) -> ReadMark | None:
    """The read of this branch that is furthest from its head; None if no mark is of the branch.

    A branch that does not exist yet will begin at the head of main.
    """
    if metadata.snapshot_by_ref(branch) is None:
        branch = MAIN_BRANCH
    of_branch = {
        mark.snapshot_id: mark
        for mark in marks
        if (mark.table_uuid, mark.branch) == (metadata.table_uuid, branch)
    }
    snapshot = metadata.head_of(branch)
    while snapshot is not None and len(of_branch) > 1:
        of_branch.pop(snapshot.snapshot_id, None)
        parent_id = snapshot.parent_snapshot_id
        snapshot = None if parent_id is None else metadata.snapshot_by_id(parent_id)
    return next(iter(of_branch.values()), None)
