"""Loads metadata tables as DataFrames."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions as f, types as spark_types
from pyspark.sql.types import StructType

from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError
from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.metadata_tables.plan import (
    files_of_snapshot,
    filters_parts,
    metadata_tasks,
    plan_metadata_table,
    task_plan,
)
from icebergds.operations.metadata_tables.read import read_metadata_table, read_metadata_task
from icebergds.operations.metadata_tables.schemas import PART, PARTITION_KEY
from icebergds.operations.metadata_tables.tasks import MetadataTablePlan, MetadataTask
from icebergds.operations.read.options import (
    METADATA_TABLE,
    ReadOptions,
    parse_read_options,
    scan_options,
)
from icebergds.spark.arrow_output import shaper
from icebergds.spark.errors import own_errors, prepare_thread, without_frames
from icebergds.spark.local_rows import local_batches
from icebergds.spark.scan import most_local_rows
from icebergds.spark.session import in_zone_of, is_connect
from icebergds.spark.types import spark_schema
from icebergds.spark.user_schema import project_user_schema, refuse_second_choice
from icebergds.spark.worker import settle_worker
from icebergds.spec.schema import Schema

LOCAL = (
    MetadataTable.MANIFESTS,
    MetadataTable.HISTORY,
    MetadataTable.SNAPSHOTS,
    MetadataTable.REFS,
    MetadataTable.METADATA_LOG_ENTRIES,
)
"""The metadata tables whose rows the driver has in memory."""
# With more files, several tasks compute `partitions`; with fewer, the shuffle would take longer.
_FILES_OF_ONE_TASK = 200_000


def metadata_table_frame(
    spark: SparkSession,
    state: TableState,
    kind: MetadataTable,
    options: Mapping[str, str],
    schema: StructType | None = None,
) -> DataFrame:
    """A metadata table of one state of a table.

    Args:
        options: which rows, columns and snapshot are read.
        schema: the columns that the user asks for; None for those of the options.

    Raises:
        IcebergError: the options do not fit the metadata table.
    """
    options = in_zone_of(spark, options)
    parsed = parse_read_options(options)
    plan = plan_metadata_table(kind, state, parsed)
    if schema is not None:
        refuse_second_choice(parsed)
        columns = project_user_schema(schema, plan.table.schema.fields, state.name)
        plan = plan_metadata_table(kind, state, parsed, columns)
    prepare_thread(spark)
    # Only this process has the keys of an encrypted table.
    is_encrypted = state.keys is not None
    may_wait = kind.is_of_all_snapshots or kind is MetadataTable.POSITION_DELETES
    if is_encrypted or not may_wait:
        try:
            return planned_frame(spark, plan, parsed, may_add_up=schema is None)
        except IcebergError:
            # The server may reach the table's storage even if this process does not.
            if is_encrypted or not is_connect(spark):
                raise
    # There may be many manifest lists or delete manifests: they are read only when rows are needed.
    reader = spark.read.format("icebergpy")
    if schema is not None:
        reader = reader.schema(schema)
    given = scan_options(state.io, {METADATA_TABLE: kind.value}, options)
    with own_errors():
        return reader.options(**given).load(state.metadata_location)


def planned_frame(
    spark: SparkSession,
    plan: MetadataTablePlan,
    options: ReadOptions,
    condition: Expr = TRUE,
    *,
    may_add_up: bool = True,
    may_be_joined: bool = True,
) -> DataFrame:
    """Plans a metadata table now, from the metadata file and a snapshot's manifest list.

    Args:
        condition: bound to the metadata table's schema; at least the rows that meet it are read.
        may_add_up: whether tasks may aggregate `partitions`; its rows then have Spark's own types.
        may_be_joined: whether Spark needs to know about how many rows there are.

    Raises:
        MissingFileError, CorruptFileError: metadata is missing or damaged.
    """
    if plan.kind in LOCAL:
        return _local_frame(spark, plan, options)
    is_of_files = plan.kind.lists_files or plan.kind.lists_entries
    files = files_of_snapshot(plan, options) if plan.kind.is_of_snapshot else 0
    has_files = is_of_files or plan.kind is MetadataTable.PARTITIONS
    # The driver reads few files' entries in less time than a job takes to start.
    if has_files and not is_connect(spark) and 0 < files <= most_local_rows(spark):
        return _local_frame(spark, plan, options, condition)
    if plan.kind is not MetadataTable.PARTITIONS:
        rows = files if is_of_files and may_be_joined else 0
        return _tasks_frame(spark, plan, _tasks(spark, plan, options, condition), rows)
    if files <= _FILES_OF_ONE_TASK or not may_add_up or not filters_parts(plan):
        return _tasks_frame(spark, plan, _tasks(spark, plan, options, condition), 0)
    whole = replace(options, columns=None)
    of_parts = plan_metadata_table(plan.kind, plan.state, whole, of_parts=True)
    parts = _tasks_frame(spark, of_parts, _tasks(spark, of_parts, options, condition), 0)
    return _added_up(parts, plan.columns)


def staged_metadata_table(
    spark: SparkSession, state: TableState, kind: MetadataTable, options: Mapping[str, str]
) -> DataFrame:
    """A metadata table of an uncommitted state, read in this process.

    Errors are those of `metadata_table_frame`.
    """
    parsed = parse_read_options(in_zone_of(spark, options))
    return _local_frame(spark, plan_metadata_table(kind, state, parsed), parsed)


def _tasks(
    spark: SparkSession, plan: MetadataTablePlan, options: ReadOptions, condition: Expr
) -> list[MetadataTask]:
    """Tasks that skip manifests by a condition, but do not apply it to rows."""
    parallelism = None if is_connect(spark) else spark.sparkContext.defaultParallelism
    pruned = replace(plan, row_filter=and_(plan.row_filter, condition))
    return metadata_tasks(pruned, options, parallelism)


def _local_frame(
    spark: SparkSession, plan: MetadataTablePlan, options: ReadOptions, condition: Expr = TRUE
) -> DataFrame:
    batches = read_metadata_table(plan, options, condition).to_batches()
    rows = local_batches(spark, plan.columns, batches, are_nullable=False)
    # Spark would compile conditions on local rows at once, and fails to compile `typeof`.
    return rows.coalesce(1)


def _tasks_frame(
    spark: SparkSession, plan: MetadataTablePlan, tasks: Sequence[MetadataTask], rows: int
) -> DataFrame:
    """The rows of tasks, each read by one Spark task.

    Args:
        rows: about how many there are, from which Spark estimates their size; 0 if it need not.
    """
    each = max(rows // max(len(tasks), 1), 1)
    numbers = spark.range(0, each * len(tasks), 1, max(len(tasks), 1))
    packed = tuple(zlib.compress(pickle.dumps(task), level=1) for task in tasks)
    reading = _Reading(zlib.compress(pickle.dumps(task_plan(plan)), level=1), packed, each)
    schema = spark_schema(plan.columns)
    if each > 1:
        # Spark estimates the output of a filter to be as large as its input.
        numbers = numbers.where(f"id % {each} = 0")
    return numbers.mapInArrow(reading, schema)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads tasks in `mapInArrow`; the input rows are their numbers, `each` apart."""

    # Holds the credentials of the storage.
    plan: bytes = field(repr=False)
    tasks: tuple[bytes, ...] = field(repr=False)
    each: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        with without_frames():
            plan: MetadataTablePlan = pickle.loads(zlib.decompress(self.plan))
            shape = shaper(plan.columns)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    task = pickle.loads(zlib.decompress(self.tasks[number // self.each]))
                    yield from map(shape, read_metadata_task(plan, task))


_PARTITION, _SPEC_ID = "partition", "spec_id"
_UPDATED_AT, _SNAPSHOT_ID = "last_updated_at", "last_updated_snapshot_id"
_NEWEST = "newest"


def _added_up(parts: DataFrame, columns: Schema) -> DataFrame:
    """Aggregates the rows of `partitions`.

    Args:
        parts: the columns of `partition_parts_schema`.
        columns: those that are returned; the struct `partition` may be narrowed.
    """
    # If several are equally new, the first one wins, as when one process aggregates them.
    of_newest = [f.col(_UPDATED_AT), (-f.col(PART.name)).alias("order"), f.col(_SNAPSHOT_ID)]
    totals = []
    for name in parts.columns:
        match name:
            case "spec_id":
                of_newest.append(f.col(name))
            case "partition":
                # Grouped by its key only: Spark would put 0.0 and -0.0 in the same group.
                totals.append(f.first(name).alias(name))
            case "last_updated_at" | "last_updated_snapshot_id" | PARTITION_KEY.name | PART.name:
                pass
            case _:
                totals.append(f.sum(name).alias(name))
    newest = f.max(f.struct(*of_newest)).alias(_NEWEST)
    rows = parts.groupBy(PARTITION_KEY.name).agg(newest, *totals)
    return rows.select(*_shown(spark_schema(columns)))


def _shown(columns: spark_types.StructType) -> Iterator[Column]:
    for each in columns.fields:
        match each.name, each.dataType:
            case "partition", spark_types.StructType(names=names):
                whole = f.col(_PARTITION)
                column = f.struct(*(whole.getField(name).alias(name) for name in names))
            case "last_updated_at" | "last_updated_snapshot_id", _:
                column = f.col(_NEWEST).getField(each.name)
            case "spec_id", _:
                column = _required(f.col(_NEWEST).getField(_SPEC_ID), each)
            case _:
                column = _required(f.col(each.name), each)
        yield column.alias(each.name, metadata=each.metadata or {})


def _required(column: Column, field: spark_types.StructField) -> Column:
    """A column in the type of the field, marked as never null, which Spark does not know."""
    return f.coalesce(column, f.lit(0)).cast(field.dataType)
