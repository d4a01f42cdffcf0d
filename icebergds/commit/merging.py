"""What all actions that may rewrite manifests have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.dangling_deletes import dangling_deletes
from icebergds.commit.filter_manifests import filter_manifests
from icebergds.commit.merge_manifests import merge_manifests
from icebergds.commit.new_manifests import UNASSIGNED, new_manifests
from icebergds.commit.selection import Selection
from icebergds.commit.summary import changes_summary
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidDataError
from icebergds.spec.manifest import DataFile, FileContent, ManifestContent, ManifestFile


@dataclass(frozen=True, slots=True)
class MergedManifests:
    """The manifests of a new snapshot.

    Attributes:
        removed: the files that are no longer there, dead deletes among them.
        changes: summary of what was added and removed.
    """

    manifests: Sequence[ManifestFile]
    removed: Sequence[DataFile]
    changes: dict[str, str]


def merged_manifests(
    work: Workspace,
    base: CommitBase,
    *,
    added: Sequence[DataFile] = (),
    removed: Selection | None = None,
    key: Hashable = None,
    data_sequence_number: int | None = None,
) -> MergedManifests:
    """Adds files and removes others, drops deletes that are dead then, and merges manifests.

    Args:
        removed: what is removed, data files and delete files.
        key: what `removed` depends on, see `filter_manifests`.
        data_sequence_number: of the added files' rows, where they are those of earlier commits.
    """
    selections = [] if removed is None else [removed]
    new = new_manifests(work, base, added, data_sequence_number)
    data = filter_manifests(
        work, base, base.manifests_of(ManifestContent.DATA), selections, ("data", key)
    )
    all_data = [*_of(new, ManifestContent.DATA), *data.manifests]
    dead = dangling_deletes(base, _oldest(base, all_data), data.removed)
    deletes = filter_manifests(
        work,
        base,
        base.manifests_of(ManifestContent.DELETES),
        [*selections, dead],
        ("deletes", key, dead.oldest_data, dead.removed_paths),
    )
    all_deletes = [*_of(new, ManifestContent.DELETES), *deletes.manifests]
    gone = (*data.removed, *deletes.removed)
    return MergedManifests(
        [*merge_manifests(work, base, all_data), *merge_manifests(work, base, all_deletes)],
        gone,
        changes_summary(base, added, gone),
    )


def require_data_files(base: CommitBase, files: Iterable[DataFile]) -> None:
    """Refuses delete files where only data files have a place.

    Raises:
        InvalidDataError: one of the files holds deletes.
    """
    for file in files:
        if file.content is not FileContent.DATA:
            raise InvalidDataError(
                f"table {base.name}: {file.file_path} is a delete file, expected data files"
            )


def _of(manifests: Iterable[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    return [manifest for manifest in manifests if manifest.content is content]


def _oldest(base: CommitBase, manifests: Iterable[ManifestFile]) -> int:
    """The least data sequence number of live files; the new snapshot's where there is none."""
    numbers = (
        manifest.min_sequence_number
        for manifest in manifests
        if (manifest.added_files_count or manifest.existing_files_count)
        and manifest.min_sequence_number != UNASSIGNED
    )
    return min(numbers, default=base.sequence_number)
