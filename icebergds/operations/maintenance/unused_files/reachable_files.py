"""Lists the files that table metadata reaches, by kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.catalog.metadata_files import VERSION_HINT, own_version
from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError, ValidationError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.operations.maintenance.unused_files.file_set import FileSet, Locations
from icebergds.reporting import advancing, expect, stage
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.manifest import FileContent, ManifestFile
from icebergds.spec.metadata import TableMetadata, metadata_directory
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import GC_ENABLED

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class FileKind(StrEnum):
    """The kinds of files of a table, in the order in which they are deleted.

    A file that leads to others comes after them, so that what is left can still be found.
    """

    DATA = "data file"
    POSITION_DELETES = "position delete file"
    EQUALITY_DELETES = "equality delete file"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    STATISTICS = "statistics file"
    OLD_METADATA = "older metadata file"
    METADATA = "metadata file"


FilesByKind: TypeAlias = Mapping[FileKind, Sequence[str]]

Errors: TypeAlias = tuple[type[IcebergError], ...]

_KINDS = {
    FileContent.DATA: FileKind.DATA,
    FileContent.POSITION_DELETES: FileKind.POSITION_DELETES,
    FileContent.EQUALITY_DELETES: FileKind.EQUALITY_DELETES,
}
_CONTENT = pa.schema([("location", pa.string()), ("content", pa.int8())])


def require_garbage_collection(state: TableState, instead: str) -> None:
    """Raises ValidationError if a table's files must not be deleted.

    Args:
        instead: what the user may do, besides setting the property.
    """
    if not GC_ENABLED.of(state.metadata.properties):
        raise ValidationError(
            f"table {state.name} has the property {GC_ENABLED.name} = false, because other tables "
            f"may share its files; {instead}, or set the property to true"
        )


def reachable_files(state: TableState, skipped: Errors = ()) -> FilesByKind:
    """Lists data and delete files, manifests, manifest lists, statistics and metadata files.

    Files that the table's snapshots have removed are listed, too. Locations are as in the
    metadata, each once.

    Args:
        skipped: errors of manifest lists and manifests that are logged; what only those reach is
            not listed.

    Raises:
        MissingFileError: a manifest list or manifest does not exist.
        CorruptFileError: one is damaged.
    """
    metadata = state.metadata
    content = FileSet()
    with stage("read manifests"):
        manifests = listed_manifests(state.io, metadata.snapshots, skipped)
        for batch in content_batches(
            state.io,
            metadata,
            manifests.values(),
            live_only=False,
            skipped=skipped,
            # The files that a damaged manifest still lists are included.
            wrong_counts=WrongCounts.WARN,
        ):
            content.add(batch, batch["location"])
    return {
        **content_by_kind(content),
        FileKind.MANIFEST: list(manifests),
        FileKind.MANIFEST_LIST: manifest_lists(metadata.snapshots),
        FileKind.STATISTICS: statistics_files(metadata),
        FileKind.OLD_METADATA: _old_metadata_files(state),
        FileKind.METADATA: [state.metadata_location],
    }


def listed_manifests(
    io: FileIO,
    snapshots: Iterable[Snapshot],
    skipped: Errors = (),
    read: Callable[[FileIO, Snapshot], Iterable[ManifestFile]] = read_snapshot_manifests,
) -> dict[str, ManifestFile]:
    """The manifests of snapshots, by their locations; errors are those of `reachable_files`."""
    found: dict[str, ManifestFile] = {}

    def collect(snapshot: Snapshot) -> None:
        for manifest in read(io, snapshot):
            found.setdefault(manifest.manifest_path, manifest)

    snapshots = list(snapshots)
    readers = readers_of(io, (snapshot.manifest_list for snapshot in snapshots))
    for _ in _read_all(collect, snapshots, readers, skipped):
        continue
    return found


def content_batches(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Iterable[ManifestFile],
    *,
    live_only: bool,
    skipped: Errors = (),
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> Iterator[pa.RecordBatch]:
    """The data and delete files that manifests list, as columns `location` and `content`.

    A file that several manifests list appears several times. Errors are those of `reachable_files`.

    Args:
        live_only: leave out files that the manifests list as deleted.
        wrong_counts: what to do if a manifest's files do not match the counts in the manifest list.
    """

    def read(manifest: ManifestFile) -> pa.RecordBatch:
        columns = read_manifest_columns(
            io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
            stats_ids=frozenset(),
            live_only=live_only,
            wrong_counts=wrong_counts,
        )
        content = pa.array(columns.content, pa.int8())
        return pa.RecordBatch.from_arrays([columns.file_path, content], schema=_CONTENT)

    manifests = list(manifests)
    return _read_all(read, manifests, manifest_readers(io, manifests), skipped)


def content_by_kind(content: FileSet) -> dict[FileKind, Locations]:
    """Takes the data and delete files out of a set, by their kinds."""
    found: dict[FileKind, list[pa.StringArray]] = {kind: [] for kind in _KINDS.values()}
    for batch in content.drain():
        for value, kind in _KINDS.items():
            is_of_kind = pc.equal(batch["content"], value.value)
            # A manifest lists either data files or delete files, mostly of one kind.
            if pc.all(is_of_kind).as_py():
                found[kind].append(batch["location"])
            elif pc.any(is_of_kind).as_py():
                found[kind].append(batch["location"].filter(is_of_kind))
    return {
        kind: Locations(pa.chunked_array(chunks, pa.string())) for kind, chunks in found.items()
    }


def manifest_lists(snapshots: Iterable[Snapshot]) -> list[str]:
    """The manifest lists of snapshots, each once."""
    found = (snapshot.manifest_list for snapshot in snapshots)
    return list(dict.fromkeys(location for location in found if location is not None))


def statistics_files(metadata: TableMetadata) -> list[str]:
    """The files of statistics and of partition statistics, each once."""
    paths = [file.statistics_path for file in metadata.statistics]
    paths += [file.statistics_path for file in metadata.partition_statistics]
    return list(dict.fromkeys(paths))


def _old_metadata_files(state: TableState) -> list[str]:
    """The metadata files of the log, and of the logs of those; the version hint of such files."""
    older: dict[str, None] = {}
    log = [entry.metadata_file for entry in state.metadata.metadata_log]
    while not older.keys() >= set(log):
        older |= dict.fromkeys(log)
        log = _first_log(state.io, log)
    directory, _, file = state.metadata_location.rpartition("/")
    if own_version(file) is not None:
        older[f"{directory}/{VERSION_HINT}"] = None
    return [location for location in older if location != state.metadata_location]


def _first_log(io: FileIO, locations: Iterable[str]) -> list[str]:
    """The log of the first metadata file that can be read."""
    for location in locations:
        try:
            found = parse_metadata(io.read_bytes(location), location, io.max_metadata_bytes)
        except IcebergError as error:
            _LOG.info("older metadata files are not looked up in %s: %s", location, error)
            continue
        return [entry.metadata_file for entry in found.metadata_log]
    return []


def _read_all(
    read: Callable[[_Item], _Result], items: Iterable[_Item], readers: int, skipped: Errors
) -> Iterator[_Result]:
    """Reads several files at a time, in order; leaves out those that fail with a skipped error."""

    def attempt(item: _Item) -> _Result | IcebergError:
        try:
            return read(item)
        except skipped as error:
            return error

    items = list(items)
    expect(len(items))
    with ThreadPoolExecutor(readers) as pool:
        for result in advancing(pool.map(attempt, items)):
            if isinstance(result, IcebergError):
                _LOG.warning("what it lists is not deleted: %s", result)
            else:
                yield result


def referenced_files(state: TableState, wrong_counts: WrongCounts) -> Iterator[pa.StringArray]:
    """Locations of the files of all snapshots, on branches, tagged or staged, and of metadata.

    These are live data and delete files, manifests, manifest lists, statistics, metadata files in
    the log and the version hint; as they are in the metadata, some more than once.

    Args:
        wrong_counts: what to do if the files of a manifest do not match the counts in its list.

    Raises:
        MissingFileError: a manifest list or a manifest does not exist.
        CorruptFileError: one is damaged.
    """
    metadata = state.metadata
    manifests = listed_manifests(state.io, metadata.snapshots)
    yield pa.array(
        [
            *metadata_files(state),
            f"{metadata_directory(metadata.location)}/{VERSION_HINT}",
            *statistics_files(metadata),
            *manifest_lists(metadata.snapshots),
            *manifests,
        ],
        pa.string(),
    )
    content = content_batches(
        state.io, metadata, manifests.values(), live_only=True, wrong_counts=wrong_counts
    )
    for batch in content:
        yield batch.column("location")


def metadata_files(state: TableState) -> list[str]:
    """The table's metadata file, and the earlier ones in its log."""
    return [
        state.metadata_location,
        *(entry.metadata_file for entry in state.metadata.metadata_log),
    ]
