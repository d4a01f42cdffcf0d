"""Finds the files of a read: by the manifests, or by asking the catalog's server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from icebergds.commit.operations import ServerPlanner, TableState
from icebergds.expr.json import anonymous_filter_to_json
from icebergds.expr.nodes import FALSE, Expr
from icebergds.metrics import ScanReport
from icebergds.scan.plan.counts import FileCounts, ManifestCounts, PlanCounts
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import PlannedFile, PlannedFiles, plan_files
from icebergds.scan.plan.task_groups import timestamp_columns
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import DataFile, FileContent, ManifestEntry, ManifestEntryStatus
from icebergds.spec.partition import identity_columns
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.snapshot import Snapshot

# Columns whose values a server does not return.
_OF_MANIFESTS = frozenset({ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id})
# A server returns no sequence numbers, but only deletes that apply: so these get a higher one.
_OF_DATA, _OF_DELETES = 0, 1


def choose_files(
    state: TableState,
    snapshot: Snapshot | None,
    plan: ReadPlan,
    row_filter: Expr,
    stats_of: frozenset[int] = frozenset(),
) -> PlannedFiles:
    """Finds the data files of a read and their deletes; none if no file can have matching rows.

    Args:
        row_filter: bound; that of the plan, or a narrower one.
        stats_of: field ids of columns whose metrics are read besides those of the filter, if the
            manifests are read.

    Errors are those of `plan_files` and `ServerPlanner.plan`.
    """
    if (planner := planner_of(state, snapshot, plan)) is not None:
        assert snapshot is not None
        if row_filter == FALSE:
            return PlannedFiles([], PlanCounts())
        listed = planner.plan(snapshot.snapshot_id, row_filter, plan.table_schema, state.metadata)
        return _planned(listed)
    if plan.name_mapping is not None:
        # The table's files may be imported. For some of them, Java records milliseconds in the
        # bounds, and the partitions of their folders, whatever they store.
        stats_of |= timestamp_columns(plan.table_schema) | identity_columns(plan.specs)
    started = time.perf_counter()
    found = plan_files(
        state.io,
        state.metadata,
        snapshot,
        plan.table_schema,
        row_filter,
        stats_of=stats_of,
        wrong_counts=plan.wrong_counts,
    )
    if snapshot is not None:
        duration, snapshot_id = time.perf_counter() - started, snapshot.snapshot_id
        state.report(lambda: _report(state.name, snapshot_id, plan, row_filter, found, duration))
    return found


def _report(
    table: str,
    snapshot_id: int,
    plan: ReadPlan,
    row_filter: Expr,
    found: PlannedFiles,
    duration: float,
) -> ScanReport:
    schema, columns = plan.table_schema, plan.columns
    ids = sorted(columns.fields_by_id)
    return ScanReport(
        table,
        snapshot_id,
        anonymous_filter_to_json(row_filter, schema),
        schema.schema_id,
        tuple(ids),
        tuple(columns.find_name(field_id) or "" for field_id in ids),
        scan_metrics(found),
        duration,
    )


def planner_of(
    state: TableState, snapshot: Snapshot | None, plan: ReadPlan
) -> ServerPlanner | None:
    """The server that plans a read; None if this process does.

    A server knows columns by the names that they had in the snapshot, so this process plans reads
    with another schema, and reads of columns whose values are in manifests.
    """
    if state.planner is None or snapshot is None or plan.for_changes:
        return None
    if snapshot.schema_id != plan.table_schema.schema_id:
        return None
    if _OF_MANIFESTS & plan.columns.fields_by_id.keys():
        return None
    return state.planner


def _planned(listed: Iterable[tuple[DataFile, tuple[DataFile, ...]]]) -> PlannedFiles:
    versions: dict[tuple[str, ...], tuple[int, AppliedDeletes]] = {}
    found = [
        _file(data_file, deletes, versions)
        for data_file, deletes in listed
        if data_file.record_count
    ]
    return PlannedFiles(found, PlanCounts(files=FileCounts(kept=len(found), by_summaries=None)))


def _file(
    data_file: DataFile,
    deletes: Sequence[DataFile],
    versions: dict[tuple[str, ...], tuple[int, AppliedDeletes]],
) -> PlannedFile:
    # Without sequence numbers, files to which other deletes apply must not share key sets.
    key = tuple(f"{each.file_path}#{each.content_offset}" for each in deletes)
    if key not in versions:
        keys = FileContent.EQUALITY_DELETES
        applied = AppliedDeletes(
            tuple(_entry(each, _OF_DELETES) for each in deletes if each.content is not keys),
            tuple(_entry(each, _OF_DELETES) for each in deletes if each.content is keys),
        )
        versions[key] = len(versions), applied
    version, applied = versions[key]
    return PlannedFile(_entry(data_file, _OF_DATA), applied, snapshot_id=version)


def _entry(file: DataFile, sequence_number: int) -> ManifestEntry:
    return ManifestEntry(ManifestEntryStatus.EXISTING, 0, sequence_number, sequence_number, file)


@dataclass(frozen=True, slots=True)
class DeletesByKind:
    """The delete files of a scan, each once."""

    positions: list[DataFile] = field(default_factory=list)
    vectors: list[DataFile] = field(default_factory=list)
    keys: list[DataFile] = field(default_factory=list)


def deletes_by_kind(files: Iterable[PlannedFile]) -> DeletesByKind:
    """The delete files that apply to some of the files."""
    # Many files share one tuple of deletes.
    groups = {
        id(group): group
        for file in files
        for group in (file.deletes.position_deletes, file.deletes.equality_deletes)
    }
    deletes = {
        (entry.data_file.file_path, entry.data_file.content_offset): entry.data_file
        for group in groups.values()
        for entry in group
    }
    found = DeletesByKind()
    for file in deletes.values():
        by_keys = file.content is FileContent.EQUALITY_DELETES
        kind = found.keys if by_keys else found.positions
        (found.vectors if file.is_deletion_vector else kind).append(file)
    return found


def scan_metrics(found: PlannedFiles) -> Mapping[str, int]:
    """The metrics of a scan: counts, and sizes in bytes, whose names end in `-in-bytes`."""
    deletes = deletes_by_kind(found.files)
    every = [*deletes.positions, *deletes.vectors, *deletes.keys]
    files = found.counts.files
    return {
        "result-data-files": len(found.files),
        "result-delete-files": len(every),
        "total-file-size-in-bytes": sum(
            each.entry.data_file.file_size_in_bytes for each in found.files
        ),
        "total-delete-file-size-in-bytes": sum(file.stored_size for file in every),
        "skipped-data-files": files.skipped,
        "equality-delete-files": len(deletes.keys),
        "positional-delete-files": len(deletes.positions),
        "dvs": len(deletes.vectors),
        **_manifests("data", found.counts.data_manifests),
        **_manifests("delete", found.counts.delete_manifests),
    }


def _manifests(kind: str, counts: ManifestCounts) -> dict[str, int]:
    return {
        f"total-{kind}-manifests": counts.listed,
        f"scanned-{kind}-manifests": counts.read,
        f"skipped-{kind}-manifests": counts.skipped,
    }
