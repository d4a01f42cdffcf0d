"""The table that a statement changes: what it reads of it, and how its changes are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.expr.bind import bind
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.write.position_changes import require_delete_files
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.row_counts import RowCounts, counts_of_summary
from icebergds.scan.plan.files import plan_files
from icebergds.spark.distribution import KeyedRows, partition_keys
from icebergds.spark.save_job import save_rows
from icebergds.spark.scan import read_dataframe
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot
from icebergds.spec.types import VARIANT, is_scalar

FILE, POS, WRITE = "_file", "_pos", "_write"
ROW_ID, LAST_UPDATED = "_row_id", "_last_updated_sequence_number"

# How many there are is not known beforehand, so that they are given some tasks.
_TASKS_OF_NEW_ROWS = 16
_MODES = {"copy-on-write": WriteOperation.REWRITE, "merge-on-read": WriteOperation.POSITION_DELTA}


@dataclass(frozen=True, slots=True)
class Target:
    """A table whose rows a statement changes, as it was when the statement began.

    Attributes:
        verb: `delete`, `update`, `merge` or `overwrite`, or a change by key.
        options: of the write, without those of the address.
    """

    spark: SparkSession
    address: TableAddress
    state: TableState
    verb: str
    options: Mapping[str, str]

    @property
    def schema(self) -> Schema:
        return self.state.metadata.schema()

    @property
    def branch(self) -> str:
        return self.options.get("branch") or self.options.get("wap.branch") or MAIN_BRANCH

    @property
    def has_lineage(self) -> bool:
        """Whether rows have ids that they keep."""
        return self.state.metadata.format_version >= 3

    @property
    def time_zone(self) -> str | None:
        return self.spark.conf.get("spark.sql.session.timeZone")

    def snapshot(self) -> Snapshot | None:
        """The snapshot that is changed."""
        return self.state.metadata.head_of(self.branch)

    def operation(self) -> WriteOperation:
        """How the table wants its rows changed.

        Raises:
            InvalidOptionError: its property says neither of the two modes.
            UnsupportedFeatureError: delete files, which its version does not know; or a column has
                the name of one that says where a row is.
        """
        self._refuse_control_columns()
        name = f"write.{self._kind}.mode"
        text = self.state.metadata.properties.get(name, "copy-on-write")
        found = _MODES.get(text.lower())
        if found is None:
            raise InvalidOptionError(
                f"table property {name} = {text!r}: expected {' or '.join(_MODES)}"
            )
        if found is WriteOperation.POSITION_DELTA:
            require_delete_files(self.state)
        return found

    def rows(
        self, names: Sequence[str] | None, row_filter: str | None, *, with_ids: bool = False
    ) -> DataFrame:
        """Rows of the table, with where they are: `_file` (a name of the file) and `_pos`.

        Args:
            names: of columns, as the table has them; None for all.
            row_filter: a condition that can be planned with; rows that it rejects need not come.
            with_ids: with `_row_id`, where rows have ids.
        """
        wanted = [(name,) for name in names] if names is not None else [("*",)]
        lineage = [(ROW_ID,)] if with_ids and self.has_lineage else []
        on_branch = self.branch != MAIN_BRANCH and self.branch in self.state.metadata.refs
        options = ReadOptions.of(
            filter=row_filter,
            columns=[*wanted, (FILE,), (POS,), *lineage],
            branch=self.branch if on_branch else None,
            time_zone=self.time_zone,
            for_changes=True,
        )
        return read_dataframe(self.spark, self.state, options)

    def save(self, changes: DataFrame, conflict_filter: str | None) -> RowCounts:
        """Changes rows, in one commit.

        Args:
            changes: `_file`, `_pos`, `_write` and columns of rows to write, as
                `write.changes.position_delta` has them.
            conflict_filter: what the statement looked at; None for all rows.
        """
        operation = self.operation()
        snapshot = self.snapshot()
        options = {
            "isolation-level": self._isolation_level(),
            **self.options,
            "write-operation": operation.value,
            "statement": self.verb,
            "read-schema-id": str(self.schema.schema_id),
            **({} if snapshot is None else {"read-snapshot-id": str(snapshot.snapshot_id)}),
            **({} if conflict_filter is None else {"conflict-filter": conflict_filter}),
        }
        meeting = self._meeting(changes)
        keys = meeting.keys
        if operation is WriteOperation.REWRITE:
            shuffled = meeting.rows.repartition(self._tasks(conflict_filter), *keys)
        else:
            shuffled = meeting.rows.repartition(*keys)
        return save_change(self, meeting.without_keys(shuffled), options)

    @property
    def _kind(self) -> str:
        """How the table's properties call what removes rows."""
        return "delete" if self.verb == "overwrite" else self.verb

    @property
    def _adds_rows(self) -> bool:
        return self.verb in ("merge", "overwrite")

    def _meeting(self, changes: DataFrame) -> KeyedRows:
        """Changes with what is equal for rows that must meet in one task.

        These are the rows of one file. New rows, which have none, go by their partition.
        """
        if not self._adds_rows or len(changes.columns) <= len((FILE, POS, WRITE)):
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

    def _tasks(self, conflict_filter: str | None) -> int:
        """How many tasks rewrite files: their rows do not tell how much there is to do."""
        schema = self.schema
        row_filter: Expr = TRUE
        if conflict_filter is not None:
            parsed = parse_filter(conflict_filter, time_zone=self.time_zone)
            row_filter = bind(parsed, schema, case_sensitive=False)
        files = plan_files(self.state.io, self.state.metadata, self.snapshot(), schema, row_filter)
        most = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200)
        least = _TASKS_OF_NEW_ROWS if self._adds_rows else 1
        return min(max(len(files), least), most)

    def _refuse_control_columns(self) -> None:
        taken = {FILE, POS, WRITE, ROW_ID, LAST_UPDATED}
        for field in self.schema.fields:
            if field.name.lower() in taken:
                raise UnsupportedFeatureError(
                    f"table {self.state.name} has a column {field.name!r}, a name that says where "
                    "a row is; rows of such a table are not changed one by one: rename the column"
                )

    def _isolation_level(self) -> str:
        name = f"write.{self._kind}.isolation-level"
        return self.state.metadata.properties.get(name, "serializable").lower()


def save_change(target: Target, changes: DataFrame, options: Mapping[str, str]) -> RowCounts:
    """Saves what changes rows, and counts what it did.

    Args:
        options: of the write, without those of the address.
    """
    address, zone = target.address, target.time_zone
    given = {**({"time-zone": zone} if zone else {}), **options}
    return counts_of_summary(save_rows(changes, address, target.state.io, given))


def make_target(
    spark: SparkSession | None,
    address: TableAddress,
    state: TableState,
    verb: str,
    options: Mapping[str, str],
) -> Target:
    """The target of a statement.

    Args:
        spark: the session; None for the active one.

    Raises:
        InvalidOptionError: there is no session.
    """
    return Target(spark or active_session(), address, state, verb, options)


def session_zone(spark: SparkSession | None) -> str | None:
    """The time zone of a session, or of the active one; None where there is none."""
    try:
        return (spark or active_session()).conf.get("spark.sql.session.timeZone")
    except InvalidOptionError:
        return None


def active_session() -> SparkSession:
    """The session of this thread, or the default one.

    Raises:
        InvalidOptionError: there is none.
    """
    try:
        return SparkSession.active()
    except Exception:
        raise InvalidOptionError(
            "rows are changed by Spark, and no SparkSession is active; start one, or give it as "
            "spark="
        ) from None
