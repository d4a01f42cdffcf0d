"""Replaces position delete files with fewer ones, or with deletion vectors: minor compaction."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.file_selection import FileKey, file_key, these_files
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_manifests import numbered_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.selection import read_columns
from icebergds.commit.summary import changes_summary
from icebergds.commit.validation import history_since
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestFile


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """Position delete files of one partition, and others with the same deletes.

    Attributes:
        replaced: position delete files.
        added: position delete files or deletion vectors.
        data_sequence_number: the number of the added files.
    """

    replaced: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    data_sequence_number: int


class StaleDeletesError(ValidationError):
    """None of the delete files can be replaced as planned; what is left must be planned again."""


class ReplacePositionDeletes:
    """Removes position delete files and adds others with the same deletes.

    Each group of files is replaced as a whole, or left as it is if a concurrent commit removed one
    of its files: that commit may have moved its deletes elsewhere or have undone them. A data file
    that a concurrent commit gave a deletion vector keeps that one, which has all deletes of the
    data file. Concurrent changes of data files do not conflict: deletes of files that are gone
    apply to nothing.

    Args:
        groups: no file is in two of them.
        from_snapshot_id: the snapshot that the files were read from.

    Attributes:
        committed: the groups that the last attempt replaced.
    """

    def __init__(self, groups: Sequence[RewrittenDeletes], from_snapshot_id: int) -> None:
        self._groups = groups
        self._from_snapshot_id = from_snapshot_id
        self.committed: tuple[RewrittenDeletes, ...] = ()

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Builds the new snapshot.

        Raises:
            StaleDeletesError: no group can be replaced, the branch no longer has the snapshot in
                its history, or the table's format version does not allow the added files.
        """
        require_branch(base)
        try:
            # After a rollback, the deletes of later snapshots must not return.
            history_since(base, self._from_snapshot_id)
        except ValidationError as error:
            raise StaleDeletesError(str(error)) from None
        self._refuse_position_delete_files(base)
        live = _LiveDeletes(base, self._groups)
        kept = {number: live.remaining(group) for number, group in enumerate(self._groups)}
        groups = {number: group for number, group in kept.items() if group is not None}
        if not groups:
            raise StaleDeletesError(
                f"table {base.name}: the position delete files to rewrite are not in branch "
                f"{base.branch!r} any longer, such as "
                f"{self._groups[0].replaced[0].file_path}; repeat the operation if there are others"
            )
        self.committed = tuple(groups.values())
        return self._replaced(work, base, (frozenset(groups), live.with_vectors))

    def _replaced(self, work: Workspace, base: CommitBase, key: Hashable) -> NewSnapshot:
        added = [(f, group.data_sequence_number) for group in self.committed for f in group.added]
        removed = [file for group in self.committed for file in group.replaced]
        merged = merged_manifests(work, base, removed=these_files(base, removed), key=key)
        manifests = list(merged.manifests)
        # Data manifests first, then delete manifests, each from newest to oldest.
        position = sum(1 for manifest in manifests if manifest.content is ManifestContent.DATA)
        manifests[position:position] = numbered_manifests(work, base, added, key)
        changes = changes_summary(base, [file for file, _ in added], merged.removed)
        return NewSnapshot("replace", manifests, changes)

    def _refuse_position_delete_files(self, base: CommitBase) -> None:
        files = [file for group in self._groups for file in group.added]
        if base.metadata.format_version >= 3 and not all(f.is_deletion_vector for f in files):
            raise StaleDeletesError(
                f"table {base.name} was upgraded to format version "
                f"{base.metadata.format_version}, which requires deletion vectors instead of "
                "position delete files; repeat the operation"
            )


class _LiveDeletes:
    """The delete files of the branch as it is now.

    Attributes:
        with_vectors: the data files of new deletion vectors that already have one.
    """

    def __init__(self, base: CommitBase, groups: Sequence[RewrittenDeletes]) -> None:
        files = [file for group in groups for file in group.replaced]
        vectors = [f for group in groups for f in group.added if f.is_deletion_vector]
        selection = these_files(base, files)
        paths = pa.array([vector.referenced_data_file for vector in vectors], pa.string())
        found: set[FileKey] = set()
        with_vectors: set[str] = set()
        for manifest in base.manifests_of(ManifestContent.DELETES):
            if not _has_live_files(manifest) or not (vectors or selection.may_select(manifest)):
                continue
            columns = read_columns(base, manifest, ())
            chosen = columns.filter(selection.select(columns))
            offsets = chosen.content_offset.to_pylist()
            found.update(zip(chosen.file_path.to_pylist(), offsets, strict=True))
            is_vector = pa.array(columns.is_vector)
            same = pc.and_(is_vector, pc.is_in(columns.referenced_data_file, paths))
            with_vectors.update(columns.referenced_data_file.filter(same).to_pylist())
        self._found = found
        self.with_vectors = frozenset(with_vectors)

    def remaining(self, group: RewrittenDeletes) -> RewrittenDeletes | None:
        """The part of a group to replace; None to leave the group as it is."""
        present = tuple(file for file in group.replaced if file_key(file) in self._found)
        gone = (file for file in group.replaced if file_key(file) not in self._found)
        if not present or not all(only_data_path(file) in self.with_vectors for file in gone):
            return None
        return replace(group, replaced=present, added=tuple(self._needed(group.added)))

    def _needed(self, added: Iterable[DataFile]) -> Iterable[DataFile]:
        return (file for file in added if file.referenced_data_file not in self.with_vectors)


def _has_live_files(manifest: ManifestFile) -> bool:
    return bool(manifest.added_files_count or manifest.existing_files_count)
