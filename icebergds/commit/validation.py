"""Validates an operation against concurrent commits.

Concurrent commits are the snapshots of the branch from its head back to the snapshot that the
operation read; only manifests that those snapshots wrote are opened.

Each check names the invariant of docs/commit-model.md that fails without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.options import IsolationLevel
from icebergds.commit.selection import ConflictScope, Mask, read_columns
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import (
    DataFile,
    DataFileRef,
    FileContent,
    ManifestContent,
    ManifestEntryStatus,
    partition_of,
)
from icebergds.spec.reserved import DELETE_FILE_PATH
from icebergds.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Isolation:
    """Isolation of an operation from concurrent commits.

    Attributes:
        from_snapshot_id: the branch's head when the operation read the table; None if it had none.
    """

    level: IsolationLevel = IsolationLevel.NONE
    from_snapshot_id: int | None = None


def check_isolation(base: CommitBase, isolation: Isolation, scope: ConflictScope) -> None:
    """Validates that no concurrent commit changed rows of `scope`, which are overwritten.

    Invariant: NoRowResurrected, for an overwrite computed from rows that others changed.

    Raises:
        ValidationError: one did, or the history since then is not known.
    """
    if isolation.level is IsolationLevel.NONE:
        return
    history = history_since(base, isolation.from_snapshot_id)
    if isolation.level is IsolationLevel.SERIALIZABLE:
        _check_added_data(base, history, scope)
    _check_added_deletes(base, history, scope)
    _check_removed_data(base, history, scope)


def check_added_data(base: CommitBase, isolation: Isolation, scope: ConflictScope) -> None:
    """Validates, if isolation is serializable, that no concurrent commit added rows in `scope`.

    Invariant: NoRowResurrected, as the operation would have deleted rows that it did not see.

    Raises:
        ValidationError: one did, or the history since then is not known.
    """
    if isolation.level is IsolationLevel.SERIALIZABLE:
        _check_added_data(base, history_since(base, isolation.from_snapshot_id), scope)


def check_files_exist(
    base: CommitBase,
    from_snapshot_id: int | None,
    files: Sequence[DataFileRef],
    *,
    skip_deletes: bool,
) -> None:
    """Validates that data files whose rows are deleted by position are still there.

    Invariant: NoRowResurrected, as the deletes apply to no row that was moved to another file.

    Args:
        skip_deletes: ignore files removed by `delete` snapshots: their rows are deleted already,
            while other operations may have moved them to new files.

    Raises:
        ValidationError: some were removed, or the history since then is not known.
    """
    paths = pa.array({file.file_path for file in files}, pa.string())
    for snapshot in history_since(base, from_snapshot_id) if len(paths) else ():
        if snapshot.operation == "append" or (skip_deletes and snapshot.operation == "delete"):
            continue
        removed = ManifestEntryStatus.DELETED
        for columns in _changed(base, snapshot, ManifestContent.DATA, removed, frozenset()):
            conflicts = columns.file_path.filter(pc.is_in(columns.file_path, paths))
            if len(conflicts):
                raise ValidationError(
                    f"table {base.name}: snapshot {snapshot.snapshot_id} ({snapshot.operation}) "
                    f"removed data file {conflicts[0].as_py()}, and this operation deletes rows of "
                    "it; read the table again and repeat the operation"
                )


def check_row_ids(base: CommitBase, *, had_ids: bool) -> None:
    """Validates that rows that are moved to new files have no ids which these files lack.

    After an upgrade to version 3, the first commit gives ids to all rows of its branch; a row that
    is moved must keep its id (spec: Row Lineage).

    Args:
        had_ids: whether the snapshot that the rows were read from has row ids.

    Raises:
        ValidationError: the rows have ids by now.
    """
    if not had_ids and base.parent is not None and base.parent.first_row_id is not None:
        raise ValidationError(
            f"table {base.name}: the rows that this operation moves to new files had no ids when "
            "they were read, and got some by the first commit after the upgrade to format version "
            f"{base.metadata.format_version}, which they must keep; read the table again and "
            "repeat the operation"
        )


def check_new_vectors(
    base: CommitBase, from_snapshot_id: int | None, vectors: Sequence[DataFile]
) -> None:
    """Validates that no concurrent commit added a deletion vector for the same data files.

    Invariant: OneVector.

    Raises:
        ValidationError: one did, or the history since then is not known.
    """
    paths = pa.array({vector.referenced_data_file for vector in vectors}, pa.string())
    for snapshot in history_since(base, from_snapshot_id) if len(paths) else ():
        if snapshot.operation == "append":
            continue
        added = ManifestEntryStatus.ADDED
        for columns in _changed(base, snapshot, ManifestContent.DELETES, added, frozenset()):
            is_same_file = pc.is_in(columns.referenced_data_file, paths)
            is_vector = pa.array(columns.is_vector)
            conflicts = columns.referenced_data_file.filter(pc.and_(is_same_file, is_vector))
            if len(conflicts):
                raise ValidationError(
                    f"table {base.name}: snapshot {snapshot.snapshot_id} also deleted rows of "
                    f"{conflicts[0].as_py()}, and a data file can have only one deletion vector; "
                    "read the table again and repeat the operation"
                )


def check_new_deletes(
    base: CommitBase,
    from_snapshot_id: int | None,
    replaced: Sequence[DataFile | DataFileRef],
    *,
    ignore_equality: bool,
) -> None:
    """Validates that no concurrent commit deleted rows of the data files being replaced.

    Invariant: NoRowResurrected, as the replacing files have these rows.

    Args:
        ignore_equality: ignore equality deletes: the replacing files keep the sequence number, so
            newer equality deletes still apply to them.

    Raises:
        ValidationError: one did, or the history since then is not known.
    """
    paths = frozenset(file.file_path for file in replaced)
    partitions = frozenset(map(partition_of, replaced))
    global_specs = {spec.spec_id for spec in base.metadata.partition_specs if spec.is_unpartitioned}

    def applies(file: DataFile) -> bool:
        if file.content is FileContent.EQUALITY_DELETES:
            in_scope = file.spec_id in global_specs or partition_of(file) in partitions
            return in_scope and not ignore_equality
        path = only_data_path(file)
        return path in paths if path is not None else partition_of(file) in partitions

    for snapshot in history_since(base, from_snapshot_id):
        if snapshot.operation in ("append", "replace") or not paths:
            continue
        added = ManifestEntryStatus.ADDED
        for columns in _changed(base, snapshot, ManifestContent.DELETES, added, _PATH_IDS):
            for entry in columns.entries():
                if applies(entry.data_file):
                    raise ValidationError(
                        f"table {base.name}: snapshot {snapshot.snapshot_id} deleted rows of files "
                        f"that this operation replaces ({entry.data_file.file_path}); read the "
                        "table again and repeat the operation"
                    )


def history_since(base: CommitBase, from_snapshot_id: int | None) -> list[Snapshot]:
    """The branch's snapshots after `from_snapshot_id`, newest first; all of them if it is None.

    Invariant: NoRowLost, as a rollback may have undone deletes that the operation has seen.

    Raises:
        ValidationError: some have expired, or the snapshot is not in the branch's history.
    """
    history: list[Snapshot] = []
    next_id = None if base.parent is None else base.parent.snapshot_id
    while next_id is not None and next_id != from_snapshot_id:
        snapshot = base.metadata.snapshot_by_id(next_id)
        if snapshot is None:
            raise ValidationError(
                f"table {base.name}: commits to branch {base.branch!r} since snapshot "
                f"{from_snapshot_id} cannot be validated: snapshot {next_id} has expired; read the "
                "table again and repeat the operation"
            )
        history.append(snapshot)
        next_id = snapshot.parent_snapshot_id
    if next_id != from_snapshot_id:
        raise ValidationError(
            f"table {base.name}: snapshot {from_snapshot_id} is not in the history of branch "
            f"{base.branch!r}, so what was committed since cannot be checked; read the branch "
            "again and repeat the operation"
        )
    return history


_PATH_IDS = frozenset({DELETE_FILE_PATH.field_id})


def _check_added_data(base: CommitBase, history: list[Snapshot], scope: ConflictScope) -> None:
    _check(
        base,
        (s for s in history if s.operation not in ("replace", "delete")),
        scope,
        ManifestContent.DATA,
        ManifestEntryStatus.ADDED,
        "added rows",
    )


def _check_added_deletes(base: CommitBase, history: list[Snapshot], scope: ConflictScope) -> None:
    _check(
        base,
        (s for s in history if s.operation not in ("append", "replace")),
        scope,
        ManifestContent.DELETES,
        ManifestEntryStatus.ADDED,
        "deleted rows",
    )


def _check_removed_data(base: CommitBase, history: list[Snapshot], scope: ConflictScope) -> None:
    _check(
        base,
        (s for s in history if s.operation != "append"),
        scope,
        ManifestContent.DATA,
        ManifestEntryStatus.DELETED,
        "removed files",
    )


def _check(
    base: CommitBase,
    history: Iterable[Snapshot],
    scope: ConflictScope,
    content: ManifestContent,
    status: ManifestEntryStatus,
    what: str,
) -> None:
    for snapshot in history:
        for columns in _changed(base, snapshot, content, status, scope.stats_ids, scope):
            conflicts = columns.filter(scope.overlap(columns)) if len(columns) else columns
            if len(conflicts):
                raise ValidationError(
                    f"table {base.name}: snapshot {snapshot.snapshot_id} "
                    f"({snapshot.operation}) {what} that may match what this operation read or "
                    f"overwrites (file {conflicts.file_path[0].as_py()}); read the table again and "
                    "repeat the operation"
                )


def _changed(
    base: CommitBase,
    snapshot: Snapshot,
    content: ManifestContent,
    status: ManifestEntryStatus,
    stats_ids: frozenset[int],
    scope: ConflictScope | None = None,
) -> Iterator[EntryColumns]:
    """The files that a snapshot itself added or deleted, from the manifests that it wrote."""
    is_removal = status is ManifestEntryStatus.DELETED
    for manifest in read_snapshot_manifests(base.io, snapshot):
        if manifest.content is not content or manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        # Some writers omit removed files from partition summaries and keep their old snapshot ids.
        if scope is None or is_removal or scope.may_select(manifest):
            columns = read_columns(base, manifest, stats_ids, live_only=False)
            columns = columns.filter(_with_status(columns, status))
            yield (
                columns
                if is_removal
                else columns.filter(columns.snapshot_id == snapshot.snapshot_id)
            )


def _with_status(columns: EntryColumns, status: ManifestEntryStatus) -> Mask:
    mask: Mask = columns.status == status.value
    return mask
