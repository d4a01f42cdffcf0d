"""Prepares a copy of a table at another place: metadata with other paths, and a list of files."""

from __future__ import annotations

import csv
import io as streams
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.catalog.metadata_files import load_from_location
from icebergds.commit.base import check_branch
from icebergds.display import html_result
from icebergds.errors import (
    InvalidOptionError,
    MissingFileError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.side_by_side import MANIFEST_READERS
from icebergds.io.fileio import FileIO
from icebergds.operations.imports.moved_deletes import MovedDeletes, write_moved_deletes
from icebergds.operations.imports.moved_manifests import (
    moved_list,
    moved_manifest,
    read_listed,
)
from icebergds.operations.imports.moved_paths import CopyPlan, MovedPaths, moved_metadata
from icebergds.reporting import advancing, stage
from icebergds.spec.json.metadata import serialise_metadata
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID

_FILE_LIST = "file-list"
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class RewrittenTablePath:
    """What `Table.rewrite_table_path` wrote.

    Attributes:
        latest_version: the name of the copy's newest metadata file.
        file_list_location: the list of files to copy; None if none was asked for.
        rewritten_manifest_file_paths_count: the number of manifests with other paths.
        rewritten_delete_file_paths_count: the number of position delete files and deletion vectors
            with other paths.
    """

    latest_version: str
    file_list_location: str | None
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int

    def _repr_html_(self) -> str:
        return html_result("Rewritten table path", self)


@dataclass(frozen=True, slots=True)
class RewritePathRequest:
    """What is copied, and where to.

    Attributes:
        source_prefix, target_prefix: the prefixes of all paths of the table, and of its copy.
        start_version: the name of a metadata file whose state the copy has already.
        end_version: the name of a metadata file; the newest one if None.
        staging_location: where files are written; a new directory beside the metadata if None.
        create_file_list: whether the list of files to copy is written.
    """

    source_prefix: str
    target_prefix: str
    start_version: str | None = None
    end_version: str | None = None
    staging_location: str | None = None
    create_file_list: bool = True


def rewrite_table_path(table: LoadedTable, request: RewritePathRequest) -> RewrittenTablePath:
    """Writes metadata with other paths to the staging location; the table stays as it is.

    If it fails, what was written is deleted.

    Raises:
        InvalidOptionError: the prefixes are equal or empty, the table refers to files elsewhere, or
            has no such version.
        MissingFileError: an older metadata file, a manifest or a delete file does not exist.
        CorruptFileError, StorageError: a file cannot be read or written.
        UnsupportedFeatureError: the table is encrypted, or its catalog restricts what may be read,
            which the copy would not.
    """
    table.io.require_rows()
    check_branch(table.state, MAIN_BRANCH)
    if table.metadata.encryption_keys or ENCRYPTION_KEY_ID.of(table.metadata.properties):
        raise UnsupportedFeatureError(
            f"table {table.name} is encrypted, and a copy of it would have manifests in clear; "
            "copy its files as they are, and read the copy with a location map"
        )
    paths = _paths(table, request)
    versions = _versions(table, request)
    plan = CopyPlan(table.io, paths)
    try:
        return _rewrite(table, request, versions, plan)
    except BaseException:
        table.io.delete_all(plan.written)
        raise


@dataclass(frozen=True, slots=True)
class _Versions:
    """Table metadata by the locations of the files.

    Attributes:
        start: what the copy has already, if anything.
        copied: newest first; the first is the state of the copy.
    """

    start: TableMetadata | None
    copied: Mapping[str, TableMetadata]

    @property
    def end(self) -> TableMetadata:
        return next(iter(self.copied.values()))

    @property
    def known(self) -> frozenset[int]:
        """The snapshots that the copy has already."""
        return frozenset(() if self.start is None else self.start.snapshots_by_id)

    @property
    def new_snapshots(self) -> list[Snapshot]:
        return [s for s in self.end.snapshots if s.snapshot_id not in self.known]

    @property
    def new_ids(self) -> frozenset[int] | None:
        """All snapshots since the start, expired ones too; None if everything is new."""
        if self.start is None:
            return None
        versions = self.copied.values()
        return frozenset(i for each in versions for i in each.snapshots_by_id) - self.known


def _rewrite(
    table: LoadedTable, request: RewritePathRequest, versions: _Versions, plan: CopyPlan
) -> RewrittenTablePath:
    io, end, new_ids = table.io, versions.end, versions.new_ids
    for location, metadata in versions.copied.items():
        _write_metadata(plan, location, metadata)
    lists = {
        snapshot.snapshot_id: (snapshot, read_snapshot_manifests(io, snapshot))
        for snapshot in versions.new_snapshots
    }
    manifests = _new_manifests((listed for _, listed in lists.values()), new_ids)
    files = _position_deletes(io, end, manifests)
    deletes = _write_deletes(plan, files, end)
    moved = _write_manifests(plan, manifests, end, deletes, new_ids)
    for snapshot, listed in lists.values():
        if snapshot.manifest_list is not None:
            data = moved_list(snapshot, listed, end, plan.paths, moved)
            plan.write(snapshot.manifest_list, data)
    file_list = None
    if request.create_file_list:
        file_list = f"{plan.paths.staging}/{_FILE_LIST}"
        io.write(file_list, _as_csv(plan))
    latest = next(iter(versions.copied)).rpartition("/")[2]
    return RewrittenTablePath(latest, file_list, len(moved), len(files))


def _paths(table: LoadedTable, request: RewritePathRequest) -> MovedPaths:
    source, target = request.source_prefix.rstrip("/"), request.target_prefix.rstrip("/")
    if not source or not target or source == target:
        raise InvalidOptionError(
            f"source_prefix = {request.source_prefix!r}, target_prefix = "
            f"{request.target_prefix!r}: expected two different locations, such as "
            f"{table.metadata.location!r} and where the copy will be"
        )
    staging = request.staging_location
    if staging is None:
        staging = f"{table.metadata.metadata_directory}/copy-table-staging-{uuid4()}"
    return MovedPaths(source, target, table.io.absolute(staging).rstrip("/"))


def _versions(table: LoadedTable, request: RewritePathRequest) -> _Versions:
    io = table.io
    end = _version(table, "end_version", request.end_version) or table.state.metadata_location
    start = _version(table, "start_version", request.start_version)
    copied = {end: _load(io, end)}
    log = [entry.metadata_file for entry in copied[end].metadata_log]
    if start is not None and start not in log:
        raise InvalidOptionError(
            f"start_version = {request.start_version!r}: it is not older than the version "
            f"{end.rpartition('/')[2]} of table {table.name}"
        )
    for location in reversed(log):
        if location == start:
            break
        copied[location] = _load(io, location)
    return _Versions(None if start is None else _load(io, start), copied)


def _version(table: LoadedTable, name: str, wanted: str | None) -> str | None:
    """The location of a metadata file by its name."""
    if wanted is None:
        return None
    logged = (entry.metadata_file for entry in table.metadata.metadata_log)
    known = [table.state.metadata_location, *logged]
    found = [location for location in known if wanted in (location, location.rpartition("/")[2])]
    if not found:
        names = ", ".join(location.rpartition("/")[2] for location in known[:5])
        raise InvalidOptionError(
            f"{name} = {wanted!r}: table {table.name} has no such metadata file; its newest and "
            f"those of its log are {names}" + (", ..." if len(known) > 5 else "")
        )
    return found[0]


def _load(io: FileIO, location: str) -> TableMetadata:
    try:
        return load_from_location(io, location).metadata
    except NoSuchTableError as error:
        raise MissingFileError(
            f"{error}; it is a version to copy. Give a newer version as start_version, whose copy "
            "is there already, or set the metadata log to fewer versions"
        ) from None


def _write_metadata(plan: CopyPlan, location: str, metadata: TableMetadata) -> None:
    compress = ".gz" in location.rpartition("/")[2]
    plan.write(location, serialise_metadata(moved_metadata(metadata, plan.paths), compress))
    for statistics in metadata.statistics:
        plan.add(statistics.statistics_path)
    for of_partitions in metadata.partition_statistics:
        plan.add(of_partitions.statistics_path)


def _new_manifests(
    lists: Iterable[Sequence[ManifestFile]], new_ids: Collection[int] | None
) -> list[ManifestFile]:
    """The manifests that the copy does not have yet, each once."""
    found = {manifest.manifest_path: manifest for listed in lists for manifest in listed}
    return [m for m in found.values() if new_ids is None or m.added_snapshot_id in new_ids]


def _position_deletes(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]
) -> list[DataFile]:
    """The live position delete files and deletion vectors in manifests, each once."""
    of_deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    listed = _side_by_side(
        "list delete files",
        lambda manifest: read_listed(io, metadata, manifest).live_position_deletes(),
        of_deletes,
    )
    found = {(f.file_path, f.content_offset): f for files in listed for f in files}
    return list(found.values())


def _write_deletes(
    plan: CopyPlan, files: Iterable[DataFile], metadata: TableMetadata
) -> dict[str, MovedDeletes]:
    """Writes each position delete file once, even if it holds several deletion vectors."""
    by_path = {file.file_path: (file, plan.add_written(file.file_path)) for file in files}

    def write(pair: tuple[DataFile, str]) -> MovedDeletes:
        file, staged = pair
        return write_moved_deletes(plan.io, file, staged, plan.paths, metadata.properties)

    written = _side_by_side("write delete files", write, list(by_path.values()))
    return dict(zip(by_path, written, strict=True))


def _write_manifests(
    plan: CopyPlan,
    manifests: Sequence[ManifestFile],
    metadata: TableMetadata,
    deletes: Mapping[str, MovedDeletes],
    new_ids: Collection[int] | None,
) -> dict[str, ManifestFile]:
    """Writes manifests, and plans to copy their files; returns the manifests by old path."""
    staged = [plan.add_written(manifest.manifest_path) for manifest in manifests]

    def write(pair: tuple[ManifestFile, str]) -> tuple[ManifestFile, list[str]]:
        manifest, location = pair
        listed = read_listed(plan.io, metadata, manifest)
        moved, data = moved_manifest(listed, metadata, plan.paths, deletes)
        plan.io.write(location, data)
        return moved, listed.files_to_copy(new_ids)

    pairs = list(zip(manifests, staged, strict=True))
    written = _side_by_side("write manifests", write, pairs)
    for _, files in written:
        for location in files:
            plan.add(location)
    return {m.manifest_path: moved for m, (moved, _) in zip(manifests, written, strict=True)}


def _as_csv(plan: CopyPlan) -> bytes:
    text = streams.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((source, target) for target, source in plan.sources.items())
    return text.getvalue().encode()


def _side_by_side(
    name: str, task: Callable[[_Item], _Result], items: Sequence[_Item]
) -> list[_Result]:
    with stage(name, len(items)), ThreadPoolExecutor(MANIFEST_READERS) as pool:
        return list(advancing(pool.map(task, items)))
