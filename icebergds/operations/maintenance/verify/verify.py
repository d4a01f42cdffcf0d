"""Verifies a table: compares what its metadata says with its files, and repairs what is only said.

Each manifest is read once, although many snapshots list it. Files are opened in tasks, and only
those that branches and tags have; what earlier snapshots list is compared by metadata alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.operations import TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.repair_files import FileCorrection, RepairFiles, corrected
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.formats.data_file.metrics_modes import metrics_modes
from icebergds.formats.manifests.columns import STATISTICS
from icebergds.operations.maintenance.verify.delete_checks import check_files_of
from icebergds.operations.maintenance.verify.file_checks import (
    CheckFiles,
    FileToCheck,
    in_tasks,
)
from icebergds.operations.maintenance.verify.findings import (
    Depth,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.operations.maintenance.verify.manifest_checks import check_manifest
from icebergds.operations.maintenance.verify.row_checks import (
    check_positions,
    check_row_id_ranges,
    check_row_ids,
)
from icebergds.operations.maintenance.verify.snapshot_checks import check_snapshots
from icebergds.operations.maintenance.verify.statistics_checks import check_statistics
from icebergds.operations.maintenance.verify.stored_files import (
    MISSING,
    ListedFiles,
    StoredFiles,
    look_up,
)
from icebergds.operations.maintenance.verify.verification import Looked, TableVerification
from icebergds.operations.maintenance.verify.walk import Walk, WalkedManifest, walk_metadata
from icebergds.operations.runner import LocalRunner, Runner
from icebergds.reporting import advance, stage
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import DataFile, FileContent, ManifestContent
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.updates.table_updates import TableUpdate

# Fewer are read faster by this process than by a job.
_FILES_OF_A_JOB = 1_000


def verify(state: TableState, depth: Depth, runner: Runner) -> TableVerification:
    """Verifies a table, and changes nothing.

    Args:
        runner: opens the files if there are many.

    Raises:
        UnsupportedFeatureError: the catalog restricts which rows may be read, and files are opened;
            or the table is encrypted, and its catalog has no key service.
        StorageError: the storage fails.
    """
    return _verified(state, depth, runner).result


def verify_and_repair(
    table: LoadedTable, depth: Depth, runner: Runner, options: CommitOptions
) -> tuple[TableVerification, TableState]:
    """Verifies a table, and corrects what metadata says wrongly of the files of a branch.

    It commits once, or not at all if there is nothing to correct.

    Args:
        options: with the branch.

    Raises:
        MissingFileError, CorruptFileError: a manifest of the branch cannot be read; nothing was
            repaired.
        CommitConflictError, CommitStateUnknownError: as for other commits.

    Other errors are those of `verify`.
    """
    found = _verified(table.state, depth, runner)
    action, mended = found.repair_of(table.state, options.branch)
    if not mended:
        return found.result, table.state
    committed = commit_snapshot(table.operations, action, options, table.state)
    result = replace(found.result, repaired=len(mended), snapshot_id=committed.snapshot.snapshot_id)
    return result, committed.state


@dataclass(slots=True)
class _Verified:
    """What was found, and what a repair needs.

    Attributes:
        corrections: by path and content offset of the file.
        updates: what drops wrong statistics files.
    """

    result: TableVerification
    walk: Walk
    corrections: Mapping[FileKey, FileCorrection]
    updates: Mapping[Finding, TableUpdate]

    def repair_of(self, state: TableState, branch: str) -> tuple[RepairFiles, list[Finding]]:
        """The action that repairs a branch, and the findings that it mends."""
        head = state.metadata.snapshot_by_ref(branch)
        own = [] if head is None else self.walk.of_snapshot(head.snapshot_id)
        paths = {manifest.path for manifest in own}
        files = self._wrong_files(own)
        mended = [
            finding
            for finding in self.result.findings
            if finding.is_repairable
            and (
                finding in self.updates
                or finding.file in paths
                or finding.file in files
                or (head is not None and finding.field == _total_of(finding, head.snapshot_id))
            )
        ]
        corrections = {key: each for key, each in self.corrections.items() if key[0] in files}
        updates = list(dict.fromkeys(self.updates[f] for f in mended if f in self.updates))
        return RepairFiles(corrections, frozenset(f.file for f in mended) & paths, updates), mended

    def _wrong_files(self, manifests: Iterable[WalkedManifest]) -> set[str]:
        """The files that these manifests describe wrongly; those of other branches may differ."""
        wanted = pa.array(sorted({path for path, _ in self.corrections}), pa.string())
        found = set[str]()
        for manifest in manifests if self.corrections else ():
            live = manifest.live()
            for entry in live.filter(pc.is_in(live.file_path, wanted)).entries():
                file = entry.data_file
                correction = self.corrections.get(file_key(file))
                if correction is not None and corrected(file, correction) != file:
                    found.add(file.file_path)
        return found


def _total_of(finding: Finding, snapshot_id: int) -> str | None:
    """The field of a finding about a total of a snapshot."""
    if finding.kind is not FindingKind.SNAPSHOT_TOTALS or finding.field is None:
        return None
    return f"{finding.field.partition(' ')[0]} of snapshot {snapshot_id}"


@dataclass(slots=True)
class _Found:
    findings: dict[Finding, None] = field(default_factory=dict)
    corrections: dict[FileKey, FileCorrection] = field(default_factory=dict)

    def add(self, findings: Iterable[Finding]) -> None:
        """Adds findings, each once."""
        self.findings.update(dict.fromkeys(findings))


def _verified(state: TableState, depth: Depth, runner: Runner) -> _Verified:
    start = time.monotonic()
    if depth.reads_footers:
        state.io.require_rows()
    state = replace(state, io=state.io.keeping_reads())
    metadata, found = state.metadata, _Found()
    with stage("read manifests"):
        walk = walk_metadata(state)
    found.add(walk.damage)
    for manifest in walk.manifests.values():
        found.add(check_manifest(manifest))
    found.add(check_snapshots(metadata, walk, state.metadata_location))
    listed = ListedFiles.of(walk)
    stored = look_up(state, walk, listed)
    found.add(stored.findings)
    for snapshot in walk.heads.values():
        if walk.is_whole(snapshot.snapshot_id):
            with stage("compare deletes"):
                found.add(check_files_of(state, walk, snapshot))
            if metadata.format_version >= 3:
                live = [m.live() for m in walk.of_snapshot(snapshot.snapshot_id)]
                found.add(check_row_id_ranges(live, metadata.next_row_id, state.metadata_location))
    updates = dict(check_statistics(state.io, metadata, walk, depth))
    found.add(updates)
    opened = 0
    if depth.reads_footers:
        opened = _check_files(state, walk, depth, runner, listed, stored, found)
    if depth.reads_rows:
        _check_rows(state, walk, found)
    sizes = np.maximum(stored.sizes, 0)
    looked = Looked(
        snapshots=len(metadata.snapshots),
        manifests=len(walk.manifests),
        files=len(listed),
        files_opened=opened,
        bytes=int(sizes.sum()),
        seconds=time.monotonic() - start,
    )
    findings = sorted(
        _settled(found), key=lambda each: (each.severity is not Severity.FAULT, each.kind)
    )
    result = TableVerification(state.name, depth, tuple(findings), looked, stored.orphans)
    return _Verified(result, walk, found.corrections, updates)


def _settled(found: _Found) -> Iterator[Finding]:
    """The findings, of which sizes are repairable only if a footer shows that the file is whole."""
    sized = {path for (path, _), each in found.corrections.items() if each.file_size_in_bytes}
    for finding in found.findings:
        is_size = finding.kind is FindingKind.FILE_SIZE and finding.field == "file_size_in_bytes"
        if is_size and finding.file not in sized:
            yield replace(finding, is_repairable=False)
        else:
            yield finding


def _check_files(
    state: TableState,
    walk: Walk,
    depth: Depth,
    runner: Runner,
    listed: ListedFiles,
    stored: StoredFiles,
    found: _Found,
) -> int:
    """Opens the files of branches and tags; returns how many."""
    metadata = state.metadata
    sizes = dict(zip(listed.paths.to_pylist(), stored.sizes.tolist(), strict=True))
    files = _to_check(walk, sizes)
    missing = listed.paths.filter(pa.array(stored.sizes == MISSING))
    schema = metadata.schema()
    task = CheckFiles(
        state.io,
        schema,
        dict(metadata.specs_by_id),
        table_name_mapping(metadata) or NameMapping(),
        metrics_modes(metadata.properties, schema, metadata.sort_order()),
        depth,
    )
    opened = 0

    def counted() -> Iterator[FileToCheck]:
        nonlocal opened
        for each in files:
            opened += 1
            yield each

    chosen, size = (runner, 500) if len(listed) > _FILES_OF_A_JOB else (LocalRunner(), 100)
    what = "read files" if depth.reads_rows else "read footers"
    with stage(what, _number_to_check(walk, missing), weigh=lambda group: (len(group), 0)):
        for group in chosen.run(task, in_tasks(counted(), size)):
            for each in group:
                found.add(each.findings)
                if each.correction:
                    known = found.corrections.get(each.key, FileCorrection())
                    found.corrections[each.key] = each.correction.and_(known)
    return opened


def _number_to_check(walk: Walk, missing: pa.StringArray) -> int:
    """How many files `_to_check` finds, if manifests say the same of a file."""
    live = [manifest.live() for manifest in walk.of_heads()]
    listed = pa.table(
        {
            "path": pa.chunked_array([columns.file_path for columns in live], pa.string()),
            "offset": pa.chunked_array([columns.content_offset for columns in live], pa.int64()),
        }
    )
    distinct = listed.group_by(["path", "offset"]).aggregate([])
    return len(distinct) - (pc.sum(pc.is_in(distinct["path"], missing)).as_py() or 0)


def _to_check(walk: Walk, sizes: Mapping[str, int]) -> Iterator[FileToCheck]:
    """The files of branches and tags that are there, each once for what manifests say of it."""
    rows = _rows_of_targets(walk)
    seen = set[tuple[FileKey, int]]()
    for manifest in walk.of_heads():
        live = manifest.live()
        for entry in live.entries():
            file = entry.data_file
            size = sizes[file.file_path]
            key = file_key(file), _digest(file)
            # A missing file is told already.
            if key in seen or size == -1:
                continue
            seen.add(key)
            target = None
            if file.is_deletion_vector:
                target = rows.get(file.referenced_data_file or "")
            yield FileToCheck(file, size if size >= 0 else None, target)


def _digest(file: DataFile) -> int:
    """The same number for entries that are compared alike."""
    maps = (getattr(file, name) for name in STATISTICS)
    known = (file.record_count, file.file_size_in_bytes, file.split_offsets, file.equality_ids)
    return hash((known, *(frozenset(each.items()) for each in maps)))


def _rows_of_targets(walk: Walk) -> dict[str, int]:
    """The numbers of rows of the data files that have deletion vectors."""
    manifests = walk.of_heads()
    wanted = pa.chunked_array([m.live().referenced_data_file for m in manifests], pa.string())
    targets = set(wanted.drop_null().to_pylist())
    if not targets:
        return {}
    live = [manifest.live() for manifest in manifests]
    return {
        path: count
        for columns in live
        for path, count in zip(
            columns.file_path.to_pylist(), columns.record_count.tolist(), strict=True
        )
        if path in targets and count >= 0
    }


def _check_rows(state: TableState, walk: Walk, found: _Found) -> None:
    for snapshot in walk.heads.values():
        if not walk.is_whole(snapshot.snapshot_id):
            continue
        if state.metadata.format_version >= 3:
            found.add(check_row_ids(state, snapshot))
        manifests = walk.of_snapshot(snapshot.snapshot_id)
        data = [m.live() for m in manifests if m.listed[0].content is ManifestContent.DATA]
        rows = {
            path: count
            for columns in data
            for path, count in zip(
                columns.file_path.to_pylist(), columns.record_count.tolist(), strict=True
            )
        }
        deletes = list(_position_deletes(walk, snapshot.snapshot_id))
        with stage("read position deletes", len(deletes)):
            for file in deletes:
                found.add(check_positions(state.io, file, rows))
                advance()


def _position_deletes(walk: Walk, snapshot_id: int) -> Iterator[DataFile]:
    for manifest in walk.of_snapshot(snapshot_id):
        if manifest.listed[0].content is ManifestContent.DELETES:
            for entry in manifest.live().entries():
                file = entry.data_file
                is_position = file.content is FileContent.POSITION_DELETES
                if is_position and not file.is_deletion_vector:
                    yield file
