"""Summarises a planned scan: what it reads, what it skips and why (`ScanSummary`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from icebergds.display import WIDTH, counted, html_table, joined, printable, size_text, time_text
from icebergds.expr.nodes import FALSE
from icebergds.operations.read.aggregates import Answered
from icebergds.operations.read.chosen_files import deletes_by_kind
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import (
    PlannedScan,
    native_obstacle_of,
    native_rule_of,
    task_groups_of,
)
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.counts import PlanCounts
from icebergds.spec.manifest import DataFile
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot

_INDENT = 11
_ROOM = WIDTH - _INDENT
_MOST_FILTER = 10 * _ROOM


@dataclass(frozen=True, slots=True)
class DeleteCounts:
    """The delete files that a scan reads.

    Attributes:
        data_files: the data files that they may apply to.
        position_deletes, deleted_by_vectors, equality_deletes: positions, positions and keys in
            these files, including those that delete nothing.
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
        answered_files: how many of the kept files are not read, because metadata answers what is
            asked of them.
        later_files: how many of them are not read, because they have none of the first rows.
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
    answered_files: int = 0
    later_files: int = 0

    def __str__(self) -> str:
        lines = ["== Iceberg Scan =="]
        for name, texts in _lines(self):
            lines += [
                f"{'' if index else name:<{_INDENT}}{text}" for index, text in enumerate(texts)
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(name, "\n".join(texts)) for name, texts in _lines(self)]
        return html_table(f"Scan of {self.table}", (), rows)


def summarize(
    scan: PlannedScan,
    options: ReadOptions,
    filter: str | None,
    native_scans: bool | None,
    obstacle: str | None = None,
    answered: Answered | None = None,
) -> ScanSummary:
    """Summarises a scan that was planned for Spark's own reader too.

    Args:
        options: the options of the scan.
        filter: as the user gave it.
        native_scans: whether native scans are on in the session; None without one.
        obstacle: what keeps Spark's own reader from all files of this scan alone.
        answered: what metadata answers of aggregates, so that these files are not read.
    """
    kept = scan.files
    if answered is not None:
        scan = replace(scan, files=answered.unread)
    rule = native_rule_of(scan) if obstacle is None else None
    reasons: list[str | None] = [] if rule is None else rule.obstacles(scan.files)
    others = Counter(reason for reason in reasons if reason is not None)
    ours = scan.files
    if native_scans and not options.pushdown and rule is not None:
        ours = tuple(file for file, why in zip(ours, reasons, strict=True) if why is not None)
    rows = [file.entry.data_file.record_count for file in kept]
    return ScanSummary(
        table=scan.state.name,
        snapshot=scan.snapshot,
        chosen_by=_chosen_by(options.time_travel),
        columns=tuple(column.name for column in scan.plan.columns.fields),
        filter=filter,
        selects_nothing=scan.plan.row_filter == FALSE,
        counts=scan.counts,
        rows=sum(rows) if all(count >= 0 for count in rows) else None,
        size_in_bytes=sum(file.entry.data_file.file_size_in_bytes for file in kept),
        deletes=_deletes(scan),
        tasks=len(task_groups_of(scan, ours)),
        native_files=reasons.count(None),
        not_native=dict(others.most_common()),
        native_obstacle=obstacle or native_obstacle_of(scan),
        native_scans=native_scans,
        pushdown=options.pushdown,
        answered_files=len(kept) - len(scan.files),
        later_files=scan.counts.files.kept - len(kept),
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


def _lines(summary: ScanSummary) -> Iterator[tuple[str, list[str]]]:
    """The parts of a scan, each with its lines."""
    yield "table", [printable(summary.table, _ROOM)]
    yield "snapshot", _snapshot(summary)
    yield "columns", [f"{len(summary.columns):,}: {joined(summary.columns, 'column', _ROOM - 6)}"]
    if summary.filter is not None:
        yield "filter", _wrapped(printable(" ".join(summary.filter.splitlines()), _MOST_FILTER))
    if summary.snapshot is None:
        return
    if summary.selects_nothing:
        yield "files", ["none: the filter selects no rows, so no manifest was read"]
        return
    counts = summary.counts
    yield "manifests", list(_manifests(counts))
    yield "files", _files(summary)
    yield "deletes", list(_deletes_shown(summary.deletes)) or ["none"]
    by_spark = summary.native_scans and summary.native_files and not summary.pushdown
    yield "tasks", [f"{summary.tasks:,}{', and those of native scans' if by_spark else ''}"]
    yield "reader", list(_reader(summary))


def _snapshot(summary: ScanSummary) -> list[str]:
    snapshot = summary.snapshot
    if snapshot is None:
        return ["none: the table has no rows yet"]
    operation = printable(snapshot.operation or "unknown operation", 20)
    return [
        f"{snapshot.snapshot_id}, {operation}, {time_text(snapshot.timestamp_ms)}",
        f"chosen by {printable(summary.chosen_by, _ROOM - 10)}",
    ]


def _wrapped(text: str) -> list[str]:
    """Lines that are cut at spaces, if there are any."""
    lines = []
    while len(text) > _ROOM:
        at = text.rfind(" ", 1, _ROOM + 1)
        end = at if at > 0 else _ROOM
        lines.append(text[:end])
        text = text[end:].removeprefix(" ")
    return [*lines, text]


def _manifests(counts: PlanCounts) -> Iterator[str]:
    for of, manifests in (("", counts.data_manifests), ("of deletes: ", counts.delete_manifests)):
        if of and not manifests.listed:
            continue
        yield f"{of}{manifests.read:,} of {manifests.listed:,} read"
        causes = (
            (manifests.by_summaries, "by partition summaries"),
            (manifests.without_files, "without live files"),
        )
        if skipped := [f"{number:,} {cause}" for number, cause in causes if number]:
            yield f"{of}skipped: {', '.join(skipped)}"


def _files(summary: ScanSummary) -> list[str]:
    files = summary.counts.files
    skipped = [
        f"{number:,} {cause}"
        for number, cause in (
            (files.by_summaries, "in skipped manifests"),
            (files.by_partition, "by partition values"),
            (files.by_metrics, "by column metrics"),
            (summary.later_files, "as others have the first rows"),
        )
        if number
    ]
    if files.by_summaries is None:
        skipped.append("those in skipped manifests, which were not counted")
    read = files.kept - summary.later_files
    kept = f"{read:,} kept"
    if files.by_summaries is not None:
        total = files.kept + files.by_summaries + files.by_partition + files.by_metrics
        kept = f"{read:,} of {total + files.empty:,} kept"
    if read:
        rows = "an unknown number of rows" if summary.rows is None else counted(summary.rows, "row")
        kept += f": {size_text(summary.size_in_bytes)}, {rows}"
    lines = [kept]
    if skipped:
        lines.append(f"skipped: {', '.join(skipped)}")
    if files.empty:
        lines.append(f"{files.empty:,} without rows")
    if summary.answered_files:
        lines.append(f"{summary.answered_files:,} answered from metadata, not read")
    return lines


def _deletes_shown(deletes: DeleteCounts) -> Iterator[str]:
    if deletes.deletion_vectors:
        vectors = counted(deletes.deletion_vectors, "deletion vector")
        yield f"{vectors} with {counted(deletes.deleted_by_vectors, 'position')}"
    if deletes.position_delete_files:
        files = counted(deletes.position_delete_files, "position delete file")
        yield f"{files} with {counted(deletes.position_deletes, 'position')}"
    if deletes.equality_delete_files:
        files = counted(deletes.equality_delete_files, "equality delete file")
        yield f"{files} with {counted(deletes.equality_deletes, 'key')}"
        keys = [f"({', '.join(names)})" for names in deletes.equality_keys]
        yield f"keys: {joined(keys, 'combination', _ROOM - 6)}"
    if deletes.data_files:
        yield f"they may apply to {counted(deletes.data_files, 'data file')}"


def _reader(summary: ScanSummary) -> Iterator[str]:
    native = summary.native_files
    files = summary.counts.files.kept - summary.answered_files - summary.later_files
    if summary.answered_files and not files:
        yield "none: metadata answers the aggregates"
        return
    share = f"{native:,} of {counted(files, 'file')}"
    if summary.pushdown:
        yield "icebergds; Spark's filters may narrow the scan further (option pushdown)"
        return
    if summary.native_scans and native:
        yield f"native: Spark's own Parquet reader reads {share}"
    else:
        yield "icebergds"
        if native:
            where = "" if summary.native_scans is None else ", which are off in this session"
            yield f"{share} could be read by native scans{where}"
    if summary.native_obstacle is not None:
        yield printable(f"no native scan: {summary.native_obstacle}", _ROOM)
    for reason, number in summary.not_native.items():
        yield printable(f"no native scan of {counted(number, 'file')}: {reason}", 2 * _ROOM)
