"""Chooses the snapshots, branches and tags that expire (spec: Snapshot Retention Policy)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from icebergds.errors import NoSuchSnapshotError, ValidationError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from icebergds.spec.table_properties import (
    MAX_REF_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MIN_SNAPSHOTS_TO_KEEP,
)


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """What a user asks to expire. Times are milliseconds since the epoch.

    Attributes:
        now_ms: the time at which ages are measured.
        older_than_ms: snapshots before this time may expire; None: by the table's properties.
        retain_last: how many snapshots of each branch are kept in any case; None: by the table's
            properties. A branch's own retention comes before this and the time.
        snapshot_ids: snapshots that expire in any case.
    """

    now_ms: int
    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Expiry:
    """The snapshots that expire, in the order of the metadata, and the names of expired refs."""

    snapshot_ids: tuple[int, ...]
    refs: tuple[str, ...]


def check_known(request: ExpiryRequest, metadata: TableMetadata, table: str) -> None:
    """Raises NoSuchSnapshotError if a snapshot that is to expire by its id does not exist."""
    unknown = sorted(request.snapshot_ids - metadata.snapshots_by_id.keys())
    if unknown:
        raise NoSuchSnapshotError(
            f"table {table}: snapshot {unknown[0]} cannot be expired: the table does not have it "
            f"(it has {len(metadata.snapshots)} snapshots); list them with table.snapshots()"
        )


def choose_expired(request: ExpiryRequest, metadata: TableMetadata, table: str) -> Expiry:
    """Chooses what expires.

    Args:
        table: the table's name in messages.

    Raises:
        ValidationError: a snapshot that is to expire by its id is the head of a branch, or tagged.
        InvalidOptionError: a property `history.expire.*` is malformed.
    """
    properties = metadata.properties
    max_age = MAX_SNAPSHOT_AGE_MS.of(properties)
    cutoff = request.now_ms - max_age if request.older_than_ms is None else request.older_than_ms
    count = MIN_SNAPSHOTS_TO_KEEP.of(properties)
    refs = _kept_refs(metadata, request.now_ms)
    _refuse_heads(request.snapshot_ids, refs, table)
    kept = {ref.snapshot_id for ref in refs.values()}
    for ref in refs.values():
        if ref.ref_type is RefType.BRANCH:
            kept |= _kept_ancestors(
                metadata,
                ref,
                count if request.retain_last is None else request.retain_last,
                cutoff,
                request.now_ms,
            )
    on_branches = _histories(metadata, refs.values())
    # Snapshots that were staged or rolled back.
    kept |= {
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id not in on_branches and snapshot.timestamp_ms >= cutoff
    }
    kept -= request.snapshot_ids
    return Expiry(
        tuple(s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in kept),
        tuple(name for name in metadata.refs if name not in refs),
    )


def _kept_refs(metadata: TableMetadata, now_ms: int) -> dict[str, SnapshotRef]:
    """The refs that are not older than their maximum age; always the main branch."""
    default = MAX_REF_AGE_MS.of(metadata.properties)

    def is_kept(name: str, ref: SnapshotRef) -> bool:
        max_age = default if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        age = now_ms - metadata.snapshots_by_id[ref.snapshot_id].timestamp_ms
        return name == MAIN_BRANCH or age <= max_age

    return {name: ref for name, ref in metadata.refs.items() if is_kept(name, ref)}


def _refuse_heads(snapshot_ids: Iterable[int], refs: Mapping[str, SnapshotRef], table: str) -> None:
    for snapshot_id in sorted(snapshot_ids):
        names = [f"{r.ref_type} {n!r}" for n, r in refs.items() if r.snapshot_id == snapshot_id]
        if names:
            raise ValidationError(
                f"table {table}: snapshot {snapshot_id} cannot be expired: {', '.join(names)} "
                f"refer{'s' if len(names) == 1 else ''} to it; remove or move what refers to it "
                "first"
            )


def _kept_ancestors(
    metadata: TableMetadata, branch: SnapshotRef, count: int, cutoff: int, now_ms: int
) -> set[int]:
    """The newest snapshots of a branch, until one is neither among the first nor young enough."""
    if branch.max_snapshot_age_ms is not None:
        cutoff = now_ms - branch.max_snapshot_age_ms
    if branch.min_snapshots_to_keep is not None:
        count = branch.min_snapshots_to_keep
    kept: set[int] = set()
    for snapshot in metadata.lineage(metadata.snapshots_by_id[branch.snapshot_id]):
        if len(kept) >= count and snapshot.timestamp_ms < cutoff:
            break
        kept.add(snapshot.snapshot_id)
    return kept


def _histories(metadata: TableMetadata, refs: Iterable[SnapshotRef]) -> set[int]:
    """The snapshots of branches with all of their ancestors."""
    found: set[int] = set()
    for ref in refs:
        at = None if ref.ref_type is RefType.TAG else metadata.snapshot_by_id(ref.snapshot_id)
        while at is not None and at.snapshot_id not in found:
            found.add(at.snapshot_id)
            parent_id = at.parent_snapshot_id
            at = None if parent_id is None else metadata.snapshot_by_id(parent_id)
    return found
