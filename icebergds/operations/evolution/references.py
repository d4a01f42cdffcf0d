"""Creates, moves and removes branches and tags (spec: Snapshot References)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.display import time_text
from icebergds.errors import (
    AlreadyExistsError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchSnapshotError,
)
from icebergds.operations.evolution.commit import commit_update
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.requirements import AssertRefSnapshotId
from icebergds.spec.updates.table_updates import RemoveSnapshotRef, SetSnapshotRef, TableUpdate
from icebergds.spec.values.dates import now_ms
from icebergds.suggestions import did_you_mean

OF_REFERENCES = (
    AlreadyExistsError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchSnapshotError,
)
"""Errors of edits."""

RefEdit: TypeAlias = Callable[[TableMetadata], Sequence[SetSnapshotRef | RemoveSnapshotRef]]


def update_references(table: LoadedTable, edits: Sequence[RefEdit]) -> TableState:
    """Changes branches and tags in one commit; repeats the edits after a conflict.

    Raises:
        NoSuchSnapshotError: a branch, tag or snapshot does not exist.
        AlreadyExistsError: a branch or tag that would be created exists.
        InvalidOptionError, ValidationError: a change is not possible.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the references were changed is not known.
    """
    wanted: list[dict[str, SnapshotRef | None]] = []

    def produce(state: TableState) -> Change:
        metadata, updates = state.metadata, list[TableUpdate]()
        touched: dict[str, SnapshotRef | None] = {}
        for edit in edits:
            made = edit(metadata)
            touched.update({update.name: None for update in made})
            updates += made
            metadata = apply_updates(metadata, made, now_ms=now_ms())
        touched = {name: metadata.refs.get(name) for name in touched}
        wanted.append(touched)
        before = {name: state.metadata.refs.get(name) for name in touched}
        if before == touched:
            return Change([], [])
        requirements = [
            AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)
            for name, ref in before.items()
        ]
        return Change(requirements, updates)

    def is_updated(state: TableState) -> bool:
        refs = state.metadata.refs
        return bool(wanted) and all(refs.get(name) == ref for name, ref in wanted[-1].items())

    return commit_update(table, produce, is_updated)


def create_reference(metadata: TableMetadata, name: str, ref: SnapshotRef) -> list[SetSnapshotRef]:
    """Creates a branch or tag.

    Raises:
        AlreadyExistsError: there is one of this name.
        NoSuchSnapshotError: the table does not have the snapshot.
    """
    known = metadata.refs.get(name)
    if known is not None:
        raise AlreadyExistsError(
            f"{known.ref_type} {name!r} exists already, at snapshot {known.snapshot_id}; to move "
            f"it, use replace_{known.ref_type}, in SQL CREATE OR REPLACE {known.ref_type.upper()}"
        )
    check_snapshot(metadata, ref.snapshot_id)
    return [SetSnapshotRef(name, ref)]


def move_reference(
    metadata: TableMetadata, name: str, ref_type: RefType, snapshot_id: int
) -> list[SetSnapshotRef]:
    """Moves a branch or tag to any snapshot; it keeps its retention.

    Raises:
        NoSuchSnapshotError: there is no such reference or snapshot.
        InvalidOptionError: it is a reference of the other type.
    """
    known = reference(metadata, name, ref_type)
    check_snapshot(metadata, snapshot_id)
    return [SetSnapshotRef(name, replace(known, snapshot_id=snapshot_id))]


def remove_reference(
    metadata: TableMetadata, name: str, ref_type: RefType
) -> list[RemoveSnapshotRef]:
    """Removes a branch other than main, or a tag; its snapshots stay until they expire.

    Raises:
        NoSuchSnapshotError: there is no such reference.
        InvalidOptionError: it is main, or a reference of the other type.
    """
    reference(metadata, name, ref_type)
    _check_not_main(name, "removed")
    return [RemoveSnapshotRef(name)]


def rename_branch(
    metadata: TableMetadata, name: str, new_name: str
) -> list[SetSnapshotRef | RemoveSnapshotRef]:
    """Renames a branch other than main.

    Raises:
        NoSuchSnapshotError: there is no such branch.
        InvalidOptionError: it is main, or a tag.
        AlreadyExistsError: there is a reference of the new name.
    """
    ref = reference(metadata, name, RefType.BRANCH)
    _check_not_main(name, "renamed")
    return [*create_reference(metadata, new_name, ref), RemoveSnapshotRef(name)]


def fast_forward(metadata: TableMetadata, name: str, to: str) -> list[SetSnapshotRef]:
    """Moves a branch to the snapshot of another reference, which must descend from its own.

    A branch that does not exist is created, as in Java Iceberg.

    Raises:
        NoSuchSnapshotError: there is no reference `to`.
        InvalidOptionError: `name` is a tag, or its snapshot is not an ancestor of the other one.
    """
    target = reference(metadata, to, None)
    if name not in metadata.refs:
        return [SetSnapshotRef(name, SnapshotRef(target.snapshot_id, RefType.BRANCH))]
    known = reference(metadata, name, RefType.BRANCH)
    if not is_ancestor(metadata, known.snapshot_id, target.snapshot_id):
        raise InvalidOptionError(
            f"branch {name!r} cannot be fast-forwarded to {to!r}: its snapshot "
            f"{known.snapshot_id} is no ancestor of {target.snapshot_id}; replace_branch moves it "
            "to any snapshot, and cherry_pick applies a single one"
        )
    return [SetSnapshotRef(name, replace(known, snapshot_id=target.snapshot_id))]


def set_current_snapshot(metadata: TableMetadata, snapshot_id: int) -> list[SetSnapshotRef]:
    """Makes any snapshot the current one of main.

    Raises:
        NoSuchSnapshotError: the table does not have it.
    """
    check_snapshot(metadata, snapshot_id)
    known = metadata.refs.get(MAIN_BRANCH, SnapshotRef(snapshot_id, RefType.BRANCH))
    return [SetSnapshotRef(MAIN_BRANCH, replace(known, snapshot_id=snapshot_id))]


def roll_back(metadata: TableMetadata, snapshot_id: int) -> list[SetSnapshotRef]:
    """Makes an ancestor of the current snapshot the current one.

    Raises:
        NoSuchSnapshotError: the table does not have it.
        InvalidOptionError: it is not an ancestor of the current snapshot.
    """
    check_snapshot(metadata, snapshot_id)
    current = metadata.current_snapshot_id
    if current is None or not is_ancestor(metadata, snapshot_id, current):
        raise InvalidOptionError(
            f"the table cannot be rolled back to snapshot {snapshot_id}, which is no ancestor of "
            f"the current snapshot, {current}; set_current_snapshot makes any snapshot current"
        )
    return set_current_snapshot(metadata, snapshot_id)


def roll_back_to_time(metadata: TableMetadata, timestamp_ms: int) -> list[SetSnapshotRef]:
    """Makes the newest ancestor from before a time the current snapshot.

    Args:
        timestamp_ms: milliseconds since 1970-01-01 UTC.

    Raises:
        NoSuchSnapshotError: no ancestor of the current snapshot is older.
    """
    known = metadata.lineage(metadata.current_snapshot())
    for snapshot in known:
        if snapshot.timestamp_ms < timestamp_ms:
            return set_current_snapshot(metadata, snapshot.snapshot_id)
    oldest = f", the oldest is of {time_text(known[-1].timestamp_ms)}" if known else ""
    raise NoSuchSnapshotError(
        f"the table cannot be rolled back to {time_text(timestamp_ms)}: the current snapshot has "
        f"no ancestor that is older{oldest}"
    )


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of_id: int) -> bool:
    """Whether a snapshot is another one, or among its ancestors that the table still has."""
    lineage = metadata.lineage(metadata.snapshot_by_id(of_id))
    return any(snapshot.snapshot_id == snapshot_id for snapshot in lineage)


def check_snapshot(metadata: TableMetadata, snapshot_id: int) -> None:
    """Raises NoSuchSnapshotError if the table does not have a snapshot."""
    if snapshot_id not in metadata.snapshots_by_id:
        raise NoSuchSnapshotError(
            f"there is no snapshot {snapshot_id}; the table has {len(metadata.snapshots)}, which "
            "snapshots() and the metadata table snapshots list"
        )


def reference(metadata: TableMetadata, name: str, ref_type: RefType | None) -> SnapshotRef:
    """A branch or tag of this name; of either type for None.

    Raises:
        NoSuchSnapshotError: there is none.
        InvalidOptionError: it is of the other type.
    """
    known = metadata.refs.get(name)
    kind = "branch or tag" if ref_type is None else str(ref_type)
    if known is None:
        hint = (
            did_you_mean(name, metadata.refs) or f"there are {', '.join(metadata.refs) or 'none'}"
        )
        raise NoSuchSnapshotError(f"there is no {kind} {name!r}; {hint}")
    if ref_type is not None and known.ref_type is not ref_type:
        raise InvalidOptionError(f"{name!r} is a {known.ref_type}, not a {ref_type}")
    return known


def _check_not_main(name: str, what: str) -> None:
    if name == MAIN_BRANCH:
        raise InvalidOptionError(f"branch {MAIN_BRANCH!r} cannot be {what}: each table has it")
