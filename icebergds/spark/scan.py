"""Turns planned scans into DataFrames, with Spark's own reader if it reads correctly, or ours."""

from __future__ import annotations

import base64
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.commit.operations import TableState
from icebergds.display import counted, size_text
from icebergds.errors import InvalidOptionError
from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import TRUE
from icebergds.formats.deletes.existing_deletes import read_existing_deletes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.operations.read.chosen_files import deletes_by_kind
from icebergds.operations.read.few_rows import MOST_ROWS, few_rows
from icebergds.operations.read.first_rows import FirstRows
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import (
    PlannedScan,
    native_rule_of,
    plan_scan,
    task_groups_of,
)
from icebergds.operations.read.row_count import count_from_metadata, counting_plan
from icebergds.operations.read.snapshot_read import plan_read, plan_task_groups
from icebergds.scan.packing import pack_scan
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.native import NativeRule
from icebergds.scan.plan.native_columns import NATIVE_PREFIX
from icebergds.scan.plan.native_keys import KeyColumns
from icebergds.scan.plan.stored_names import all_schemas
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup, has_keys
from icebergds.spark.errors import own_errors, prepare_thread
from icebergds.spark.jvm import Title
from icebergds.spark.key_transport import warn_of_clear_keys
from icebergds.spark.local_rows import local_batches, no_rows
from icebergds.spark.native import has_native_scans, has_sizes, native_frame
from icebergds.spark.native_groups import FileGroup, group_files
from icebergds.spark.planned_load import PLANNED_SCAN
from icebergds.spark.sealed_scans import sealed_source
from icebergds.spark.session import is_connect
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField

LOCAL_ROWS = "spark.icebergpy.local-rows"
"""The session setting of how many rows the driver reads, instead of a job."""

_LOG = logging.getLogger(__name__)
# Spark fails for correlated sub-queries in the columns of a union.
_ONE_READER = "sub-queries among columns need one reader"


def read_dataframe(spark: SparkSession, state: TableState, options: ReadOptions) -> DataFrame:
    """Plans a read of a snapshot or of changes now, and returns it as a DataFrame.

    Raises:
        InvalidFilterError, InvalidOptionError, NoSuchSnapshotError: as for `plan_read`.
    """
    warn_of_clear_keys(spark, state)
    if options.changes is None:
        planned = plan_scan(state, options, for_native=has_native_scans(spark, state))
        return scan_dataframe(spark, planned)
    snapshot, plan = plan_read(state, options)
    return planned_dataframe(spark, plan, plan_task_groups(options, state, snapshot, plan))


def scan_dataframe(
    spark: SparkSession,
    scan: PlannedScan,
    *,
    by_position: bool = False,
    ways: ReadingWays | None = None,
) -> DataFrame:
    """Returns a planned scan as a DataFrame; nothing is planned again.

    Arguments are those of `scan_by_reader`.
    """
    frame, _ = scan_by_reader(spark, scan, by_position=by_position, ways=ways)
    return frame


def scan_by_reader(
    spark: SparkSession,
    scan: PlannedScan,
    *,
    by_position: bool = False,
    ways: ReadingWays | None = None,
) -> tuple[DataFrame, Sequence[PlannedFile]]:
    """A planned scan as a DataFrame, and those of its files that Spark's own reader reads.

    Spark reads all files that it may, if the scan was planned for that. Files that are read in
    different ways are a union, if the scan allows one.

    Args:
        by_position: the names of columns and their metadata do not matter.
        ways: how the files of the scan can be read, if already known.
    """
    warn_of_clear_keys(spark, scan.state)
    frame, files = None, scan.files
    if not files:
        return no_rows(spark, scan.plan.columns, scan.plan.shown), ()
    native: Sequence[PlannedFile] = ()
    if ways is None and scan.for_native:
        ways = reading_ways(spark, scan)
    if ways is not None and scan.as_one and ways.are_several:
        _LOG.info("table %s: icebergds reads all files: %s", scan.state.name, _ONE_READER)
    elif ways is not None:
        frame, native, unread = _native_frame(spark, scan, ways, by_position)
        _LOG.info(
            "table %s: Spark's own reader reads %d of %d files%s",
            scan.state.name,
            len(native),
            len(files),
            ", as it cannot find others or their columns" if unread else "",
        )
        files = (*ways.others, *unread)
        if frame is not None and not files:
            return frame, native
    ours = planned_dataframe(spark, scan.checking_plan, task_groups_of(scan, files))
    return (ours, ()) if frame is None else (frame.union(ours), native)


def local_scan(spark: SparkSession, scan: PlannedScan, first: FirstRows | None) -> DataFrame | None:
    """The rows of a planned scan, read by the driver and kept in Spark's plan, if they are few.

    Args:
        first: the only rows that are needed; None if others are, too.

    Errors are those of `few_rows`.
    """
    most = most_local_rows(spark)
    batches = None if is_connect(spark) else few_rows(scan, first, most)
    if batches is None:
        return None
    rows = sum(batch.num_rows for batch in batches)
    _LOG.info("table %s: the driver reads %d rows", scan.state.name, rows)
    return local_batches(spark, scan.plan.columns, batches, shown=scan.plan.shown)


def most_local_rows(spark: SparkSession) -> int:
    """How many rows the driver reads, instead of a job; 0 if jobs read all.

    Raises:
        InvalidOptionError: the setting is no number.
    """
    text = spark.conf.get(LOCAL_ROWS, None)
    if text is None:
        return MOST_ROWS
    if not text.isdecimal():
        raise InvalidOptionError(f"{LOCAL_ROWS} = {text!r}: expected a number of rows, 0 for none")
    return int(text)


def mixed_obstacle(spark: SparkSession, scan: PlannedScan) -> str | None:
    """Why icebergds reads all files of a scan that must not be a union; None if it need not."""
    may_be = scan.as_one and has_native_scans(spark, scan.state)
    ways = reading_ways(spark, scan) if may_be else None
    return _ONE_READER if ways is not None and ways.are_several else None


@dataclass(frozen=True, slots=True)
class ReadingWays:
    """How the files of a scan can be read.

    Attributes:
        rule: decides which files Spark's own reader may read.
        groups: files that Spark's own reader reads, each group by one relation.
        others: files that it may not read.
        unread: files that it may read, but whose columns it cannot find.
    """

    rule: NativeRule
    groups: Sequence[FileGroup]
    others: Sequence[PlannedFile]
    unread: Sequence[PlannedFile]

    @property
    def are_several(self) -> bool:
        return len(self.groups) + self.have_others > 1

    @property
    def have_others(self) -> bool:
        """Whether icebergds reads some of the files."""
        return bool(self.others or self.unread)


def reading_ways(spark: SparkSession, scan: PlannedScan) -> ReadingWays | None:
    """How the files of a scan can be read; None if only icebergds can read them."""
    rule = native_rule_of(scan)
    if rule is None:
        return None
    possible, others = rule.split(scan.files)
    groups, unread = group_files(spark, scan.plan, rule, possible)
    return ReadingWays(rule, groups, others, unread)


def _native_frame(
    spark: SparkSession, scan: PlannedScan, ways: ReadingWays, by_position: bool
) -> tuple[DataFrame | None, list[PlannedFile], list[PlannedFile]]:
    """The rows that Spark's own reader reads, their files, and the files that it cannot read."""
    rule, unread = ways.rule, list(ways.unread)
    frames: list[DataFrame] = []
    read: list[PlannedFile] = []
    history = all_schemas(scan.state.metadata.schemas, scan.counts.written_with)
    for group in ways.groups:
        plan = replace(scan.plan, columns=rule.columns) if group.key_deletes else scan.plan
        frame = native_frame(
            spark,
            plan,
            [file.entry.data_file for file in group.files],
            history,
            names=group.names,
            lacked=dict(group.lacked),
            others=plan.table_schema.fields,
            deleted=_deleted(scan, group.files) if group.have_deletes else None,
            by_position=by_position and not group.key_deletes,
            title=_title(scan, group.files),
        )
        if frame is not None and group.key_deletes:
            live = _without_keys(spark, frame, plan, rule.keys, group.key_deletes, history)
            names = [in_backticks((field.name,)) for field in scan.plan.columns.fields]
            frame = None if live is None else live.select(*names)
        (unread if frame is None else read).extend(group.files)
        if frame is not None:
            frames.append(frame)
    return (reduce(DataFrame.union, frames) if frames else None), read, unread


def _title(scan: PlannedScan, files: Sequence[PlannedFile]) -> Title:
    """What Spark's UI and `explain` call the scan of some of a scan's files."""
    size = sum(file.entry.data_file.file_size_in_bytes for file in files)
    every = len(scan.files) + scan.counts.files.skipped
    deletes = deletes_by_kind(files)
    parts = [
        f"{len(files):,} of {counted(every, 'file')}",
        size_text(size),
        *(
            counted(len(some), kind)
            for kind, some in (
                ("deletion vector", deletes.vectors),
                ("position delete file", deletes.positions),
                ("equality delete file", deletes.keys),
            )
            if some
        ),
    ]
    return Title(f"{scan.state.name} ({', '.join(parts)})", scan.state.metadata.location)


def _deleted(scan: PlannedScan, files: Sequence[PlannedFile]) -> dict[str, PositionSet]:
    """The deleted positions of files, by their paths."""
    deletes = {
        file.entry.data_file.file_path: [entry.data_file for entry in file.deletes.position_deletes]
        for file in files
    }
    return dict.fromkeys(deletes, PositionSet.of([])) | read_existing_deletes(
        scan.state.io, deletes
    )


def planned_dataframe(
    spark: SparkSession, plan: ReadPlan, task_groups: Sequence[TaskGroup]
) -> DataFrame:
    """Returns the rows of task groups as a DataFrame, one Spark task for each.

    They are passed to the data source, which then plans nothing. Spark does not know the size of a
    Python data source, so it never broadcasts one; with `mapInArrow` over a local DataFrame of task
    groups, it would take the rows to be as few as the groups.
    """
    prepare_thread(spark)
    is_sealed = any(map(has_keys, task_groups))
    source, key = sealed_source(spark) if is_sealed else ("icebergpy", None)
    packed = base64.b64encode(pack_scan(plan, task_groups, key)).decode()
    return spark.read.format(source).option(PLANNED_SCAN, packed).load()


def count_scan(spark: SparkSession, scan: PlannedScan) -> int:
    """The number of rows of a planned scan; Spark reads the files that metadata does not count.

    Errors are those of `count_rows`.
    """
    counted = count_from_metadata(scan)
    if not counted.unread:
        return counted.rows
    plan, task_groups = counting_plan(scan.plan), task_groups_of(scan, counted.unread)
    return counted.rows + count_rows(planned_dataframe(spark, plan, task_groups))


def count_rows(df: DataFrame) -> int:
    """The number of rows of a DataFrame that icebergds reads.

    Raises:
        IcebergError: its tasks raised it, such as CorruptFileError.
        PySparkException: the Spark job failed for another reason.
    """
    with own_errors():
        return df.count()


def load_dataframe(spark: SparkSession, state: TableState, options: Mapping[str, str]) -> DataFrame:
    """Loads one state of a table as a DataFrame that Spark's planning process plans.

    Args:
        options: of the load (`scan_options`).

    Raises:
        IcebergError: the options do not fit the table.
    """
    prepare_thread(spark)
    with own_errors():
        return spark.read.format("icebergpy").options(**options).load(state.metadata_location)


def _without_keys(
    spark: SparkSession,
    rows: DataFrame,
    plan: ReadPlan,
    keys: KeyColumns,
    deletes: Sequence[DataFile],
    history: Sequence[Schema],
) -> DataFrame | None:
    """The rows whose keys are in none of the equality deletes.

    Args:
        rows: have the columns of the plan, including the key columns.
        deletes: equality deletes that apply to all rows.
        history: all schemas of the table.

    Returns:
        None if Spark cannot read the deletes or find the key columns in them, or if they have
        other sizes than manifests say.
    """
    names = {column.field_id: column.name for column in plan.columns.fields}
    by_ids: dict[tuple[int, ...], list[DataFile]] = defaultdict(list)
    for delete in deletes:
        by_ids[tuple(sorted(set(delete.equality_ids)))].append(delete)
    for ids, files in by_ids.items():
        fields = tuple(keys.fields[field_id] for field_id in ids)
        key_plan = replace(plan, columns=Schema(fields), row_filter=TRUE)
        found = native_frame(spark, key_plan, files, history, names=None, lacked={})
        # If a file was damaged or replaced, Spark would read other keys without an error.
        if found is None or not (is_connect(spark) or has_sizes(found, plan.io, files)):
            return None
        deleted = [f"{NATIVE_PREFIX}deleted{field_id}" for field_id in ids]
        are_equal = f.lit(True)
        for field, name in zip(fields, deleted, strict=True):
            column = f.col(in_backticks((names[field.field_id],)))
            if _may_be_null(field, files):
                are_equal = are_equal & column.eqNullSafe(f.col(name))
            else:
                # Spark's lookup is faster if it need not handle null keys.
                are_equal = are_equal & (column == f.col(name))
        rows = rows.join(f.broadcast(found.toDF(*deleted)), are_equal, "left_anti")
    return rows


def _may_be_null(field: NestedField, deletes: Sequence[DataFile]) -> bool:
    """Whether null may be among the deleted values of a column."""
    return any(delete.null_value_counts.get(field.field_id) != 0 for delete in deletes)
