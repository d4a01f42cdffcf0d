"""Plans reads of metadata tables: which manifests, manifest lists or delete files are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TypeVar

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.expr.bind import bind, field_ids
from icebergds.expr.evaluate import holds
from icebergds.expr.metrics import manifest_might_match
from icebergds.expr.nodes import BoundPredicate, Expr, evaluate
from icebergds.formats.manifests import layout as ids
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.side_by_side import manifest_decoders, reading_ahead
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.near import readers_of
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.metadata_tables.metadata_rows import (
    manifest_row,
    rows_of_lists,
    rows_of_metadata,
)
from icebergds.operations.metadata_tables.schemas import (
    metadata_table_schema,
    partition_parts_schema,
)
from icebergds.operations.metadata_tables.tasks import (
    AddUpPartitions,
    MetadataTablePlan,
    MetadataTask,
    ReadManifestLists,
    ReadManifests,
    ReadPositionDeletes,
    ReadyRows,
)
from icebergds.operations.read.options import ReadOptions, split_options
from icebergds.operations.read.snapshot_read import without_other_snapshots
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.scan.plan.partition_filters import has_live_files
from icebergds.scan.projection import select_columns
from icebergds.spec.manifest import DataFile, FileContent, ManifestContent, ManifestFile
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import SPLIT_METADATA_TARGET_SIZE

_Item = TypeVar("_Item")

_LISTS_OF_A_TASK = 64
_CONTENTS = {ManifestContent.DATA: (0,), ManifestContent.DELETES: (1, 2)}
# Executors may be added while tasks run.
_WAVES, _MOST_SPLITS = 2, 4


def plan_metadata_table(
    kind: MetadataTable,
    state: TableState,
    options: ReadOptions,
    columns: Schema | None = None,
    *,
    of_parts: bool = False,
) -> MetadataTablePlan:
    """Checks the options of a read of a metadata table, before anything is read.

    Args:
        columns: the columns that are read; by default those of the options.
        of_parts: as in `MetadataTablePlan`; the filter must be one that `filters_parts` takes.

    Raises:
        InvalidFilterError: the filter cannot be bound.
        InvalidOptionError: a column does not exist, or an option is not one of metadata tables.
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
        UnsupportedFeatureError: the table's catalog restricts what may be read, and the metadata
            table describes rows.
    """
    if kind.is_of_snapshot or kind.is_of_all_snapshots:
        # Bounds, partitions and counts describe rows that nobody may see.
        state.io.require_rows()
    _check(kind, state, options)
    if of_parts:
        table = partition_parts_schema(state.metadata)
    else:
        table = metadata_table_schema(kind, state.metadata)
    if columns is None:
        names = options.columns
        columns = table.schema if names is None else select_columns(table.schema, names)
    row_filter = bind(options.row_filter, table.schema, case_sensitive=False)
    committed_ms = _committed_ms(state) if kind is MetadataTable.PARTITIONS else {}
    return MetadataTablePlan(kind, state, table, columns, row_filter, of_parts, committed_ms)


def filters_parts(plan: MetadataTablePlan) -> bool:
    """Whether the filter of `partitions` holds for all parts of a partition, or for none."""
    return field_ids(plan.row_filter) <= plan.table.partition_ids.keys()


def files_of_snapshot(plan: MetadataTablePlan, options: ReadOptions) -> int:
    """How many files the snapshot that is read has, according to its summary."""
    snapshot, _ = resolve_snapshot(plan.state.metadata, options.time_travel, plan.state.name)
    summary = {} if snapshot is None else snapshot.summary
    counts = (summary.get(name, "") for name in ("total-data-files", "total-delete-files"))
    return sum(int(count) for count in counts if count.isdecimal())


def metadata_tasks(
    plan: MetadataTablePlan, options: ReadOptions, parallelism: int | None = None
) -> list[MetadataTask]:
    """The tasks of a read.

    Args:
        parallelism: how many tasks run at once; None if this is not known.

    Raises:
        MissingFileError, CorruptFileError: a manifest list, or another file that is read here, is
            missing or damaged.
    """
    kind, state = plan.kind, plan.state
    if kind is MetadataTable.ALL_MANIFESTS:
        snapshots = state.metadata.snapshots
        if any(snapshot.key_id is not None for snapshot in snapshots):
            # Only this process has the keys of lists.
            return [ReadyRows(list(rows_of_lists(state, snapshots)))]
        parts = _packed(snapshots, [1] * len(snapshots), _LISTS_OF_A_TASK)
        return [ReadManifestLists(some) for some in parts]
    if not (kind.is_of_snapshot or kind.is_of_all_snapshots):
        return [ReadyRows(rows_of_metadata(kind, state))]
    manifests = _manifests(plan, options)
    if kind is MetadataTable.MANIFESTS:
        return [ReadyRows([manifest_row(state.metadata, manifest) for manifest in manifests])]
    manifests = [manifest for manifest in manifests if _might_match(plan, manifest)]
    if kind is MetadataTable.PARTITIONS and not plan.of_parts:
        return [AddUpPartitions(tuple(manifests))] if manifests else []
    size, least, most = _task_weights(plan, options)
    if kind is MetadataTable.POSITION_DELETES:
        files = list(_position_delete_files(plan, manifests))
        weights = [max(file.stored_size, least) for file in files]
        return [ReadPositionDeletes(some) for some in _packed(files, weights, size)]
    weights = [max(manifest.manifest_length, least) for manifest in manifests]
    if parallelism is not None:
        # Python's tasks cost more than their manifests once all cores have some.
        size = min(max(size, sum(weights) // (_WAVES * parallelism)), most)
    packed = _packed(manifests, weights, size)
    if plan.of_parts:
        return [AddUpPartitions(some, part) for part, some in enumerate(packed)]
    return [ReadManifests(some) for some in packed]


def task_plan(plan: MetadataTablePlan) -> MetadataTablePlan:
    """The plan without what tasks do not need."""
    return replace(plan, state=replace(without_other_snapshots(plan.state, None), keys=None))


def live_columns(
    plan: MetadataTablePlan,
    manifest: ManifestFile,
    stats_ids: frozenset[int] | None,
    used: frozenset[int] | None = None,
) -> EntryColumns:
    """The entries of a manifest, without those of deleted files unless entries are shown.

    Args:
        stats_ids: as for `read_manifest_columns`.
        used: ids of the fields that are needed, while others may be null; None for all.
    """
    metadata = plan.state.metadata
    return read_manifest_columns(
        plan.state.io,
        manifest,
        metadata.specs_by_id,
        metadata.schema(),
        history=metadata.schema_history,
        stats_ids=stats_ids,
        left_out=frozenset() if used is None else ids.CAN_BE_LEFT_OUT - used,
        live_only=not plan.kind.lists_entries,
        # Users may read metadata to find out what is wrong with it.
        wrong_counts=WrongCounts.WARN,
    )


def expecting(plan: MetadataTablePlan, manifests: Sequence[ManifestFile]) -> MetadataTablePlan:
    """The plan for reading manifests in this order: remote ones are fetched ahead."""
    io = reading_ahead(plan.state.io, manifests)
    return replace(plan, state=replace(plan.state, io=io))


def entries_of_all(
    plan: MetadataTablePlan,
    manifests: Sequence[ManifestFile],
    used: frozenset[int] | None = None,
) -> Iterator[EntryColumns]:
    """The entries of manifests without statistics, read in parallel, a few of them ahead.

    Args:
        used: as for `live_columns`.
    """
    plan, readers = expecting(plan, manifests), manifest_decoders(manifests)
    with ThreadPoolExecutor(readers) as pool:
        for start in range(0, len(manifests), readers):
            some = manifests[start : start + readers]
            yield from pool.map(lambda one: live_columns(plan, one, frozenset(), used), some)


def _check(kind: MetadataTable, state: TableState, options: ReadOptions) -> None:
    what = f"table {state.name}: the metadata table {kind}"
    if options.changes is not None:
        raise InvalidOptionError(f"{what} has no changes to read; leave out their options")
    if options.pushdown:
        raise InvalidOptionError(f"{what} takes no filters of Spark's: leave out 'pushdown'")
    if options.time_travel != TimeTravel() and not kind.is_of_snapshot:
        raise InvalidOptionError(
            f"{what} is not of one snapshot: leave out the snapshot, branch, tag or time; those "
            f"of a snapshot are {', '.join(one for one in MetadataTable if one.is_of_snapshot)}"
        )
    if kind.is_of_snapshot:
        resolve_snapshot(state.metadata, options.time_travel, state.name)


def _manifests(plan: MetadataTablePlan, options: ReadOptions) -> list[ManifestFile]:
    """The manifests that the snapshot, or any of them, has."""
    state = plan.state
    if plan.kind.is_of_all_snapshots:
        snapshots = state.metadata.snapshots
        readers = readers_of(state.io, (one.manifest_list for one in snapshots))
        with ThreadPoolExecutor(readers) as pool:
            lists = list(pool.map(lambda one: _listed(state, one), snapshots))
        # Taken from the oldest list: newer ones may add first row ids.
        found = {m.manifest_path: m for listed in reversed(lists) for m in reversed(listed)}
        return list(reversed(found.values()))
    snapshot, _ = resolve_snapshot(state.metadata, options.time_travel, state.name)
    return [] if snapshot is None else list(_listed(state, snapshot))


def _listed(state: TableState, snapshot: Snapshot) -> Sequence[ManifestFile]:
    return read_snapshot_manifests(state.io, snapshot)


_OF_ONE_CONTENT = {
    MetadataTable.DATA_FILES: ManifestContent.DATA,
    MetadataTable.ALL_DATA_FILES: ManifestContent.DATA,
    MetadataTable.DELETE_FILES: ManifestContent.DELETES,
    MetadataTable.ALL_DELETE_FILES: ManifestContent.DELETES,
    MetadataTable.POSITION_DELETES: ManifestContent.DELETES,
}


def _might_match(plan: MetadataTablePlan, manifest: ManifestFile) -> bool:
    """Whether a manifest may list files of rows that match the filter."""
    if _OF_ONE_CONTENT.get(plan.kind, manifest.content) is not manifest.content:
        return False
    if not plan.kind.lists_entries and not has_live_files(manifest):
        return False
    metadata = plan.state.metadata
    spec = metadata.specs_by_id.get(manifest.partition_spec_id)
    is_by_content = plan.kind.lists_files or plan.kind.lists_entries

    def might(predicate: BoundPredicate) -> bool:
        if is_by_content and predicate.field_id == ids.CONTENT:
            return any(holds(predicate, content) for content in _CONTENTS[manifest.content])
        part_id = plan.table.partition_ids.get(predicate.field_id)
        if part_id is None or spec is None:
            return True
        of_table: Expr = replace(predicate, field_id=part_id)
        return manifest_might_match(of_table, metadata.partition_type(spec), manifest.partitions)

    return evaluate(plan.row_filter, might)


def _task_weights(plan: MetadataTablePlan, options: ReadOptions) -> tuple[int, int, int]:
    """Bytes: the size of a task, the least that a file counts for, the most a task may have."""
    properties = plan.state.metadata.properties
    splits = split_options(options, properties)
    if options.split_size is not None:
        return options.split_size, splits.file_open_cost, options.split_size
    size = SPLIT_METADATA_TARGET_SIZE.of(properties)
    most = size if SPLIT_METADATA_TARGET_SIZE.name in properties else size * _MOST_SPLITS
    return size, splits.file_open_cost, most


def _committed_ms(state: TableState) -> dict[int, int]:
    return {one.snapshot_id: one.timestamp_ms for one in state.metadata.snapshots}


def _position_delete_files(
    plan: MetadataTablePlan, manifests: Sequence[ManifestFile]
) -> Iterator[DataFile]:
    for columns in entries_of_all(plan, manifests):
        of_positions = columns.content == FileContent.POSITION_DELETES.value
        for entry in columns.filter(of_positions).entries():
            yield entry.data_file


def _packed(
    items: Iterable[_Item], weights: Sequence[int], most: int
) -> Iterator[tuple[_Item, ...]]:
    """Packs neighbours into parts of about the same weight, at most about `most`."""
    total = max(sum(weights), 1)
    parts = -(-total // most)
    starts = accumulate(weights, initial=0)
    # Places items by their middles, doubled so that they are whole numbers.
    middles = (2 * start + weight for start, weight in zip(starts, weights, strict=False))
    numbers = (middle * parts // (2 * total) for middle in middles)
    for _, some in groupby(zip(numbers, items, strict=True), key=itemgetter(0)):
        yield tuple(item for _, item in some)
