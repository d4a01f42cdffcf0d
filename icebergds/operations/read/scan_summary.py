"""Summarises a planned scan: what it reads, what it skips and why (`ScanSummary`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.display import html_table
from icebergds.expr.nodes import FALSE
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import (
    PlannedScan,
    native_obstacle_of,
    native_rule_of,
    task_groups_of,
)
from icebergds.operations.read.scan_counts import deletes_by_kind
from icebergds.operations.read.scan_text import scan_lines, scan_text
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.counts import PlanCounts
from icebergds.spec.manifest import DataFile
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot


@dataclass(frozen=True, slots=True)
class DeleteCounts:
    """The delete files that a scan reads.

    Attributes:
        data_files: the data files that they may apply to.
        position_deletes, deleted_by_vectors, equality_deletes: positions, positions and keys in
            these files; also such as delete nothing.
        equality_keys: the names of the key columns, for each combination of them.
    """

    data_files: int = 0
    position_delete_files: int = 0
    position_deletes: int = 0
    deletion_vectors: int = 0
    deleted_by_vectors: int = 0
    equality_delete_files: int = 0
    equality_deletes: int = 0
    equality_keys: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """What a scan of one snapshot reads, and what planning skipped; `str` shows it as text.

    Attributes:
        table: the table's name.
        snapshot: None if the table has none.
        chosen_by: how the snapshot was chosen, such as `branch main`.
        columns: the columns that are read.
        filter: the filter as it was given.
        selects_nothing: the filter selects no rows whatever the table holds, so nothing was read.
        counts: manifests and files that were read, kept and skipped.
        rows: rows in the kept files, before deletes and the filter; None if a file does not say.
        size_in_bytes: the size of the kept files.
        deletes: the delete files that apply to them.
        tasks: the tasks of icebergds' own reader; Spark splits the files of native scans itself.
        native_files: how many files Spark's own Parquet reader may read.
        not_native: why it may not read others, with the number of these files.
        native_obstacle: why it may read none; None if it may read some.
        native_scans: whether native scans are on in the session; None without one.
        pushdown: whether Spark's filters narrow the scan further.
    """

    table: str
    snapshot: Snapshot | None
    chosen_by: str
    columns: tuple[str, ...]
    filter: str | None
    selects_nothing: bool
    counts: PlanCounts
    rows: int | None
    size_in_bytes: int
    deletes: DeleteCounts
    tasks: int
    native_files: int
    not_native: Mapping[str, int]
    native_obstacle: str | None
    native_scans: bool | None
    pushdown: bool

    def __str__(self) -> str:
        return scan_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(name, "\n".join(texts)) for name, texts in scan_lines(self)]
        return html_table(f"Scan of {self.table}", (), rows)


def summarize(
    scan: PlannedScan,
    options: ReadOptions,
    filter: str | None,
    native_scans: bool | None,
    obstacle: str | None = None,
) -> ScanSummary:
    """Summarises a scan that was planned for Spark's own reader too.

    Args:
        options: of the scan.
        filter: as the user gave it.
        native_scans: whether native scans are on in the session; None without one.
        obstacle: what keeps Spark's own reader from all files of this scan alone.
    """
    rule = native_rule_of(scan) if obstacle is None else None
    reasons: list[str | None] = [] if rule is None else rule.obstacles(scan.files)
    others = Counter(reason for reason in reasons if reason is not None)
    ours = scan.files
    if native_scans and not options.pushdown and rule is not None:
        ours = tuple(file for file, why in zip(ours, reasons, strict=True) if why is not None)
    rows = [file.entry.data_file.record_count for file in scan.files]
    return ScanSummary(
        table=scan.state.name,
        snapshot=scan.snapshot,
        chosen_by=_chosen_by(options.time_travel),
        columns=tuple(column.name for column in scan.plan.columns.fields),
        filter=filter,
        selects_nothing=scan.plan.row_filter == FALSE,
        counts=scan.counts,
        rows=sum(rows) if all(count >= 0 for count in rows) else None,
        size_in_bytes=sum(file.entry.data_file.file_size_in_bytes for file in scan.files),
        deletes=_deletes(scan),
        tasks=len(task_groups_of(scan, ours)),
        native_files=reasons.count(None),
        not_native=dict(others.most_common()),
        native_obstacle=obstacle or native_obstacle_of(scan),
        native_scans=native_scans,
        pushdown=options.pushdown,
    )


def _chosen_by(travel: TimeTravel) -> str:
    match travel:
        case TimeTravel(snapshot_id=int()):
            return "snapshot id"
        case TimeTravel(as_of_ms=int()):
            return "time"
        case TimeTravel(tag=str() as tag):
            return f"tag {tag}"
        case TimeTravel(version=str() as version):
            return f"version {version}"
        case _:
            return f"branch {travel.branch or MAIN_BRANCH}"


def _deletes(scan: PlannedScan) -> DeleteCounts:
    deletes = deletes_by_kind(scan.files)
    keys = {tuple(file.equality_ids) for file in deletes.keys}
    applied = (file.deletes for file in scan.files)
    return DeleteCounts(
        sum(bool(each.position_deletes or each.equality_deletes) for each in applied),
        len(deletes.positions),
        _rows(deletes.positions),
        len(deletes.vectors),
        _rows(deletes.vectors),
        len(deletes.keys),
        _rows(deletes.keys),
        tuple(tuple(_name(scan, field_id) for field_id in ids) for ids in sorted(keys)),
    )


def _rows(files: list[DataFile]) -> int:
    return sum(max(file.record_count, 0) for file in files)


def _name(scan: PlannedScan, field_id: int) -> str:
    schemas = (scan.plan.table_schema, *scan.state.metadata.schema_history)
    names = (schema.find_name(field_id) for schema in schemas)
    return next((name for name in names if name is not None), f"field {field_id}")
