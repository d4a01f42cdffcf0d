"""Plans the files of a snapshot's scan on the driver (spec: Scan Planning).

Manifests are pruned by their partition summaries, files by their partition and metrics, with the
partition spec of their manifest. The remaining files are joined with the deletes that apply to
them; `scan.plan.task_groups` splits and packs them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import compress, repeat
from typing import TypeVar

import numpy as np

from icebergds.display import counted
from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import FALSE, TRUE, Expr, relaxed
from icebergds.formats.manifests.counts import check_totals
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import EntryColumns, read_manifest_columns
from icebergds.formats.manifests.side_by_side import (
    manifest_decoders,
    reading_ahead,
    uncollected,
)
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.reporting import advancing, stage
from icebergds.scan.plan.counts import FileCounts, PlanCounts, count_plan
from icebergds.scan.plan.delete_index import AppliedDeletes, DeleteIndex, key_types
from icebergds.scan.plan.partition_filters import PartitionFilters
from icebergds.scan.plan.prune import matching_entries, prune_entries
from icebergds.scan.tasks import ChangeType, FeedCommit
from icebergds.spec.manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    without_metrics,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_LOG = logging.getLogger(__name__)
_FILES_WITH_METRICS = 256
# How many file names a warning shows.
_SHOWN = 3
_FILES_AT_A_TIME = 4096
_BYTES_AT_A_TIME = 16 << 20
_NO_DELETES = AppliedDeletes()
_Gathered = TypeVar("_Gathered")


@dataclass(frozen=True, slots=True)
class FileChange:
    """How a commit changed the rows of a data file.

    Attributes:
        deletes: the change covers only live rows that these deletes delete; None: all live rows.
    """

    change_type: ChangeType
    commit: FeedCommit
    deletes: AppliedDeletes | None = None


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file that may have rows of the scan, and the deletes that apply to it.

    Attributes:
        snapshot_id: the snapshot that the deletes are from, if a plan has files of several
            snapshots.
        contradicted: the statistics that planning read show that partition columns have values
            other than the partition's, so the partition does not determine what a filter
            selects.
    """

    entry: ManifestEntry
    deletes: AppliedDeletes
    snapshot_id: int = 0
    change: FileChange | None = None
    contradicted: bool = False

    @property
    def has_deletes(self) -> bool:
        return bool(self.deletes.position_deletes or self.deletes.equality_deletes)


@dataclass(frozen=True, slots=True)
class NewDeletes:
    """Equality deletes that a snapshot does not have, and that apply to its rows all the same.

    Attributes:
        spec: their partition spec, which the table may lack.
    """

    entries: tuple[ManifestEntry, ...]
    spec: PartitionSpec


def _all(_: PlannedFile) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """The files of a scan, and what planning read and skipped."""

    files: list[PlannedFile]
    counts: PlanCounts


def plan_files(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr = TRUE,
    *,
    stats_of: frozenset[int] = frozenset(),
    wrong_counts: WrongCounts = WrongCounts.FAIL,
    with_metrics: bool = True,
    chosen: Callable[[PlannedFile], bool] = _all,
) -> PlannedFiles:
    """Finds a scan's data files and their deletes, and counts what was skipped.

    No file is found if none can have matching rows.

    Args:
        snapshot: the snapshot to read; None reads nothing.
        schema: the schema that is read.
        row_filter: bound to `schema`.
        stats_of: field ids of columns whose metrics are read in addition to those of the filter.
        wrong_counts: what to do if a manifest's files differ from the counts in the manifest list.
        with_metrics: whether the data files keep the metrics that planning has read.
        chosen: selects the files to return; all by default. The others take no memory.

    Raises:
        MissingFileError: a manifest list or manifest does not exist.
        CorruptFileError: a manifest list or manifest is damaged.
        InvalidMetadataError: a data file has two deletion vectors, or a spec is unknown.
        UnsupportedFeatureError: the manifest list is encrypted and the table's keys are not
            available, or the table's catalog restricts what may be read.
    """

    def listed(files: Iterable[PlannedFile]) -> list[PlannedFile]:
        return list(filter(chosen, files))

    found, counts = gather_files(
        io,
        metadata,
        snapshot,
        schema,
        row_filter,
        listed,
        stats_of=stats_of,
        wrong_counts=wrong_counts,
        with_metrics=with_metrics,
    )
    return PlannedFiles([file for files in found for file in files], counts)


def gather_files(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr,
    gather: Callable[[Iterable[PlannedFile]], _Gathered],
    *,
    stats_of: frozenset[int] = frozenset(),
    wrong_counts: WrongCounts = WrongCounts.FAIL,
    with_metrics: bool = True,
    all_deletes: bool = False,
    more_deletes: NewDeletes | None = None,
    by_partition: bool = True,
) -> tuple[list[_Gathered], PlanCounts]:
    """Calls a function with the files of each manifest; further arguments as for `plan_files`.

    Args:
        gather: called by several threads; without metrics, with the files of a large manifest in
            parts. Called again for all files if some of them turn out to need further deletes.
        all_deletes: read the deletes of all partitions, including those that the filter excludes.
        more_deletes: deletes to apply besides those of the snapshot.
        by_partition: whether the filter skips what its partition excludes, also files that have
            other values than their partition says, in manifests that are not read.

    Returns:
        The function's results, in the order of the files, and what was skipped.
    """
    if snapshot is None or row_filter == FALSE:
        return [], PlanCounts()
    started = time.perf_counter()
    asked = row_filter
    filters = PartitionFilters(metadata.specs_by_id, schema, row_filter if by_partition else TRUE)
    row_filter = relaxed(row_filter)
    of_deletes = PartitionFilters(metadata.specs_by_id, schema, TRUE) if all_deletes else filters
    listed, counting = all_manifests(io, snapshot, wrong_counts)
    manifests = [
        m
        for m in listed
        if (filters if m.content is ManifestContent.DATA else of_deletes).might_match(m)
    ]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    io = reading_ahead(io, [*deletes, *data])
    readers = manifest_decoders(manifests, None if with_metrics else _BYTES_AT_A_TIME)
    with (
        stage("read manifests", len(manifests)),
        ThreadPoolExecutor(readers) as pool,
        uncollected(),
    ):
        side_by_side = pool.map if readers > 1 and len(manifests) > 1 else map

        written_with: set[bytes | None] = set()

        def read_deletes(manifest: ManifestFile) -> list[ManifestEntry]:
            columns = read_manifest_columns(
                io,
                manifest,
                metadata.specs_by_id,
                schema,
                history=metadata.schema_history,
                wrong_counts=counting,
            )
            written_with.add(columns.written_with)
            return matching_entries(columns, of_deletes.of(manifest), TRUE)

        of_manifests = advancing(side_by_side(read_deletes, deletes))
        delete_entries = [entry for found in of_manifests for entry in found]
        specs = metadata.specs_by_id
        if more_deletes is not None:
            delete_entries += more_deletes.entries
            specs = {**specs, more_deletes.spec.spec_id: more_deletes.spec}
        equality_ids = frozenset(i for e in delete_entries for i in e.data_file.equality_ids)
        index = DeleteIndex(
            delete_entries,
            specs,
            key_types(metadata.schema_history, equality_ids),
        )
        stats_ids = field_ids(row_filter) | equality_ids | stats_of

        def read_data(manifest: ManifestFile) -> list[tuple[_Gathered, FileCounts]]:
            columns = read_manifest_columns(
                io,
                manifest,
                metadata.specs_by_id,
                schema,
                history=metadata.schema_history,
                stats_ids=stats_ids,
                wrong_counts=counting,
            )
            written_with.add(columns.written_with)
            parts = [columns] if with_metrics else _parts(columns)
            spec = metadata.specs_by_id[manifest.partition_spec_id]
            return [gathered(part, filters.of(manifest), spec) for part in parts]

        odd: list[ManifestEntry] = []
        beyond: list[int] = []

        def gathered(
            columns: EntryColumns, partition_filter: Expr, spec: PartitionSpec
        ) -> tuple[_Gathered, FileCounts]:
            # Files without rows may not exist: some writers list them and never create them.
            with_rows = columns.filter(columns.record_count != 0)
            empty = len(columns) - len(with_rows)
            if not with_metrics and row_filter == partition_filter == TRUE:
                return gather(_bare_files(with_rows, index)), FileCounts(
                    len(with_rows), empty=empty
                )
            pruned = prune_entries(with_rows, partition_filter, row_filter, spec)
            counts = FileCounts(
                kept=len(pruned.entries),
                by_partition=pruned.by_partition,
                by_metrics=pruned.by_metrics,
                empty=empty,
            )
            if pruned.contradicted:
                odd.extend(compress(pruned.entries, pruned.contradicted))
                beyond.append(pruned.beyond)
            flags = pruned.contradicted or repeat(False)
            files = (
                PlannedFile(entry, index.deletes_for(entry), contradicted=is_odd)
                for entry, is_odd in zip(pruned.entries, flags, strict=False)
            )
            return gather(files if with_metrics else map(_bare, files)), counts

        found = [part for parts in advancing(side_by_side(read_data, data)) for part in parts]
    if any(beyond) and of_deletes is filters:
        return gather_files(
            io,
            metadata,
            snapshot,
            schema,
            asked,
            gather,
            stats_of=stats_of,
            wrong_counts=wrong_counts,
            with_metrics=with_metrics,
            all_deletes=True,
            more_deletes=more_deletes,
            by_partition=by_partition,
        )
    _warn_of_contradicted(metadata.location, odd)
    counts = count_plan(listed, manifests, [files for _, files in found])
    counts = replace(counts, written_with=frozenset(written_with))
    _LOG.info(
        "%s: planned snapshot %d in %.0f ms: %d manifests read, %d skipped; %d data files kept, %d "
        "skipped; %d delete files",
        metadata.location,
        snapshot.snapshot_id,
        1000 * (time.perf_counter() - started),
        len(manifests),
        len(listed) - len(manifests),
        counts.files.kept,
        sum(files.skipped for _, files in found),
        len(delete_entries),
    )
    return [gathered for gathered, _ in found], counts


def _warn_of_contradicted(location: str, entries: Sequence[ManifestEntry]) -> None:
    if not entries:
        return
    files = [(entry.data_file.file_path, entry.data_file.partition) for entry in entries]
    shown = ", ".join(f"{path} (partition {values})" for path, values in files[:_SHOWN])
    _LOG.warning(
        "%s: %s with other values in partition columns than in their partitions: %s%s. The values "
        "in the files are read, while other engines may read those of the partitions, and filters "
        "on these columns may miss such rows; write the rows anew",
        location,
        counted(len(files), "data file"),
        shown,
        " and others" if len(files) > _SHOWN else "",
    )


def _parts(columns: EntryColumns) -> Iterator[EntryColumns]:
    """The entries of a manifest in parts whose objects take little memory."""
    for start in range(0, len(columns), _FILES_AT_A_TIME):
        yield columns.take(np.arange(start, min(start + _FILES_AT_A_TIME, len(columns))))


def _bare_files(columns: EntryColumns, index: DeleteIndex) -> Iterator[PlannedFile]:
    """The files of a manifest without metrics, which are needed only to find their deletes.

    Few files have metrics at a time: the metrics would take more memory than the files.
    """
    entries = replace(columns, stats={}).entries()
    compared = [index.compares_metrics(entry) for entry in entries]
    deletes = [
        _NO_DELETES if with_metrics else index.deletes_for(entry)
        for entry, with_metrics in zip(entries, compared, strict=True)
    ]
    rows = np.flatnonzero(compared)
    for start in range(0, len(rows), _FILES_WITH_METRICS):
        some = rows[start : start + _FILES_WITH_METRICS]
        for row, entry in zip(some.tolist(), columns.take(some).entries(), strict=True):
            deletes[row] = index.deletes_for(entry)
    return map(PlannedFile, entries, deletes)


def _bare(file: PlannedFile) -> PlannedFile:
    entry = file.entry
    return replace(file, entry=replace(entry, data_file=without_metrics(entry.data_file)))


def matching_manifests(
    io: FileIO, snapshot: Snapshot, filters: PartitionFilters, wrong_counts: WrongCounts
) -> tuple[list[ManifestFile], WrongCounts]:
    """The manifests of a snapshot that may list matching files, and how strictly to check them.

    Errors are those of `plan_files`.
    """
    listed, wrong_counts = all_manifests(io, snapshot, wrong_counts)
    return [m for m in listed if filters.might_match(m)], wrong_counts


def all_manifests(
    io: FileIO, snapshot: Snapshot, wrong_counts: WrongCounts
) -> tuple[tuple[ManifestFile, ...], WrongCounts]:
    """The manifests of a snapshot whose rows are read or counted, and how strictly to check them.

    Errors are those of `plan_files`.
    """
    io.require_rows()
    return checked_manifests(io, snapshot, wrong_counts)


def checked_manifests(
    io: FileIO, snapshot: Snapshot, wrong_counts: WrongCounts
) -> tuple[tuple[ManifestFile, ...], WrongCounts]:
    """Like `all_manifests`, for callers that only delete files."""
    manifests = read_snapshot_manifests(io, snapshot)
    return manifests, check_totals(snapshot, manifests, wrong_counts)
