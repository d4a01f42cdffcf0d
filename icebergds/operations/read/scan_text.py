"""Shows the summary of a scan as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from icebergds.display import WIDTH, counted, joined, printable, size_text, time_text

if TYPE_CHECKING:
    from icebergds.operations.read.scan_summary import DeleteCounts, ScanSummary
    from icebergds.scan.plan.counts import PlanCounts

_INDENT = 11
_ROOM = WIDTH - _INDENT
_MOST_FILTER = 10 * _ROOM


def scan_text(summary: ScanSummary) -> str:
    """The text of `scan.explain()`: a line for each part of the scan."""
    lines = ["== Iceberg Scan =="]
    for name, texts in scan_lines(summary):
        lines += [f"{'' if index else name:<{_INDENT}}{text}" for index, text in enumerate(texts)]
    return "\n".join(lines)


def scan_lines(summary: ScanSummary) -> Iterator[tuple[str, list[str]]]:
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
    yield "deletes", list(_deletes(summary.deletes)) or ["none"]
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
        )
        if number
    ]
    if files.by_summaries is None:
        skipped.append("those in skipped manifests, which were not counted")
    kept = f"{files.kept:,} kept"
    if files.by_summaries is not None:
        total = files.kept + files.by_summaries + files.by_partition + files.by_metrics
        kept = f"{files.kept:,} of {total + files.empty:,} kept"
    if files.kept:
        rows = "an unknown number of rows" if summary.rows is None else counted(summary.rows, "row")
        kept += f": {size_text(summary.size_in_bytes)}, {rows}"
    lines = [kept]
    if skipped:
        lines.append(f"skipped: {', '.join(skipped)}")
    if files.empty:
        lines.append(f"{files.empty:,} without rows")
    return lines


def _deletes(deletes: DeleteCounts) -> Iterator[str]:
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
    native, files = summary.native_files, summary.counts.files.kept
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
