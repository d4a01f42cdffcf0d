"""Resolves time travel to a snapshot and the schema to read it with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from icebergds.display import time_text
from icebergds.errors import NoSuchSnapshotError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, Snapshot
from icebergds.suggestions import did_you_mean

_SNAPSHOT_ID = re.compile(r"-?\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """Which snapshot to read; at most one attribute is set, none means the current one.

    Attributes:
        snapshot_id: a snapshot.
        as_of_ms: the snapshot that was current at this time, milliseconds since 1970-01-01 UTC.
        branch: the head of a branch.
        tag: the snapshot of a tag.
        version: a snapshot id, or the name of a branch or tag (Spark's `versionAsOf`); a number
            is always an id, so that its meaning does not change when a snapshot expires.
    """

    snapshot_id: int | None = None
    as_of_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    version: str | None = None


def resolve_snapshot(
    metadata: TableMetadata, travel: TimeTravel, name: str
) -> tuple[Snapshot | None, Schema]:
    """The snapshot to read (None if the table has none yet) and the schema to read it with.

    A snapshot, a time or a tag is read with the snapshot's schema; the head of a branch with the
    table's current schema, which the next write to it will use.

    Raises:
        NoSuchSnapshotError: the table `name` has no such snapshot, branch or tag.
    """
    if travel.version is not None:
        travel = _from_version(metadata, travel.version, name)
    if travel.snapshot_id is not None:
        return _with_its_schema(metadata, _by_id(metadata, travel.snapshot_id, name))
    if travel.as_of_ms is not None:
        snapshot = metadata.snapshot_as_of(travel.as_of_ms)
        if snapshot is None:
            raise NoSuchSnapshotError(
                f"table {name}: no snapshot was current at {time_text(travel.as_of_ms)}; "
                f"{_history(metadata)}{_first_moment(metadata)}"
            )
        return _with_its_schema(metadata, snapshot)
    if travel.tag is not None:
        return _with_its_schema(metadata, _by_ref(metadata, travel.tag, RefType.TAG, name))
    if travel.branch is not None:
        if travel.branch == "main" and metadata.current_snapshot() is None:
            return None, metadata.schema()
        return _by_ref(metadata, travel.branch, RefType.BRANCH, name), metadata.schema()
    return metadata.current_snapshot(), metadata.schema()


def _from_version(metadata: TableMetadata, version: str, name: str) -> TimeTravel:
    if _SNAPSHOT_ID.fullmatch(version):
        return TimeTravel(snapshot_id=int(version))
    ref = metadata.refs.get(version)
    if ref is not None:
        is_tag = ref.ref_type is RefType.TAG
        return TimeTravel(tag=version) if is_tag else TimeTravel(branch=version)
    if version == "main":
        return TimeTravel(branch=version)
    hint = did_you_mean(version, metadata.refs) or f"it has {_listed(metadata.refs)}"
    raise NoSuchSnapshotError(f"table {name}: no branch or tag {version!r}; {hint}")


def _with_its_schema(metadata: TableMetadata, snapshot: Snapshot) -> tuple[Snapshot, Schema]:
    if snapshot.schema_id is None:
        return snapshot, metadata.schema()
    return snapshot, metadata.schema_by_id(snapshot.schema_id)


def _by_id(metadata: TableMetadata, snapshot_id: int, name: str) -> Snapshot:
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise NoSuchSnapshotError(
            f"table {name}: snapshot {snapshot_id} does not exist; {_history(metadata)}"
        )
    return snapshot


def _by_ref(metadata: TableMetadata, ref_name: str, kind: RefType, name: str) -> Snapshot:
    ref = metadata.refs.get(ref_name)
    if ref is None or ref.ref_type is not kind:
        others = [n for n, r in metadata.refs.items() if r.ref_type is kind]
        if ref is not None:
            hint = f"{ref_name} is a {ref.ref_type.value}"
        else:
            hint = did_you_mean(ref_name, others) or f"it has {_listed(others)}"
        raise NoSuchSnapshotError(f"table {name}: no {kind.value} {ref_name!r}; {hint}")
    return _by_id(metadata, ref.snapshot_id, name)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _first_moment(metadata: TableMetadata) -> str:
    log = metadata.snapshot_log
    return f"; the first was committed at {time_text(log[0].timestamp_ms)}" if log else ""


def _history(metadata: TableMetadata) -> str:
    snapshots = metadata.snapshots
    if not snapshots:
        return "the table has no snapshots"
    newest = max(snapshots, key=lambda snapshot: snapshot.timestamp_ms)
    return f"the table has {len(snapshots)}, newest {newest.snapshot_id}"
