"""Plans task groups of scans as statements do."""

from __future__ import annotations

from icebergds.expr.nodes import TRUE, Expr
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.files import plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot


def task_groups_of(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr = TRUE,
    splits: SplitOptions | None = None,
) -> list[ScanTaskGroup]:
    """The task groups of a scan; further arguments are those of `plan_files`."""
    files = plan_files(io, metadata, snapshot, schema, row_filter).files
    return list(pack_files(files, metadata, schema, splits or SplitOptions()))
