"""Finds the files of all snapshots that hold rows which match a condition, deleted or not."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.display import block, counted, html_table
from icebergds.errors import IcebergError, InvalidFilterError
from icebergds.expr.bind import bind, field_ids
from icebergds.expr.nodes import TRUE, Expr, relaxed
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.maintenance.unused_files.orphan_files import (
    OrphanFiles,
    parse_orphan_options,
)
from icebergds.operations.maintenance.unused_files.remove_orphan_files import (
    find_orphan_files,
    own_directories,
)
from icebergds.operations.read.options import ReadOptions, split_options
from icebergds.operations.read.snapshot_read import make_read_plan
from icebergds.operations.runner import Runner, TaskAttempt, weight_of_files
from icebergds.reporting import advance, stage
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import PlannedFile, all_manifests
from icebergds.scan.plan.partition_filters import PartitionFilters
from icebergds.scan.plan.prune import prune_entries
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import (
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import FILE_PATH
from icebergds.spec.schema import Schema
from icebergds.spec.values.dates import now_ms

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file or equality delete file that holds matching rows.

    Attributes:
        file_path: its location.
        content: whether it is a data file or an equality delete file.
        rows: how many of its rows match, deleted ones too; None, for unknown, for an equality
            delete file that lacks a column of the condition.
        snapshot_ids: the snapshots that have the file, in the order of the metadata.
        refs: the branches and tags whose snapshot has it, such as `branch 'main'`.
    """

    file_path: str
    content: FileContent
    rows: int | None
    snapshot_ids: tuple[int, ...]
    refs: tuple[str, ...]

    def __str__(self) -> str:
        kind = "data file" if self.content is FileContent.DATA else "file of equality deletes"
        rows = "perhaps some rows" if self.rows is None else counted(self.rows, "row")
        kept = ", ".join(self.refs) or counted(len(self.snapshot_ids), "snapshot")
        return f"{rows} in a {kind} of {kept}: {self.file_path}"


@dataclass(frozen=True, slots=True, repr=False)
class StoredRows:
    """The files of a table that hold rows which match a condition, deleted or not.

    Attributes:
        files: the files of the table's snapshots, on branches, tagged or not.
        unreferenced: the other files in the table's directory, which were not read: they belong to
            writes that failed or are in progress, or could not be deleted.
        not_listed: why these are not known; empty if they are.
    """

    files: tuple[StoredFile, ...]
    unreferenced: OrphanFiles
    not_listed: str = ""

    @property
    def is_gone(self) -> bool:
        """Whether no file holds such a row, judging by the table and its directory."""
        unknown = self.unreferenced.orphan_files_count + self.unreferenced.undated_files_count
        return not (self.files or unknown or self.not_listed)

    def __repr__(self) -> str:
        return block(f"StoredRows: {self._summary()}", list(map(str, self.files)), "file")

    def _repr_html_(self) -> str:
        rows = [
            (f.file_path, f.content.name, str(f.rows), ", ".join(f.refs), len(f.snapshot_ids))
            for f in self.files
        ]
        header = ("file_path", "content", "rows", "refs", "snapshots")
        texts = [tuple(map(str, row)) for row in rows]
        return html_table(f"Stored rows: {self._summary()}", header, texts, "file")

    def _summary(self) -> str:
        if self.is_gone:
            return "no file of the table holds a matching row"
        told = [f"{counted(len(self.files), 'file')} with matching rows"]
        if number := self.unreferenced.orphan_files_count:
            told.append(f"{counted(number, 'file')} that no snapshot refers to, not read")
        if self.not_listed:
            told.append(f"the directory was not listed: {self.not_listed}")
        return "; ".join(told)


def find_stored_rows(table: LoadedTable, options: ReadOptions, runner: Runner) -> StoredRows:
    """Reads the data files and equality deletes of all snapshots that may hold matching rows.

    No deletes are applied. Files are left out by their partitions and bounds, as in scans.

    Args:
        options: with the filter, which may name columns that were dropped. If columns of different
            schemas had the same names, all of them are searched.

    Raises:
        InvalidFilterError: no schema of the table has the columns, or a value does not fit.
        CorruptFileError, MissingFileError: metadata or a file is damaged or missing.
    """
    state = table.state
    listed, snapshots_of = _manifests(state)
    files: dict[str, StoredFile] = {}
    for schema, condition in _bound(options.row_filter, state.metadata):
        held: dict[str, _Held] = {}
        with stage("read manifests", len(listed)):
            for manifest in listed:
                for entry in _entries(state, manifest, schema, condition):
                    one = held.setdefault(entry.data_file.file_path, _Held(entry, set()))
                    one.snapshot_ids.update(snapshots_of[manifest.manifest_path])
                advance()
        plan = make_read_plan(options, state, schema, Schema((FILE_PATH,)))
        wanted = field_ids(condition)
        unread = {path for path, one in held.items() if not _has_columns(one.entry, wanted)}
        readable = (one.entry for path, one in held.items() if path not in unread)
        rows = _count(plan, readable, state, options, runner)
        for path, one in held.items():
            if path in unread or rows[path]:
                number = None if path in unread else rows[path]
                files.setdefault(path, _stored(state.metadata, one, number))
    unreferenced, why = unreferenced_files(table)
    return StoredRows(tuple(files.values()), unreferenced, why)


def unreferenced_files(table: LoadedTable) -> tuple[OrphanFiles, str]:
    """The files in the table's directories that no snapshot refers to, or why they are unknown.

    They may be of any age, so those of writes in progress are among them.
    """
    options = parse_orphan_options(
        older_than=None,
        location=None,
        dry_run=True,
        max_concurrent_deletes=None,
        file_list=None,
        equal_schemes=None,
        equal_authorities=None,
        prefix_mismatch_mode="error",
        options={"other-tables": "keep"},
    )
    options = replace(options, older_than_ms=now_ms() + 1)
    try:
        found = [
            find_orphan_files(table, replace(options, location=location))
            for location in own_directories(table.metadata)
        ]
        return OrphanFiles(
            tuple(path for one in found for path in one.orphan_file_locations),
            sum(one.orphan_files_count for one in found),
            sum(one.orphan_bytes_count for one in found),
            undated_files_count=sum(one.undated_files_count for one in found),
            examined_files_count=sum(one.examined_files_count for one in found),
            dry_run=True,
        ), ""
    except IcebergError as error:
        _LOG.info("table %s: its directory is not listed: %s", table.name, error)
        return OrphanFiles(dry_run=True), str(error)


@dataclass(frozen=True, slots=True)
class _Held:
    """A file that may hold rows, and the snapshots that have it."""

    entry: ManifestEntry
    snapshot_ids: set[int]

    @property
    def path(self) -> str:
        return self.entry.data_file.file_path


def _bound(condition: Expr, metadata: TableMetadata) -> list[tuple[Schema, Expr]]:
    """The condition bound to each set of columns that ever had its names, current ones first.

    Raises:
        InvalidFilterError: it fits no schema; the error is that of the current one.
    """
    found: dict[frozenset[int], tuple[Schema, Expr]] = {}
    first: InvalidFilterError | None = None
    for schema in (metadata.schema(), *reversed(metadata.schemas)):
        try:
            bound = bind(condition, schema, case_sensitive=False)
        except InvalidFilterError as error:
            first = first or error
        else:
            found.setdefault(field_ids(bound), (schema, bound))
    if not found and first is not None:
        raise first
    return list(found.values())


def _manifests(state: TableState) -> tuple[list[ManifestFile], dict[str, list[int]]]:
    """The manifests of all snapshots, each once, and the snapshots that have them."""
    manifests: dict[str, ManifestFile] = {}
    snapshots_of: dict[str, list[int]] = {}
    for snapshot in state.metadata.snapshots:
        for manifest in all_manifests(state.io, snapshot, WrongCounts.FAIL)[0]:
            manifests.setdefault(manifest.manifest_path, manifest)
            snapshots_of.setdefault(manifest.manifest_path, []).append(snapshot.snapshot_id)
    return list(manifests.values()), snapshots_of


def _entries(
    state: TableState, manifest: ManifestFile, schema: Schema, condition: Expr
) -> Iterator[ManifestEntry]:
    """The live files of a manifest that may hold matching rows; no position deletes."""
    metadata = state.metadata
    filters = PartitionFilters(metadata.specs_by_id, schema, condition)
    is_data = manifest.content is ManifestContent.DATA
    if is_data and not filters.might_match(manifest):
        return
    condition = relaxed(condition)
    columns = read_manifest_columns(
        state.io,
        manifest,
        metadata.specs_by_id,
        schema,
        history=metadata.schema_history,
        stats_ids=field_ids(condition),
    )
    # The keys of an equality delete file may belong to other partitions than the file's.
    in_partitions = filters.of(manifest) if is_data else TRUE
    of_rows = condition if is_data else TRUE
    spec = metadata.specs_by_id[manifest.partition_spec_id]
    for entry in prune_entries(columns, in_partitions, of_rows, spec).entries:
        file = entry.data_file
        # Files without rows may not exist: some writers list them and never create them.
        if file.content is not FileContent.POSITION_DELETES and file.record_count != 0:
            yield entry


def _has_columns(entry: ManifestEntry, wanted: frozenset[int]) -> bool:
    """Whether a file has the columns of a condition; data files that lack one have nulls."""
    file = entry.data_file
    return file.content is FileContent.DATA or wanted <= set(file.equality_ids)


def _count(
    plan: ReadPlan,
    entries: Iterable[ManifestEntry],
    state: TableState,
    options: ReadOptions,
    runner: Runner,
) -> Counter[str]:
    """How many rows of each file match."""
    files = [PlannedFile(entry, AppliedDeletes()) for entry in entries]
    splits = split_options(options, state.metadata.properties)
    groups = list(pack_files(files, state.metadata, plan.table_schema, splits))
    count, nbytes = map(sum, zip(*map(weight_of_files, groups), strict=True)) if groups else (0, 0)
    rows = Counter[str]()
    with stage("read files", count, nbytes, weight_of_files):
        for found in runner.run(_Counting(plan), groups):
            rows.update(found)
    return rows


@dataclass(frozen=True, slots=True)
class _Counting:
    """Counts the matching rows of each file of a task."""

    plan: ReadPlan

    def __call__(self, group: ScanTaskGroup, attempt: TaskAttempt) -> dict[str, int]:
        rows = Counter[str]()
        for batch in read_scan_tasks(self.plan, group):
            # All rows of a batch are of one file.
            rows[batch.column(0)[0].as_py()] += batch.num_rows
        return dict(rows)


def _stored(metadata: TableMetadata, held: _Held, rows: int | None) -> StoredFile:
    file = held.entry.data_file
    refs = (
        f"{ref.ref_type} {name!r}"
        for name, ref in metadata.refs.items()
        if ref.snapshot_id in held.snapshot_ids
    )
    ids = (each.snapshot_id for each in metadata.snapshots)
    return StoredFile(
        file.file_path,
        file.content,
        rows,
        tuple(each for each in ids if each in held.snapshot_ids),
        tuple(refs),
    )
