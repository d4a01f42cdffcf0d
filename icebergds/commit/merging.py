"""Produces a snapshot's manifests: adds and removes files, then merges manifests (spec: Manifests).

Manifests that cannot contain a removed file are not opened, and only those that do contain one are
rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.column_manifests import write_columns
from icebergds.commit.merge_manifests import merge_manifests
from icebergds.commit.new_manifests import UNASSIGNED, NewFiles, new_manifests
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.removed_files import RemovedColumns, RemovedFiles, index_of
from icebergds.commit.selection import Mask, Selection, read_columns
from icebergds.commit.summary import changes_summary
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidDataError
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.packed_entries import PathIndex
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)

# Size of the manifests whose entries are decoded, changed and encoded at a time.
_BYTES_AT_A_TIME = 8 << 20
_RemovedFiles: TypeAlias = Callable[[EntryColumns, Mask], RemovedFiles]


@dataclass(frozen=True, slots=True)
class MergedManifests:
    """The manifests of a new snapshot.

    Attributes:
        removed_of: the removed files of each manifest, dangling deletes among them.
        changes: summary entries for the added and removed files.
    """

    manifests: Sequence[ManifestFile]
    removed_of: Sequence[RemovedFiles]
    changes: dict[str, str]

    @property
    def removed(self) -> Iterator[DataFile]:
        """All of the removed files."""
        return (file for files in self.removed_of for file in files)


def merged_manifests(
    work: Workspace,
    base: CommitBase,
    *,
    added: NewFiles = (),
    removed: Selection | None = None,
    key: Hashable = None,
    data_sequence_number: int | None = None,
    added_key: Hashable = None,
    may_be_plain: bool = False,
    removed_data: Callable[[EntryColumns, Mask], RemovedFiles] = RemovedColumns.of,
) -> MergedManifests:
    """Adds and removes files, drops the deletes that then dangle, and merges manifests.

    Args:
        removed: the data files and delete files to remove.
        key: what `removed` depends on, see `filter_manifests`.
        data_sequence_number: for the added files, if their rows are from earlier commits.
        added_key, may_be_plain: as for `new_manifests`.
        removed_data: keeps removed data files, as for `filter_manifests`.
    """
    selections = [] if removed is None else [removed]
    new = new_manifests(
        work, base, added, data_sequence_number, added_key, may_be_plain=may_be_plain
    )
    data = filter_manifests(
        work,
        base,
        base.manifests_of(ManifestContent.DATA),
        selections,
        ("data", key),
        removed_data,
    )
    all_data = [*_of(new, ManifestContent.DATA), *data.manifests]
    dangling = _dangling_deletes(base, _oldest(base, all_data), data.removed)
    deletes = filter_manifests(
        work,
        base,
        base.manifests_of(ManifestContent.DELETES),
        [*selections, dangling],
        ("deletes", key, dangling.oldest_data, dangling.removed),
    )
    all_deletes = [*_of(new, ManifestContent.DELETES), *deletes.manifests]
    removed_of = (*data.removed, *deletes.removed)
    return MergedManifests(
        [*merge_manifests(work, base, all_data), *merge_manifests(work, base, all_deletes)],
        removed_of,
        changes_summary(base, added, (file for files in removed_of for file in files)),
    )


def require_data_files(base: CommitBase, files: Iterable[DataFile]) -> None:
    """Refuses delete files where data files are expected.

    Raises:
        InvalidDataError: one of the files is a delete file.
    """
    for file in files:
        if file.content is not FileContent.DATA:
            raise InvalidDataError(
                f"table {base.name}: {file.file_path} is a delete file, expected data files"
            )


def _of(manifests: Iterable[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    return [manifest for manifest in manifests if manifest.content is content]


def _oldest(base: CommitBase, manifests: Iterable[ManifestFile]) -> int:
    """The lowest data sequence number of live files; the new snapshot's if there are none."""
    numbers = (
        manifest.min_sequence_number
        for manifest in manifests
        if (manifest.added_files_count or manifest.existing_files_count)
        and manifest.min_sequence_number != UNASSIGNED
    )
    return min(numbers, default=base.sequence_number)


@dataclass(frozen=True, slots=True)
class _DanglingDeletes:
    """Delete files older than all data files, and deletion vectors of removed data files.

    Attributes:
        oldest_data: the lowest data sequence number of the remaining data files.
        removed: the data files that the commit removes, if the table has deletion vectors.
        removed_paths: finds them.
        partitions: the partitions of those files.
    """

    oldest_data: int
    removed: tuple[RemovedFiles, ...]
    removed_paths: PathIndex
    partitions: PartitionSelection

    @property
    def stats_ids(self) -> frozenset[int]:
        return frozenset()

    def may_select(self, manifest: ManifestFile) -> bool:
        if manifest.min_sequence_number < self.oldest_data:
            return True
        return len(self.removed_paths) > 0 and self.partitions.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        numbers = columns.data_sequence_number
        # Position deletes apply to data of the same number (invariant NoRowResurrected of
        # docs/commit-model.md). Files from version 1 have sequence number 0, which says nothing
        # about their age.
        mask: Mask = (numbers > 0) & (numbers < self.oldest_data)
        if len(self.removed_paths):
            mask |= self._vectors(columns)
        return mask

    def _vectors(self, columns: EntryColumns) -> Mask:
        mask: Mask = self.removed_paths.find(columns.referenced_data_file) >= 0
        mask &= columns.is_vector
        return mask


def _dangling_deletes(
    base: CommitBase, oldest_data: int, removed: tuple[RemovedFiles, ...]
) -> _DanglingDeletes:
    """The deletes that dangle once `removed` data files are gone."""
    # Tables have deletion vectors only from version 3.
    removed = removed if base.metadata.format_version >= 3 else ()
    return _DanglingDeletes(
        oldest_data,
        removed,
        index_of(removed),
        partitions_of(base, (file for part in removed for file in part)),
    )


@dataclass(frozen=True, slots=True)
class FilteredManifests:
    """The parent's manifests without the files that a commit removes.

    Attributes:
        manifests: in their order, without earlier manifests that have no live files.
        removed: the removed files of each rewritten manifest.
    """

    manifests: tuple[ManifestFile, ...]
    removed: tuple[RemovedFiles, ...]


def filter_manifests(
    work: Workspace,
    base: CommitBase,
    manifests: Sequence[ManifestFile],
    selections: Sequence[Selection],
    key: Hashable,
    removed_files: _RemovedFiles = RemovedColumns.of,
) -> FilteredManifests:
    """Marks the files of any of the selections as deleted.

    Args:
        key: what the selections depend on; a manifest that an earlier attempt filtered under the
            same key is reused.
        removed_files: keeps the files of the entries of a manifest for which a mask is true.

    Raises:
        ValidationError: metadata does not prove whether some file is selected.
        MissingFileError, CorruptFileError: a manifest cannot be read.
    """

    def filtered(manifest: ManifestFile) -> tuple[ManifestFile, RemovedFiles | None]:
        # The first row id is in the key: a concurrent commit may have assigned it meanwhile.
        source = (manifest.manifest_path, manifest.first_row_id)
        own_key = ("filtered", source, base.metadata.format_version, key)
        return work.once(own_key, lambda: _filter(work, base, manifest, selections, removed_files))

    live = [m for m in manifests if m.added_files_count or m.existing_files_count]
    candidates = [m for m in live if any(selection.may_select(m) for selection in selections)]
    if len(candidates) > 1:
        with ThreadPoolExecutor(manifest_readers(base.io, candidates, _BYTES_AT_A_TIME)) as pool:
            found = dict(zip(_paths(candidates), pool.map(filtered, candidates), strict=True))
    else:
        found = dict(zip(_paths(candidates), map(filtered, candidates), strict=True))
    return FilteredManifests(
        tuple(found[m.manifest_path][0] if m.manifest_path in found else m for m in live),
        tuple(removed for _, removed in found.values() if removed is not None),
    )


def _paths(manifests: Iterable[ManifestFile]) -> list[str]:
    return [manifest.manifest_path for manifest in manifests]


def _filter(
    work: Workspace,
    base: CommitBase,
    manifest: ManifestFile,
    selections: Sequence[Selection],
    removed_files: _RemovedFiles,
) -> tuple[ManifestFile, RemovedFiles | None]:
    selections = [selection for selection in selections if selection.may_select(manifest)]
    stats_ids = frozenset[int]().union(*(selection.stats_ids for selection in selections))
    columns = read_columns(base, manifest, stats_ids)
    is_removed = np.zeros(len(columns), np.bool_)
    for selection in selections:
        is_removed |= selection.select(columns)
    if not is_removed.any():
        return manifest, None
    deleted, existing = ManifestEntryStatus.DELETED.value, ManifestEntryStatus.EXISTING.value
    whole = read_columns(base, manifest, None)
    changed = replace(
        whole,
        status=np.where(is_removed, deleted, existing),
        snapshot_id=np.where(is_removed, work.snapshot_id, whole.snapshot_id),
    )
    removed = removed_files(columns, is_removed)
    return write_columns(work, base, manifest, changed), removed
