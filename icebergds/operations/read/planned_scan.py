"""Plans scans of one snapshot once, so that manifests are read once for all uses of the scan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from icebergds.commit.operations import TableState
from icebergds.display import counted, printable
from icebergds.expr.metrics import must_match
from icebergds.expr.nodes import TRUE, Expr, and_, relaxed
from icebergds.expr.residual import residual_evaluator
from icebergds.expr.sql_text import sql_text
from icebergds.io.hadoop_clients import files_obstacle
from icebergds.io.locations import is_local
from icebergds.operations.read.chosen_files import choose_files, planner_of
from icebergds.operations.read.options import ReadOptions, split_options
from icebergds.operations.read.snapshot_read import plan_read
from icebergds.scan.plan.counts import PlanCounts
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.native import NativeRule, native_obstacle, native_rule
from icebergds.scan.plan.native_keys import KeyColumns
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import identity_columns
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_LOG = logging.getLogger(__name__)
# Limits for remote storage, where Spark requests the parts of a file one by one; size in bytes.
_FEW_FILES = 8
_SMALL_FILE = 8 << 20


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A planned scan of one snapshot.

    Attributes:
        snapshot: None if the table has none.
        plan: what all tasks share; its filter chose the files.
        files: the files that may have rows of the scan, with the deletes that apply to them.
        splits: how files are packed into task groups.
        counts: what planning read and skipped.
        for_native: whether the files have the statistics that `native_rule_of` needs.
        rechecked: a further condition that chose the files; the reader of the scan checks it for
            every row.
        as_one: whether one reader must read all files, as the rows may not be a union.
    """

    state: TableState
    snapshot: Snapshot | None
    plan: ReadPlan
    files: tuple[PlannedFile, ...]
    splits: SplitOptions
    counts: PlanCounts
    for_native: bool
    rechecked: Expr = TRUE
    as_one: bool = False

    @property
    def checking_plan(self) -> ReadPlan:
        """The plan whose reader checks all conditions of the scan."""
        return replace(self.plan, row_filter=and_(self.plan.row_filter, self.rechecked))


def plan_scan(
    state: TableState,
    options: ReadOptions,
    *,
    for_native: bool,
    rechecked: Expr = TRUE,
    columns: Schema | None = None,
    as_one: bool = False,
    stats_of: frozenset[int] = frozenset(),
) -> PlannedScan:
    """Plans a scan of one snapshot; reads each manifest that may matter once.

    Args:
        options: the options of a read of a snapshot, not of changes.
        for_native: keep the statistics that decide which files Spark's own reader may read.
        rechecked: a bound condition; files without rows that meet it are left out, but other rows
            may be returned.
        columns: the columns that are read; by default those of the options.
        as_one: as for `PlannedScan`.
        stats_of: field ids of columns whose metrics the files keep besides those of the filter.

    Raises:
        InvalidFilterError: the filter cannot be bound or used.
        InvalidOptionError: a column does not exist.
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
        MissingFileError, CorruptFileError: as for `scan.plan.files.plan_files`.
    """
    assert options.changes is None, "changes are planned by plan_task_groups"
    snapshot, plan = plan_read(state, options, columns)
    if for_native:
        stats_of |= identity_columns(plan.specs)
    found = choose_files(state, snapshot, plan, and_(plan.row_filter, rechecked), stats_of)
    splits = split_options(options, state.metadata.properties)
    files = tuple(found.files)
    for_native = for_native and planner_of(state, snapshot, plan) is None
    return PlannedScan(
        state, snapshot, plan, files, splits, found.counts, for_native, relaxed(rechecked), as_one
    )


def task_groups_of(scan: PlannedScan, files: Iterable[PlannedFile]) -> list[ScanTaskGroup]:
    """Packs some or all files of a scan into task groups."""
    return list(pack_files(files, scan.state.metadata, scan.plan.table_schema, scan.splits))


def selects_whole(scan: PlannedScan, condition: Expr) -> Callable[[PlannedFile], bool]:
    """Whether metadata proves that a scan and a further condition select all rows of a file.

    Deletes are not looked at.
    """
    plan = scan.plan
    whole = and_(plan.row_filter, condition)
    residual = residual_of(replace(scan, plan=replace(plan, row_filter=whole)))
    return lambda file: must_match(residual(file), file.entry.data_file)


def residual_of(scan: PlannedScan) -> Callable[[PlannedFile], Expr]:
    """Finds the part of the filter that the partition of a file does not decide."""
    plan = scan.plan
    of_partition = {
        spec_id: residual_evaluator(plan.row_filter, spec, plan.table_schema)
        for spec_id, spec in plan.specs.items()
    }

    def residual(file: PlannedFile) -> Expr:
        data_file = file.entry.data_file
        if file.contradicted:
            return plan.row_filter
        return of_partition[data_file.spec_id](data_file.partition)

    return residual


def native_rule_of(scan: PlannedScan) -> NativeRule | None:
    """The rule for which files Spark's own reader may read; None if it may read none."""
    state = scan.state
    rule = None
    if _storage_obstacle(scan) is None:
        keys = KeyColumns.of(scan.plan, scan.files, state.metadata.schema_history)
        rule = native_rule(scan.plan, _names(state), keys)
    if rule is None:
        obstacle = native_obstacle_of(scan)
        _LOG.info("table %s: native scans are not possible: %s", state.name, obstacle)
    return rule


def native_obstacle_of(scan: PlannedScan) -> str | None:
    """Why `native_rule_of` has no rule; None if it has one."""
    return native_obstacle_in(scan.state, scan.plan) or _storage_obstacle(scan)


def native_obstacle_in(state: TableState, plan: ReadPlan) -> str | None:
    """Why Spark's own reader may read no file of a read that is not planned yet."""
    obstacle = None
    if state.io.all_properties:
        obstacle = files_obstacle(state.io, state.metadata.location, ())
    return obstacle or native_obstacle(plan, _names(state))


def _storage_obstacle(scan: PlannedScan) -> str | None:
    """Why Spark's own reader may not read the files of a storage with properties."""
    io, files = scan.state.io, [file.entry.data_file for file in scan.files]
    if not io.all_properties:
        return None
    location = scan.state.metadata.location
    obstacle = files_obstacle(io, location, (file.file_path for file in files))
    if obstacle is not None or is_local(io.resolve(location)):
        return obstacle
    nbytes = sum(file.file_size_in_bytes for file in files)
    are_small = len(files) > _FEW_FILES and nbytes < _SMALL_FILE * len(files)
    return "many small files on remote storage" if are_small else None


def _names(state: TableState) -> set[str]:
    return {
        field.name for schema in state.metadata.schemas for field in schema.fields_by_id.values()
    }


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """A data file that a scan reads.

    Attributes:
        file: the data file, with only those column metrics that planning used.
        delete_files: the delete files that may delete rows of it.
        residual: the part of the scan's filter that the file's partition does not decide, as SQL;
            `TRUE` if it selects all rows.
    """

    file: DataFile
    delete_files: tuple[DataFile, ...]
    residual: str

    def __repr__(self) -> str:
        deletes = counted(len(self.delete_files), "delete file")
        return f"FileScanTask({self.file!r}, {deletes}, {printable(self.residual, 60)})"


def file_tasks(scan: PlannedScan) -> list[FileScanTask]:
    """The files of a planned scan, in the order of its manifests, as PyIceberg's `plan_files`."""
    schema, residual_in = scan.plan.table_schema, residual_of(scan)
    tasks = []
    for planned in scan.files:
        data_file, deletes = planned.entry.data_file, planned.deletes
        entries = (*deletes.position_deletes, *deletes.equality_deletes)
        tasks.append(
            FileScanTask(
                data_file,
                tuple(entry.data_file for entry in entries),
                sql_text(residual_in(planned), schema),
            )
        )
    return tasks
