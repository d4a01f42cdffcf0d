"""Plans scans of one snapshot once, so that manifests are read once for all uses of the scan."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from icebergds.commit.operations import TableState
from icebergds.operations.read.options import ReadOptions, split_options
from icebergds.operations.read.snapshot_read import plan_read
from icebergds.scan.plan.files import PlannedFile, pack_files, plan_files
from icebergds.scan.plan.native import NativeRule, identity_columns, native_rule
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A planned scan of one snapshot.

    Attributes:
        plan: what all tasks share; its filter chose the files.
        files: the files that may have rows of the scan, with the deletes that apply to them.
        splits: how files are packed into task groups.
    """

    state: TableState
    plan: ReadPlan
    files: tuple[PlannedFile, ...]
    splits: SplitOptions


def plan_scan(state: TableState, options: ReadOptions, *, for_native: bool) -> PlannedScan:
    """Plans a scan of one snapshot; reads each manifest that may matter once.

    Args:
        options: of a read of a snapshot, not of changes.
        for_native: keep the statistics that tell which files Spark's own reader may read.

    Raises:
        InvalidFilterError: the filter cannot be bound or used.
        InvalidOptionError: a column does not exist.
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
        MissingFileError, CorruptFileError: as for `scan.plan.files.plan_files`.
    """
    assert options.changes is None, "changes are planned by plan_task_groups"
    snapshot, plan = plan_read(state, options)
    metadata = state.metadata
    stats_of = identity_columns(plan.specs) if for_native else frozenset()
    files = plan_files(
        state.io,
        metadata,
        snapshot,
        plan.table_schema,
        plan.row_filter,
        stats_of=stats_of,
        wrong_counts=plan.wrong_counts,
    )
    return PlannedScan(state, plan, tuple(files), split_options(options, metadata.properties))


def task_groups_of(scan: PlannedScan, files: Iterable[PlannedFile]) -> list[ScanTaskGroup]:
    """Packs some or all files of a scan into task groups."""
    return pack_files(files, scan.state.metadata, scan.plan.table_schema, scan.splits)


def native_rule_of(scan: PlannedScan) -> NativeRule | None:
    """The rule for which files Spark's own reader may read; None if it may read none.

    Also None if the table's storage has properties, since Spark does not know them.
    """
    if scan.state.io.properties:
        _LOG.info(
            "table %s: native scans are not possible: its storage has properties that Spark does "
            "not know",
            scan.state.name,
        )
        return None
    schemas = scan.state.metadata.schemas
    names = {field.name for schema in schemas for field in schema.fields_by_id.values()}
    return native_rule(scan.plan, names)
