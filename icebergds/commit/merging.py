"""Produces a snapshot's manifests: adds and removes files, then merges manifests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.filter_manifests import filter_manifests
from icebergds.commit.merge_manifests import merge_manifests
from icebergds.commit.new_manifests import UNASSIGNED, NewFiles, new_manifests
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.removed_files import RemovedColumns, RemovedFiles, index_of
from icebergds.commit.selection import Mask, Selection
from icebergds.commit.summary import changes_summary
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidDataError
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.packed_entries import PathIndex
from icebergds.spec.manifest import DataFile, FileContent, FileFormat, ManifestContent, ManifestFile


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
        is_vector = pc.equal(columns.file_format, FileFormat.PUFFIN.value)
        mask: Mask = self.removed_paths.find(columns.referenced_data_file) >= 0
        mask &= is_vector.to_numpy(zero_copy_only=False)
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
