"""Plans the read of the rows that a statement may change, with their file and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from icebergds.commit.operations import TableState
from icebergds.expr.nodes import Expr
from icebergds.formats.file_tokens import file_token
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import plan_scan
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.files import PlannedFile
from icebergds.spark.file_addresses import row_name
from icebergds.spark.native import has_native_scans
from icebergds.spark.scan import scan_by_reader
from icebergds.spec.snapshot import MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class StatementRows:
    """The rows that a statement may change.

    Attributes:
        frame: the rows.
        files: the data files that they are in, with the deletes that apply to them.
        row_filter: the rows that the statement reads; `frame` may include rows that it rejects.
        names: the names of the files in `_file`, by path.
    """

    frame: DataFrame
    files: Sequence[PlannedFile]
    row_filter: Expr
    names: Mapping[str, str]


def plan_rows_to_change(
    spark: SparkSession,
    state: TableState,
    branch: str,
    columns: Sequence[str],
    row_filter: Expr,
    *,
    as_one: bool = False,
) -> StatementRows:
    """Plans the read of a statement; each manifest is read once.

    Args:
        branch: the branch that is changed; main is read if it does not exist.
        columns: names, including metadata columns.
        row_filter: not bound yet.
        as_one: do not return a union, as for `PlannedScan`.
    """
    on_branch = branch != MAIN_BRANCH and branch in state.metadata.refs
    options = ReadOptions(
        TimeTravel(branch=branch if on_branch else None),
        tuple((name,) for name in columns),
        row_filter,
        for_changes=True,
    )
    # Tasks could not map S3A's names of the files.
    is_native = not state.io.all_properties and has_native_scans(spark, state)
    scan = plan_scan(state, options, for_native=is_native, as_one=as_one)
    frame, native = scan_by_reader(spark, scan)
    names = {path: file_token(path) for path in map(_path, scan.files)}
    names |= {path: row_name(state.io, path) for path in map(_path, native)}
    return StatementRows(frame, scan.files, row_filter, names)


def _path(file: PlannedFile) -> str:
    return file.entry.data_file.file_path
