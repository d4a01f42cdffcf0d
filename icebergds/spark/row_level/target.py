"""Reads the rows of the table that a statement changes, and saves the changes (`Target`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.options import IsolationLevel
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import TRUE, Expr
from icebergds.operations.conditions import named_by, plannable_condition, plannable_part
from icebergds.operations.write.commit_options import check_target_branch
from icebergds.operations.write.isolation import isolation_of
from icebergds.operations.write.jobs import PlannedJob
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.position_changes import (
    PositionChange,
    RowChangeMode,
    plan_position_change,
    row_change_mode,
)
from icebergds.spark.dataframe_schema import incoming_arrow_schema
from icebergds.spark.distribution import KeyedRows, partition_keys
from icebergds.spark.row_level.column_conditions import as_text, column_filter
from icebergds.spark.row_level.rows import StatementRows, plan_rows_to_change
from icebergds.spark.save_job import run_job
from icebergds.spark.session import active_session, session_setting, session_zone
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import VARIANT, is_scalar
from icebergds.write.changes.position_delta import TARGET_COLUMN

FILE, POS, WRITE = "_file", "_pos", "_write"
ROW_ID, LAST_UPDATED = "_row_id", "_last_updated_sequence_number"

# The number of new rows is not known beforehand, so they get at least this many tasks.
_TASKS_OF_NEW_ROWS = 16


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes, as it was when the statement started.

    Attributes:
        verb: `delete`, `update`, `merge` or `overwrite`.
        options: of the write.
        alias: a name of the table in conditions and values.
    """

    spark: SparkSession
    table: LoadedTable
    verb: str
    options: WriteOptions
    alias: str | None = None

    @property
    def state(self) -> TableState:
        return self.table.state

    @property
    def schema(self) -> Schema:
        return self.table.metadata.schema()

    @property
    def has_lineage(self) -> bool:
        """Whether the table has row lineage, so that rows keep their ids."""
        return self.table.metadata.format_version >= 3

    @property
    def time_zone(self) -> str | None:
        return self.options.time_zone

    def plannable(self, condition: object) -> Expr | None:
        """The condition for planning scans; None if only Spark evaluates it correctly."""
        condition = as_text(self.spark, condition)
        if condition is not None and not isinstance(condition, str):
            return column_filter(self.spark, condition, self.schema, self.alias).exact
        setting = session_setting(self.spark)
        name_of = named_by(self.alias)
        return plannable_condition(condition, self.schema, self.time_zone, setting, name_of)

    def plannable_part(self, condition: object, other: str | None = None) -> Expr | None:
        """The part of a condition usable for planning, such as the rest beside a sub-query.

        Args:
            other: the alias of other rows in the condition.
        """
        condition = as_text(self.spark, condition)
        if condition is None:
            return None
        if not isinstance(condition, str):
            found = column_filter(self.spark, condition, self.schema, self.alias)
            return None if found.at_least == TRUE else found.at_least
        setting = session_setting(self.spark)
        name_of = named_by(self.alias, other)
        return plannable_part(condition, self.schema, self.time_zone, setting, name_of)

    def called(self, frame: DataFrame) -> DataFrame:
        """Rows of the table under its alias."""
        return frame if self.alias is None else frame.alias(self.alias)

    def snapshot(self) -> Snapshot | None:
        """The snapshot that the statement changes; None if the branch has none."""
        metadata = self.table.metadata
        return metadata.head_of(self.options.branch)

    def mode(self) -> RowChangeMode:
        """The table's mode for this statement: copy-on-write or merge-on-read.

        Raises:
            InvalidOptionError: the table property is neither of the two modes.
            UnsupportedFeatureError: the mode needs delete files, which the format version does not
                support; or a column has the name of a control column.
        """
        return row_change_mode(self.state, self._kind)

    def isolation_level(self) -> IsolationLevel:
        """Which concurrent commits make the statement fail.

        Raises:
            InvalidOptionError: a table property is malformed.
        """
        return isolation_of(self.options, self.table, self._kind)

    def rows(
        self,
        names: Sequence[str] | None,
        row_filter: Expr | None,
        *,
        with_ids: bool = False,
        as_one: bool = False,
    ) -> StatementRows:
        """Plans the rows of the table, with their location: `_file` (a name for it) and `_pos`.

        Args:
            names: column names as in the table; None for all.
            row_filter: a condition to plan the scan with; the scan may skip rows that it rejects.
            with_ids: include `_row_id`, if the table has row lineage.
            as_one: do not return a union, as for `PlannedScan`.
        """
        chosen = [field.name for field in self.schema.fields] if names is None else names
        lineage = [ROW_ID] if with_ids and self.has_lineage else []
        return plan_rows_to_change(
            self.spark,
            self.state,
            self.options.branch,
            [*chosen, FILE, POS, *lineage],
            TRUE if row_filter is None else row_filter,
            as_one=as_one,
        )

    def save(self, changes: DataFrame, rows: StatementRows) -> Committed | None:
        """Writes and commits changes of rows, in one commit.

        Args:
            changes: `_file`, `_pos`, `_write` and the columns of rows to write, as defined in
                `write.changes.position_delta`.
            rows: the rows that the statement read.
        """
        snapshot = self.snapshot()
        change = PositionChange(
            self.mode(),
            self.verb,
            None if snapshot is None else snapshot.snapshot_id,
            rows.files,
            rows.row_filter,
            self.isolation_level(),
        )
        incoming = incoming_arrow_schema(changes.schema)
        planned = plan_position_change(self.table, self.options, change, incoming)
        with_targets = self._with_targets(changes, rows, planned.targets)
        meeting = self._meeting(with_targets)
        if change.mode is RowChangeMode.COPY_ON_WRITE:
            shuffled = meeting.rows.repartition(self._tasks(len(rows.files)), *meeting.keys)
        else:
            shuffled = meeting.rows.repartition(*meeting.keys)
        job = PlannedJob(planned.delta, planned.task, self.table)
        return run_job(meeting.without_keys(shuffled), job)

    @property
    def _kind(self) -> str:
        """The statement's name in table properties: an overwrite uses those of delete."""
        return "delete" if self.verb == "overwrite" else self.verb

    @property
    def _adds_rows(self) -> bool:
        return self.verb in ("merge", "overwrite")

    def _with_targets(
        self, changes: DataFrame, rows: StatementRows, targets: Mapping[str, bytes]
    ) -> DataFrame:
        """Adds a row for each file that may change, sent to the task with the file's changes."""
        if not targets:
            return changes
        described = pa.table(
            {
                FILE: pa.array([rows.names[path] for path in targets], pa.string()),
                TARGET_COLUMN: pa.array(targets.values(), pa.binary()),
            }
        )
        return changes.unionByName(self.spark.createDataFrame(described), allowMissingColumns=True)

    def _meeting(self, changes: DataFrame) -> KeyedRows:
        """Adds shuffle keys to changes, so that the changes of one file reach the same task.

        New rows have no file: their key is the partition.
        """
        if not self._adds_rows or set(changes.columns) <= {FILE, POS, WRITE, TARGET_COLUMN}:
            return KeyedRows(changes, (f.col(FILE),))
        metadata = self.state.metadata
        found = partition_keys(changes, metadata.schema(), metadata.spec())
        parts = list(found.keys)
        if not parts:
            given = {name.lower() for name in changes.columns}
            scalars = [field for field in metadata.schema().fields if is_scalar(field.field_type)]
            named = [field for field in scalars if field.name.lower() in given]
            names = [field.name for field in named if field.field_type != VARIANT]
            parts = [f.col(quote_name((name,))) for name in names] or [f.lit(0)]
        is_new = f.col(FILE).isNull()
        return replace(found, keys=(f.col(FILE), f.when(is_new, f.xxhash64(*parts))))

    def _tasks(self, files: int) -> int:
        """How many tasks rewrite so many files; the changed rows do not show the work."""
        most = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200)
        least = _TASKS_OF_NEW_ROWS if self._adds_rows else 1
        return min(max(files, least), most)


def make_target(
    spark: SparkSession | None,
    table: LoadedTable,
    verb: str,
    options: WriteOptions,
    alias: str | None = None,
) -> Target:
    """Creates the target of a statement.

    Args:
        spark: the session; None for the active one.
        alias: a name of the table in conditions and values.

    Raises:
        InvalidOptionError: there is no session, it has another time zone than the options, or the
            branch does not exist.
    """
    session = spark or active_session(f"table.{verb}")
    zone = session_zone(session)
    zoned = options.in_zone(zone)
    if zoned.time_zone != zone:
        raise InvalidOptionError(
            f"option 'time-zone' = {zoned.time_zone!r}: table.{verb} has Spark evaluate its "
            f"condition, in the session's time zone {zone!r}; leave the option out, or set "
            "spark.sql.session.timeZone"
        )
    check_target_branch(table.state, options)
    return Target(session, table.keeping_reads(), verb, zoned, alias)
