"""Finds the branches, tags and snapshots that keep data files which a branch no longer needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.operations import TableState
from icebergds.commit.retention import ExpiryRequest, choose_expired
from icebergds.display import counted
from icebergds.operations.maintenance.rewrite.plan import delete_count
from icebergds.scan.plan.packed_files import PackedFiles, plan_packed_files
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import RefType, Snapshot


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Data files of a snapshot that a branch does not have, or has with deletes.

    They may hold rows that were deleted from the branch, and rows that were only rewritten.

    Attributes:
        snapshot_id: the snapshot.
        refs: the branches and tags that refer to it, such as `tag 'v1'`; empty if it is older than
            the head of a branch that keeps it.
        data_files: how many there are.
        rows: how many rows these have.
        advice: what to do so that they can be deleted.
    """

    snapshot_id: int
    refs: tuple[str, ...]
    data_files: int
    rows: int
    advice: str

    def __str__(self) -> str:
        files, rows = counted(self.data_files, "data file"), counted(self.rows, "row")
        what = " and ".join(self.refs)
        shown = f"{what} (snapshot {self.snapshot_id})" if what else f"snapshot {self.snapshot_id}"
        verb = "keep" if len(self.refs) > 1 else "keeps"
        return f"{shown} {verb} {files} ({rows}) that may hold deleted rows"


def kept_files(state: TableState, branch: str, expiry: ExpiryRequest) -> tuple[KeptFiles, ...]:
    """The snapshots that do not expire and keep such files, in the order of the metadata.

    Memory and time are those of planning a scan of each of these snapshots.

    Args:
        expiry: which snapshots expire, or have expired.

    Raises:
        MissingFileError, CorruptFileError: a manifest list or manifest is missing or damaged.
    """
    metadata = state.metadata
    expired = set(choose_expired(expiry, metadata, state.name).snapshot_ids)
    head = metadata.snapshot_by_ref(branch)
    needed = _without_deletes(_files(state, head)) if head is not None else []
    found = []
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id in expired or snapshot == head:
            continue
        files = _files(state, snapshot)
        known = pc.is_in(files.entries.paths, pa.array(needed, pa.large_string()))
        others = files.filter(pc.invert(known).to_numpy(zero_copy_only=False))
        if others:
            found.append(_kept(metadata, snapshot, branch, others))
    return tuple(found)


def _files(state: TableState, snapshot: Snapshot) -> PackedFiles:
    metadata = state.metadata
    return plan_packed_files(state.io, metadata, snapshot, metadata.schema())


def _without_deletes(files: PackedFiles) -> Iterable[str]:
    paths: list[str] = files.filter(files.by_deletes(delete_count) == 0).entries.paths.to_pylist()
    return paths


def _kept(
    metadata: TableMetadata, snapshot: Snapshot, branch: str, files: PackedFiles
) -> KeptFiles:
    refs = {n: r for n, r in metadata.refs.items() if r.snapshot_id == snapshot.snapshot_id}
    names = tuple(f"{ref.ref_type} {name!r}" for name, ref in refs.items())
    todo = []
    for name, ref in refs.items():
        if ref.ref_type is RefType.TAG:
            todo.append(f"table.manage_snapshots().remove_tag({name!r}).commit()")
        else:
            todo.append(
                f"delete the rows of branch {name!r}, and run "
                f"table.maintain(branch={name!r}, purge_deleted=True)"
            )
    if todo:
        advice = "; ".join(todo) + f"; then purge branch {branch!r} again"
    else:
        advice = (
            "a branch keeps it by a min-snapshots-to-keep or max-snapshot-age-ms of its own: "
            f"table.expire_snapshots(snapshot_ids=[{snapshot.snapshot_id}])"
        )
    rows = int(files.entries.record_count.clip(min=0).sum())
    return KeptFiles(snapshot.snapshot_id, names, len(files), rows, advice)
