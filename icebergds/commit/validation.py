"""Whether the commits of others since an operation read the table go together with it.

The history is that of the branch, from its head back to the snapshot that was read; only manifests
that those snapshots wrote are opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.options import IsolationLevel
from icebergds.commit.partition_keys import partition_of
from icebergds.commit.selection import ConflictScope, Mask, read_columns
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import (
    DataFile,
    DataFileRef,
    FileContent,
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
)
from icebergds.spec.reserved import DELETE_FILE_PATH
from icebergds.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Isolation:
    """Which concurrent commits an overwrite refuses.

    Attributes:
        from_snapshot_id: the branch's head when the operation read the table; None: it had none.
    """

    level: IsolationLevel = IsolationLevel.NONE
    from_snapshot_id: int | None = None


def check_isolation(base: CommitBase, isolation: Isolation, scope: ConflictScope) -> None:
    """Refuses an overwrite of `scope` where others changed what it had read of it.

    Raises:
        ValidationError: they did, or the history since then is not known.
    """
    if isolation.level is IsolationLevel.NONE:
        return
    history = history_since(base, isolation.from_snapshot_id)
    if isolation.level is IsolationLevel.SERIALIZABLE:
        _check_added_data(base, history, scope)
    _check_added_deletes(base, history, scope)
    _check_removed_data(base, history, scope)


def check_added_data(base: CommitBase, isolation: Isolation, scope: ConflictScope) -> None:
    """Refuses a serializable operation on rows of `scope` where others added some.

    Raises:
        ValidationError: they did, or the history since then is not known.
    """
    if isolation.level is IsolationLevel.SERIALIZABLE:
        _check_added_data(base, history_since(base, isolation.from_snapshot_id), scope)


def check_files_exist(
    base: CommitBase, from_snapshot_id: int | None, files: Sequence[DataFileRef], *, moved: bool
) -> None:
    """Refuses deletes of rows in data files that others removed since they were read.

    Args:
        moved: only files matter whose rows may live on elsewhere: snapshots that did nothing but
            delete rows are left out.

    Raises:
        ValidationError: some were removed, or the history since then is not known.
    """
    paths = pa.array({file.file_path for file in files}, pa.string())
    for snapshot in history_since(base, from_snapshot_id) if len(paths) else ():
        if snapshot.operation == "append" or (moved and snapshot.operation == "delete"):
            continue
        removed = ManifestEntryStatus.DELETED
        for columns in _changed(base, snapshot, ManifestContent.DATA, removed, frozenset()):
            gone = columns.file_path.filter(pc.is_in(columns.file_path, paths))
            if len(gone):
                raise ValidationError(
                    f"table {base.name}: snapshot {snapshot.snapshot_id} ({snapshot.operation}) "
                    f"removed {gone[0].as_py()}, of which this operation deletes rows; read the "
                    "table again and repeat the operation"
                )


def check_new_vectors(
    base: CommitBase, from_snapshot_id: int | None, vectors: Sequence[DataFile]
) -> None:
    """Refuses deletion vectors of data files that others gave one since they were read.

    Raises:
        ValidationError: they did, or the history since then is not known.
    """
    paths = pa.array({vector.referenced_data_file for vector in vectors}, pa.string())
    for snapshot in history_since(base, from_snapshot_id) if len(paths) else ():
        if snapshot.operation == "append":
            continue
        added = ManifestEntryStatus.ADDED
        for columns in _changed(base, snapshot, ManifestContent.DELETES, added, frozenset()):
            is_ours = pc.is_in(columns.referenced_data_file, paths)
            is_vector = pc.equal(columns.file_format, FileFormat.PUFFIN.value)
            met = columns.referenced_data_file.filter(pc.and_(is_ours, is_vector))
            if len(met):
                raise ValidationError(
                    f"table {base.name}: snapshot {snapshot.snapshot_id} deleted rows of "
                    f"{met[0].as_py()} too, and a data file has one deletion vector; read the "
                    "table again and repeat the operation"
                )


def check_new_deletes(
    base: CommitBase,
    from_snapshot_id: int | None,
    replaced: Sequence[DataFile | DataFileRef],
    *,
    ignore_equality: bool,
) -> None:
    """Refuses to replace rows of data files whose rows others deleted since they were read.

    Args:
        ignore_equality: the rows keep their sequence number, so that newer equality deletes still
            apply to them.

    Raises:
        ValidationError: there are such deletes, or the history since then is not known.
    """
    paths = frozenset(file.file_path for file in replaced)
    partitions = frozenset(map(partition_of, replaced))
    global_specs = {spec.spec_id for spec in base.metadata.partition_specs if spec.is_unpartitioned}

    def applies(file: DataFile) -> bool:
        if file.content is FileContent.EQUALITY_DELETES:
            reached = file.spec_id in global_specs or partition_of(file) in partitions
            return reached and not ignore_equality
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
    """The snapshots of the branch after one of them, newest first; all of them after None.

    Raises:
        ValidationError: some have expired, or the snapshot was never of this branch.
    """
    history: list[Snapshot] = []
    next_id = None if base.parent is None else base.parent.snapshot_id
    while next_id is not None and next_id != from_snapshot_id:
        snapshot = base.metadata.snapshot_by_id(next_id)
        if snapshot is None:
            raise ValidationError(
                f"table {base.name}: what was committed to {base.branch!r} since snapshot "
                f"{from_snapshot_id} cannot be checked: snapshot {next_id} has expired; read the "
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
            met = columns.filter(scope.overlap(columns)) if len(columns) else columns
            if len(met):
                raise ValidationError(
                    f"table {base.name}: snapshot {snapshot.snapshot_id} "
                    f"({snapshot.operation}) {what} where this operation overwrites "
                    f"({met.file_path[0].as_py()}); read the table again and repeat the operation"
                )


def _changed(
    base: CommitBase,
    snapshot: Snapshot,
    content: ManifestContent,
    status: ManifestEntryStatus,
    stats_ids: frozenset[int],
    scope: ConflictScope | None = None,
) -> Iterator[EntryColumns]:
    """The files that a snapshot added or deleted itself, from the manifests that it wrote."""
    is_removal = status is ManifestEntryStatus.DELETED
    for manifest in read_snapshot_manifests(base.io, snapshot):
        if manifest.content is not content or manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        # Some writers leave removed files out of the partition summaries, and their snapshot ids as
        # they were.
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
