"""Lists the files that expired snapshots reach and the rest of the table does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import FormatError, IcebergError, MissingFileError
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files.file_identity import Aliases
from icebergds.operations.maintenance.unused_files.file_set import FileSet
from icebergds.operations.maintenance.unused_files.reachable_files import (
    FileKind,
    FilesByKind,
    content_batches,
    content_by_kind,
    listed_manifests,
    manifest_lists,
    statistics_files,
)
from icebergds.scan.plan.files import checked_manifests
from icebergds.spec.manifest import ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot

# Errors of files that other processes have deleted, or that nobody could read anyway.
_SKIPPED = (MissingFileError, FormatError)
_NAMES = Aliases()
# Slashes that count as one, and names that refer to another directory.
_ODD = ("//", "/.")
# Kept manifests to read before checking again whether anything is left to look for.
_GROUP = 64


def expired_files(
    io: FileIO, before: TableMetadata, expired: Iterable[Snapshot], after: TableMetadata
) -> FilesByKind:
    """Lists the files that expired snapshots reach and those of `after` do not, each once.

    A snapshot reaches the live files of its manifests, not those that it removed. Manifest lists
    and manifests of expired snapshots that are missing or damaged are logged: what only they list
    is not found.

    Args:
        before: the metadata with the expired snapshots.
        after: the metadata without them.

    Raises:
        MissingFileError: a manifest list or manifest of a kept snapshot does not exist.
        CorruptFileError: one is damaged, or differs from the counts in its manifest list.
        StorageError: a file could not be read.
    """
    spelling = _Spelling(io, f"{after.location.rstrip('/')}/")
    expired = tuple(expired)
    kept_manifests = _kept_manifests(io, after.snapshots)
    kept = {
        spelling.of(location)
        for location in (
            *kept_manifests,
            *manifest_lists(after.snapshots),
            *statistics_files(after),
        )
    }

    def unused(locations: Iterable[str]) -> list[str]:
        return [location for location in locations if spelling.of(location) not in kept]

    listed = listed_manifests(io, expired, _SKIPPED)
    manifests = unused(listed)
    content = FileSet()
    for batch in content_batches(
        io,
        before,
        [listed[location] for location in manifests],
        live_only=True,
        skipped=_SKIPPED,
        wrong_counts=WrongCounts.WARN,
    ):
        content.add(batch, spelling.of_all(batch["location"]))
    _leave_out_live(content, io, after, list(kept_manifests.values()), spelling)
    return {
        **content_by_kind(content),
        FileKind.MANIFEST: manifests,
        FileKind.MANIFEST_LIST: unused(manifest_lists(expired)),
        FileKind.STATISTICS: unused(statistics_files(before)),
    }


def _kept_manifests(io: FileIO, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    def read(io: FileIO, snapshot: Snapshot) -> Sequence[ManifestFile]:
        return checked_manifests(io, snapshot, WrongCounts.FAIL)[0]

    return listed_manifests(io, snapshots, read=read)


def _leave_out_live(
    content: FileSet,
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    spelling: _Spelling,
) -> None:
    """Leaves out files that are live in manifests; reads them until nothing is left to look for."""
    # Files that expired manifests also list are mostly in manifests with existing entries.
    ordered = sorted(manifests, key=lambda m: m.existing_files_count == 0)
    for start in range(0, len(ordered), _GROUP):
        if not len(content):
            break
        for batch in content_batches(io, metadata, ordered[start : start + _GROUP], live_only=True):
            content.leave_out(spelling.of_all(batch["location"]))


@dataclass(frozen=True, slots=True)
class _Spelling:
    """Normalises locations so that different ones are different files.

    Attributes:
        root: the table's location and a slash; plain locations below it stay as they are.
    """

    io: FileIO
    root: str

    def of(self, location: str) -> str:
        """Normalises a location."""
        directory, slash, name = location.rpartition("/")
        return self._of_directory(directory + slash) + name

    def of_all(self, locations: pa.StringArray) -> pa.StringArray:
        """Normalises many locations; those that are not plain are compared by directory."""
        if self._are_plain(locations):
            return locations
        parts = pc.extract_regex(locations, r"(?s)^(?P<directory>.*/)?(?P<name>[^/]*)$")
        directories = parts.field("directory").dictionary_encode()
        spelled = pa.array(
            [self._of_directory(text) for text in directories.dictionary.to_pylist()], pa.string()
        )
        return pc.binary_join_element_wise(
            spelled.take(directories.indices), parts.field("name"), ""
        )

    def _are_plain(self, locations: pa.StringArray) -> bool:
        if pc.all(pc.starts_with(locations, self.root)).as_py() is False:
            return False
        inside = pc.utf8_slice_codeunits(locations, len(self.root) - 1)
        odd = pc.or_(*(pc.match_substring(inside, text) for text in _ODD))
        return not pc.any(odd).as_py()

    def _of_directory(self, directory: str) -> str:
        inside = directory[len(self.root) - 1 :]
        if directory.startswith(self.root) and not any(text in inside for text in _ODD):
            return directory
        try:
            prefix, path = _NAMES.directory(directory, self.io)
            own_prefix, root = _NAMES.directory(self.root, self.io)
        except IcebergError:
            # Not a file of this storage.
            return directory
        if prefix == own_prefix and path.startswith(root):
            return self.root + path.removeprefix(root)
        return f"{prefix[0]}://{prefix[1]}{path}"
