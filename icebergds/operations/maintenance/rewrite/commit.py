"""Commits rewritten groups of data files, and moves deletes that were committed meanwhile.

A position delete that others commit while files are rewritten names rows of the old files. The
tasks that rewrote these rows know where they went, so the deletes are written again for the new
files, and the commit is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.compact_files import (
    AppliedDeletes,
    BranchMovedError,
    CompactFiles,
    NewDeletesError,
)
from icebergds.commit.deletes_by_file import DeleteCollector, Deletes, DeletesByFile
from icebergds.commit.file_selection import FilesGoneError, file_key
from icebergds.commit.options import CommitOptions
from icebergds.commit.snapshot_commit import Committed, commit_snapshot
from icebergds.errors import CommitStateUnknownError, ValidationError
from icebergds.formats.manifests.packed_entries import Int64s, PathIndex, path_hashes
from icebergds.operations.maintenance.rewrite.groups import (
    RewrittenGroup,
    discard_files_of,
    tasks_of,
)
from icebergds.operations.maintenance.rewrite.task import DeletesToMove, MovePlan, move_deletes
from icebergds.operations.runner import Runner
from icebergds.operations.write.cleanup import delete_files
from icebergds.operations.write.table_settings import delete_file_format
from icebergds.reporting import stage
from icebergds.scan.plan.delete_index import AppliedDeletes as FileDeletes
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile, DataFileRef
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import (
    COMMIT_NUM_RETRIES,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_SIZE_BYTES,
)
from icebergds.write.deletes.row_deletes import DeleteSettings

_LOG = logging.getLogger(__name__)
# So often at least: each round of moves takes less time than the rewrite, so others have less time
# to delete.
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class CommittedGroups:
    """The outcome of committing groups.

    Attributes:
        committed: None if no group was left.
        groups: the groups that were committed.
        dropped: the groups whose data files others have removed or changed in a way that cannot be
            followed, or all if the branch was rolled back. Their new files are deleted.
    """

    committed: Committed | None
    groups: Sequence[RewrittenGroup]
    dropped: Sequence[RewrittenGroup]


@dataclass(frozen=True, slots=True)
class RewriteCommit:
    """How groups are committed.

    Attributes:
        table: as it was planned on, for the first attempt.
        snapshot: the snapshot that was read.
        delete_manifests: its delete manifests, read early because the snapshot may expire.
        keeps_sequence_number: whether new files have the sequence number of `snapshot`.
    """

    table: LoadedTable
    runner: Runner
    snapshot: Snapshot
    delete_manifests: frozenset[str]
    options: CommitOptions
    keeps_sequence_number: bool


def commit_groups(commit: RewriteCommit, groups: Sequence[RewrittenGroup]) -> CommittedGroups:
    """Commits groups in one snapshot.

    Raises:
        CommitConflictError, ValidationError: nothing was committed; the new files are deleted.
        CommitStateUnknownError: it is not known whether it was committed; nothing was deleted.
    """
    left = [_Group(group) for group in groups]
    dropped: list[_Group] = []
    applied, newest = _applied(commit, groups), commit.snapshot.snapshot_id
    try:
        rounds = max(_ROUNDS, COMMIT_NUM_RETRIES.of(commit.table.metadata.properties))
        for _ in range(rounds):
            if not left:
                return CommittedGroups(None, [], [group.rewritten for group in dropped])
            try:
                committed = _commit(commit, left, applied, newest)
                return CommittedGroups(
                    committed,
                    [group.rewritten for group in left],
                    [group.rewritten for group in dropped],
                )
            except BranchMovedError as error:
                gone = list(left)
                _LOG.info("%s", error)
            except FilesGoneError as error:
                hashes = path_hashes(error.paths)
                gone = [group for group in left if group.named(error.paths, hashes)]
                if not gone:
                    raise
                _LOG.info("table %s: %s", commit.table.name, error)
            except NewDeletesError as error:
                applied, newest = applied.with_deletes(error.deletes), error.snapshot_id
                gone = _move(commit, left, error.deletes)
            for group in gone:
                group.discard(commit)
            dropped += gone
            left = [group for group in left if group not in gone]
        raise ValidationError(
            f"table {commit.table.name}: rows of the files that were rewritten were deleted again "
            f"and again, {rounds} times; rewrite fewer files at once, with 'where' or the option "
            f"'max-files-to-rewrite', or set {COMMIT_NUM_RETRIES} to more"
        )
    except CommitStateUnknownError:
        raise
    except (Exception, KeyboardInterrupt):
        for group in left:
            group.discard(commit)
        raise


@dataclass(slots=True, eq=False)
class _Group:
    """A group, and the deletes of its rows that were committed meanwhile.

    Attributes:
        deletes: these deletes, of the old data files.
        moved: delete files with the same deletes, for the new data files.
    """

    rewritten: RewrittenGroup
    deletes: DeleteCollector = field(init=False)
    moved: list[DataFile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deletes = DeleteCollector(len(self.rewritten.group.files), _merged)

    def named(self, paths: Collection[str], hashes: Int64s) -> list[str]:
        """Selects the paths, given with their hashes, that belong to old data files."""
        files = self.rewritten.group.files
        found = files.filter(np.isin(files.entries.path_hashes, hashes)).entries.paths.to_pylist()
        return [path for path in found if path in paths]

    def discard(self, commit: RewriteCommit) -> None:
        """Deletes the new files."""
        delete_files(commit.table.io, [*self.rewritten.files, *self.moved])

    def add_deletes(self, found: DeletesByFile) -> bool:
        """Adds deletes of old data files; returns whether there are any of this group."""
        rows = self.rewritten.group.files.entries.index().find_entries(found.files)
        mine = rows >= 0
        self.deletes.add(rows[mine], found.numbers[mine], found.deletes)
        return bool(mine.any())


def _merged(before: Deletes, added: Deletes) -> Deletes:
    # A deletion vector has the rows of the one that it replaced, too.
    return tuple(file for file in added if file.is_deletion_vector) or (*before, *added)


def _applied(commit: RewriteCommit, groups: Iterable[RewrittenGroup]) -> AppliedDeletes:
    return AppliedDeletes(
        commit.delete_manifests,
        frozenset(
            file_key(entry.data_file)
            for group in groups
            for deletes in group.group.files.applied()
            for entry in deletes.position_deletes
        ),
    )


def _commit(
    commit: RewriteCommit, groups: Iterable[_Group], applied: AppliedDeletes, newest: int
) -> Committed:
    """Commits groups that account for the deletes of all snapshots up to the newest one."""
    rewritten = [group.rewritten for group in groups]
    replaced = PackedFiles.concat([group.group.files for group in rewritten])
    action = CompactFiles(
        replaced=replaced.entries,
        added=tuple(file for group in rewritten for file in group.files),
        moved=tuple(file for group in groups for file in group.moved),
        least_rows=sum(_least_rows(group.group.files) for group in rewritten),
        applied=applied,
        snapshot_id=newest,
        sequence_number=commit.snapshot.sequence_number,
        keeps_sequence_number=commit.keeps_sequence_number,
    )
    table = commit.table
    return commit_snapshot(table.operations, action, commit.options, table.operations.refresh())


def _least_rows(files: PackedFiles) -> int:
    """The least number of live rows in files: a guard against tasks that lose some."""
    rows = files.entries.record_count - files.by_deletes(_deleted_rows)
    rows[files.by_deletes(_equality_delete_count) > 0] = 0
    return int(np.maximum(rows, 0).sum())


def _deleted_rows(deletes: FileDeletes) -> int:
    return sum(entry.data_file.record_count for entry in deletes.position_deletes)


def _equality_delete_count(deletes: FileDeletes) -> int:
    return len(deletes.equality_deletes)


def _move(commit: RewriteCommit, groups: Iterable[_Group], deletes: DeletesByFile) -> list[_Group]:
    """Moves deletes to new data files; returns the groups for which that is not possible."""
    touched = [group for group in groups if group.add_deletes(deletes)]
    for group in touched:
        if group.rewritten.keeps_order:
            delete_files(commit.table.io, group.moved)
            group.moved = _moved(commit, group)
    return [group for group in touched if not group.rewritten.keeps_order]


def _moved(commit: RewriteCommit, group: _Group) -> list[DataFile]:
    metadata = commit.table.operations.refresh().metadata
    plan = group.rewritten.plan.renamed()
    move = MovePlan(plan, _settings(metadata, group.rewritten), metadata.specs_by_id)
    index = group.rewritten.group.files.entries.index()
    items = (
        DeletesToMove(files, tuple(map(_counted, written)), deletes)
        for files, written in zip(
            tasks_of(commit.table, group.rewritten.group), group.rewritten.written, strict=True
        )
        if (deletes := _of(files, index, group.deletes))
    )
    with stage("move deletes"):
        found = commit.runner.run(
            partial(move_deletes, move), items, partial(discard_files_of, plan)
        )
    moved = [file for files in found for file in files]
    _LOG.info(
        "table %s: deletes of %d files that are being rewritten were moved to the new files",
        commit.table.name,
        len(group.deletes.rows()),
    )
    return moved


def _of(files: ScanTaskGroup, index: PathIndex, deletes: DeleteCollector) -> dict[str, Deletes]:
    paths = [task.file_path for task in files.tasks]
    rows = index.find(pa.array(paths, pa.string())).tolist()
    return {
        path: found for path, row in zip(paths, rows, strict=True) if (found := deletes.of(row))
    }


def _counted(file: DataFile) -> tuple[DataFileRef, int]:
    return DataFileRef(file.file_path, file.spec_id, file.partition), file.record_count


def _settings(metadata: TableMetadata, group: RewrittenGroup) -> DeleteSettings:
    write = group.plan.write
    return DeleteSettings(
        metadata.format_version,
        DELETE_GRANULARITY.of(metadata.properties),
        delete_file_format(metadata, write.file_format),
        DELETE_TARGET_FILE_SIZE_BYTES.of(metadata.properties),
        write.properties,
    )
