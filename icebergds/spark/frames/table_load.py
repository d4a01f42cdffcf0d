"""Opens loads of registered sessions, and plans their rows that meet a condition.

Frames over them have a base in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.commit.operations import TableState
from icebergds.expr.nodes import Expr
from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
from icebergds.operations.read.aggregates import Answered, Asked, answer
from icebergds.operations.read.first_rows import FirstRows, with_first_rows
from icebergds.operations.read.options import (
    ReadOptions,
    parse_load_options,
    refuse_stream_options,
)
from icebergds.operations.read.planned_scan import PlannedScan, native_obstacle_in, plan_scan
from icebergds.operations.read.snapshot_read import (
    check_read,
    chosen_columns,
    make_read_plan,
    plan_task_groups,
    resolve_read,
)
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.frames.used_fields import narrowed, padded
from icebergds.spark.metadata_tables import planned_frame
from icebergds.spark.native import has_native_scans
from icebergds.spark.read_mark import marked_schema
from icebergds.spark.scan import (
    ReadingWays,
    count_scan,
    planned_dataframe,
    reading_ways,
    scan_dataframe,
)
from icebergds.spark.session import in_zone_of
from icebergds.spark.types import all_nullable, spark_schema
from icebergds.spark.user_schema import project_load_schema, refuse_second_choice
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import NestedField


@dataclass(frozen=True, slots=True)
class TableLoad:
    """One snapshot of a table, or the changes between two, pinned by a load.

    Attributes:
        snapshot: None for a table without rows.
        plan: what is read; its files are not planned yet.
        schema: of the DataFrames.
        is_native: whether Spark's own reader reads the files that it can.
    """

    state: TableState
    options: ReadOptions
    snapshot: Snapshot | None
    plan: ReadPlan
    schema: StructType
    is_native: bool

    @property
    def table_schema(self) -> Schema:
        """The columns that conditions may name."""
        return self.plan.table_schema

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The columns of the load."""
        return self.plan.columns.fields

    @property
    def narrows(self) -> bool | None:
        """Whether it reads only the fields that it is asked for; None if only `planned` knows."""
        if self.options.changes is not None:
            return False
        return None if self.is_native else True

    def planned(self, spark: SparkSession, condition: Expr) -> PlannedLoad:
        """Plans at least the rows that meet a condition, now.

        Args:
            condition: bound to the table's schema.

        Raises:
            MissingFileError, CorruptFileError: metadata is missing or damaged.
        """
        if self.options.changes is not None:
            return PlannedLoad(self, None, None)
        return self._load_of(spark, self._scan(condition))

    def answered(
        self, spark: SparkSession, asked: Asked
    ) -> tuple[Answered | None, PlannedLoad | None]:
        """Answers aggregates from metadata, and plans the rows that are left for them.

        Args:
            asked: its condition is that of the rows which count; the rows that are left are not
                filtered by it.

        Returns:
            No answer if nothing is answered, and no rows if nothing is left.

        Errors are those of `planned`.
        """
        scan = self._scan(asked.condition, asked.columns)
        found = answer(scan, asked)
        if not found.unread:
            return found, None
        left = self._load_of(spark, replace(scan, files=found.unread))
        return found if found.files else None, left

    def first(self, spark: SparkSession, first: FirstRows) -> PlannedLoad:
        """Plans at least the first rows, now; the load must not be of changes.

        Errors are those of `planned`.
        """
        return self._load_of(
            spark, with_first_rows(self._scan(first.condition, first.columns), first)
        )

    def _scan(self, condition: Expr, with_metrics: Sequence[NestedField] = ()) -> PlannedScan:
        return plan_scan(
            self.state,
            self.options,
            for_native=self.is_native,
            rechecked=condition,
            columns=self.plan.columns,
            stats_of=frozenset(column.field_id for column in with_metrics),
        )

    def _load_of(self, spark: SparkSession, scan: PlannedScan) -> PlannedLoad:
        return PlannedLoad(self, scan, reading_ways(spark, scan) if scan.for_native else None)

    def count(self, spark: SparkSession) -> int | None:
        """The number of rows, from metadata as far as possible; None for changes.

        Errors are those of `count_scan`.
        """
        if self.options.changes is not None:
            return None
        scan = plan_scan(self.state, self.options, for_native=False, columns=self.plan.columns)
        return count_scan(spark, scan)


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """Rows of a load that are planned.

    Attributes:
        scan: the scan of all columns; None for changes.
        ways: how its files can be read; None if only icebergds can read them.
    """

    load: TableLoad
    scan: PlannedScan | None
    ways: ReadingWays | None

    @property
    def narrows(self) -> bool:
        """Whether only the fields that `rows` is asked for are read; Spark's reader prunes."""
        if self.load.narrows is not None:
            return self.load.narrows
        has_files = self.scan is not None and bool(self.scan.files)
        return has_files and (self.ways is None or self.ways.have_others)

    def rows(self, spark: SparkSession, used: frozenset[int] | None = None) -> DataFrame:
        """The rows.

        Args:
            used: ids of the fields to read, if it `narrows`; the columns are those that have these
                fields. None for all.
        """
        load, scan = self.load, self.scan
        if scan is None:
            groups = plan_task_groups(load.options, load.state, load.snapshot, load.plan)
            return planned_dataframe(spark, load.plan, groups)
        if used is None:
            # They are put beneath a relation that has the names.
            return scan_dataframe(spark, scan, by_position=True, ways=self.ways)
        whole = load.plan.columns
        read = narrowed(whole, used)
        if load.is_native:
            # Spark's own reader returns structs whole.
            read = whole.select([field.field_id for field in read.fields])
        rows = scan_dataframe(spark, replace(scan, plan=replace(scan.plan, columns=read)))
        return padded(rows, whole, read, load.schema)


def open_load(
    spark: SparkSession, options: Mapping[str, str], schema: StructType | None
) -> TableLoad:
    """Loads the metadata of a table, pins what is read, and checks all options.

    Args:
        options: of the load, with its `path`.
        schema: the columns that the user asks for; None for those of the options.

    Raises:
        IcebergError: an option is malformed or does not fit the table, or it cannot be loaded.
    """
    address, parsed = parse_load_options(in_zone_of(spark, options))
    refuse_stream_options(options)
    load = load_of_state(
        spark, address.load(), parsed, lambda state, table: _columns(parsed, state, table, schema)
    )
    branch = parsed.newest_of
    if branch is None or address.is_metadata_file:
        return load
    marked = marked_schema(load.schema, load.state.metadata, branch, load.snapshot)
    return replace(load, schema=marked)


def load_of_state(
    spark: SparkSession,
    state: TableState,
    options: ReadOptions,
    columns: Callable[[TableState, Schema], Schema],
) -> TableLoad:
    """A load of one state of a table.

    Args:
        columns: chooses the columns of the load, from the state and the schema that is read.

    Raises:
        IcebergError: an option does not fit the table.
    """
    snapshot, table_schema = resolve_read(options, state.metadata, state.name)
    check_read(options, state, snapshot, table_schema)
    chosen = columns(state, table_schema)
    plan = make_read_plan(options, state, table_schema, chosen)
    is_native = has_native_scans(spark, state) and native_obstacle_in(state, plan) is None
    read = spark_schema(chosen, options.shown)
    read = all_nullable(read) if is_native else read
    return TableLoad(state, options, snapshot, plan, read, is_native)


def _columns(
    options: ReadOptions, state: TableState, table_schema: Schema, schema: StructType | None
) -> Schema:
    if schema is None:
        return chosen_columns(options, state.metadata, table_schema)
    refuse_second_choice(options)
    return project_load_schema(schema, state, table_schema, feed=options.feed, shown=options.shown)


@dataclass(frozen=True, slots=True)
class MetadataLoad:
    """A metadata table of one state of a table, pinned by a load.

    Attributes:
        schema: of the DataFrames.
    """

    plan: MetadataTablePlan
    options: ReadOptions
    schema: StructType

    @property
    def table_schema(self) -> Schema:
        return self.plan.table.schema

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The columns of the load."""
        return self.plan.columns.fields

    def rows(self, spark: SparkSession, condition: Expr, used: frozenset[int] | None) -> DataFrame:
        """At least the rows that meet a condition, planned now.

        Args:
            condition: bound to the metadata table's schema.
            used: ids of the fields to read; the columns are those that have these fields. None for
                all.

        Raises:
            MissingFileError, CorruptFileError: metadata is missing or damaged.
        """
        whole = self.plan.columns
        read = whole if used is None else narrowed(whole, used)
        plan = replace(self.plan, columns=read)
        frame = planned_frame(spark, plan, self.options, condition, may_be_joined=used is None)
        return padded(frame, whole, read, self.schema)

    def count(self, spark: SparkSession) -> int | None:
        """None: its rows are counted."""
        return None


class ShapedFrame:
    """What DataFrames of a load have in common on classic Spark and Spark Connect.

    Spark alone builds their `shape`, on an empty relation, and resolves names and conditions on it.
    """

    _shape: Any

    @property
    def schema(self) -> StructType:
        schema: StructType = self._shape.schema
        return schema

    @property
    def columns(self) -> list[str]:
        columns: list[str] = self._shape.columns
        return columns

    def __getitem__(self, item: Any) -> Any:
        frame: Any = self
        if isinstance(item, Column):
            return frame.filter(item)
        if isinstance(item, list | tuple):
            return frame.select(*item)
        return self._shape[item]

    def __getattr__(self, name: str) -> Column:
        if name == "_shape":
            raise AttributeError(name)
        column: Column = getattr(self._shape, name)
        return column
