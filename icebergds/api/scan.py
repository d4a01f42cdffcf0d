"""Describes reads of a table and runs them, with Spark or without (`TableScan`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from icebergds.api.display import scan_html, scan_text
from icebergds.api.jobs import describing_jobs
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.names import in_backticks
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.options.arguments import names_argument
from icebergds.operations.read.aggregates import Function
from icebergds.operations.read.difference import Difference, compare_scans
from icebergds.operations.read.options import (
    ReadOptions,
    parse_read_options,
    refuse_address_options,
    refuse_stream_options,
    scan_options,
)
from icebergds.operations.read.planned_scan import FileScanTask, file_tasks, plan_scan
from icebergds.operations.read.row_count import count_rows, extreme_value, read_count
from icebergds.operations.read.scan_summary import ScanSummary, summarize
from icebergds.operations.read.snapshot_read import plan_read, plan_task_groups
from icebergds.scan.projection import parse_column_list
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.types import TypeId, is_scalar

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    from pyspark.sql import Column, DataFrame, SparkSession


_WITHOUT_ORDER = (TypeId.UNKNOWN, TypeId.VARIANT, TypeId.GEOMETRY, TypeId.GEOGRAPHY)


@dataclass(frozen=True, slots=True)
class TableScan:
    """A read of a table that has not run yet; run it with `to_df` or `to_arrow`."""

    _state: TableState = field(repr=False)
    filter: str | Column | None
    columns: str | None
    snapshot_id: int | None
    branch: str | None
    tag: str | None
    options: Mapping[str, str]
    limit: int | None = None

    def __repr__(self) -> str:
        return scan_text(self._state, self._arguments(), self.options)

    def _repr_html_(self) -> str:
        return scan_html(self._state, self._arguments(), self.options)

    def to_arrow(self) -> pa.Table:
        """Reads the rows in this process, without Spark.

        The columns have the Arrow storage types of `formats.arrow.types`. Errors are those of
        `to_arrow_batch_reader`.
        """
        return self.to_arrow_batch_reader().read_all()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Reads the rows in this process as a DataFrame of pandas, which must be installed.

        Args:
            options: arguments of `pyarrow.Table.to_pandas`.

        Errors are those of `to_arrow_batch_reader`.
        """
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.LazyFrame:
        """A lazy frame of polars, which must be installed; each run of it reads the rows again.

        Columns that polars does not need are not read, unless the scan names its columns, and
        batches stream. Conditions of polars
        are evaluated on the rows; a condition that is to skip files is the scan's `filter`.

        Raises:
            InvalidFilterError, InvalidOptionError, NoSuchSnapshotError: as for
                `to_arrow_batch_reader`.
        """
        import polars
        from polars.io.plugins import register_io_source

        def batches(
            columns: list[str] | None,
            condition: polars.Expr | None,
            most: int | None,
            _: int | None,  # of rows in a batch
        ) -> Iterator[polars.DataFrame]:
            chosen = self
            if columns is not None and self.columns is None:
                names = ", ".join(in_backticks((name,)) for name in columns)
                chosen = replace(self, columns=names)
            # Polars means so many rows before its condition.
            if most is not None and (self.limit is None or most < self.limit):
                chosen = replace(chosen, limit=most)
            for batch in chosen.to_arrow_batch_reader():
                frame = cast("polars.DataFrame", polars.from_arrow(batch))
                frame = frame if columns is None else frame.select(columns)
                yield frame if condition is None else frame.filter(condition)

        rows = self.to_arrow_batch_reader().schema.empty_table()
        empty = cast("polars.DataFrame", polars.from_arrow(rows))
        return register_io_source(batches, schema=empty.schema)

    def to_duckdb(
        self, table_name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Gives the rows a name in a connection of DuckDB, which must be installed.

        Each query plans the scan again and streams its rows: all columns and rows of the scan.

        Args:
            connection: a new one, in memory, by default.

        Returns:
            The connection.

        Errors are those of `to_arrow_batch_reader`.
        """
        import duckdb

        self.to_arrow_batch_reader()
        connection = duckdb.connect() if connection is None else connection
        return connection.register(table_name, self)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Plans the scan now, and reads the rows batch by batch in this process, without Spark.

        Raises:
            InvalidFilterError: the filter cannot be parsed, bound or used.
            InvalidOptionError: a column does not exist, or options contradict each other.
            NoSuchSnapshotError: the snapshot, branch or tag does not exist.
            InvalidDataError: updates are computed, and the identifier columns are not unique.
        """
        self._refuse_column("without Spark, rows are chosen by a filter")
        options = self._read_options(None)
        snapshot, plan = plan_read(self._state, options)
        task_groups = plan_task_groups(options, self._state, snapshot, plan)
        batches: Iterable[pa.RecordBatch] = (
            batch for task_group in task_groups for batch in read_task_group(plan, task_group)
        )
        if self.limit is not None:
            batches = _first_rows(batches, self.limit)
        return pa.RecordBatchReader.from_batches(schema_to_arrow(plan.columns), batches)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Plans the scan now and streams its rows, for `pyarrow.table(scan)`, polars or DuckDB.

        Arguments are those of Arrow's PyCapsule protocol, errors those of `to_arrow_batch_reader`.
        """
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def to_df(self, spark: SparkSession) -> DataFrame:
        """Plans the scan now and returns it as a DataFrame, pinned to this state of the table.

        Timestamps without an offset, in the filter and in options, are in the session's time zone.
        In a registered session Spark's own Parquet reader reads the files that it reads correctly,
        and all columns are nullable.

        Raises:
            InvalidFilterError: the filter cannot be parsed, bound or used.
            InvalidOptionError: a column does not exist, or options contradict each other.
            NoSuchSnapshotError: the snapshot, branch or tag does not exist.
        """
        from icebergds.spark.scan import load_dataframe, read_dataframe
        from icebergds.spark.session import session_zone

        zone = session_zone(spark)
        options = self._read_options(zone)
        if self.filter is not None and not isinstance(self.filter, str):
            from icebergds.spark.frames.pruning import filtered_frame

            rows = filtered_frame(spark, self._state, options, self.filter)
        elif options.pushdown and self._state.keys is None:
            # Spark's filters restrict the plan, and only Spark's planning process gets them. It has
            # no keys of encrypted tables.
            rows = load_dataframe(spark, self._state, self._load_options(zone))
        else:
            rows = read_dataframe(spark, self._state, options)
        return rows if self.limit is None else rows.limit(self.limit)

    def count(self, spark: SparkSession | None = None) -> int:
        """Counts the rows, as `to_df(spark).count()` does, and reads as few files as it can.

        A file is counted from metadata if it has no deletes and metadata shows that the filter
        selects all its rows. For other files, the deletes are read, and the columns that the filter
        and equality deletes compare.

        Args:
            spark: reads these files, and its time zone is that of the filter; by default they are
                read in this process, and timestamps in the filter need an offset.

        Raises:
            CorruptFileError, MissingFileError: metadata or a file that is read is damaged or does
                not exist.

        Other errors are those of `to_df`.
        """
        with describing_jobs("count", self._state.name):
            found = self._count(spark)
        return found if self.limit is None else min(found, self.limit)

    def min(self, column: str) -> Any:
        """The least value of a column, read in this process from as few files as it takes.

        A file is not read if it has no deletes, metadata shows that the filter selects all its
        rows, and its bounds are exact.

        Args:
            column: its name; the columns of the scan do not matter.

        Returns:
            As `to_arrow` returns it, in Python; None if there is no value that is not null. NaN is
            greater than all other numbers.

        Raises:
            InvalidOptionError: the column does not exist, or its values have no order.
            CorruptFileError, MissingFileError: metadata or a file that is read is damaged or does
                not exist.

        Other errors are those of `to_arrow`.
        """
        return self._extreme(Function.MIN, column)

    def max(self, column: str) -> Any:
        """The greatest value of a column; arguments, result and errors are those of `min`."""
        return self._extreme(Function.MAX, column)

    def explain(self, spark: SparkSession | None = None) -> None:
        """Plans the scan and prints what it reads, what it skips and why.

        Arguments and errors are those of `plan_summary`.
        """
        print(self.plan_summary(spark))

    def plan_summary(self, spark: SparkSession | None = None) -> ScanSummary:
        """Plans the scan and returns what it reads, what it skips and why.

        Args:
            spark: the session that would read; by default the active one, if there is one. Its time
                zone is that of the filter, and its native scans are taken into account.

        Raises:
            InvalidOptionError: this scan reads changes, which have no such summary.

        Other errors are those of `to_df`.
        """
        from icebergds.spark.file_addresses import storage_obstacle
        from icebergds.spark.native import has_native_scans
        from icebergds.spark.session import session_or_active, session_zone

        session = session_or_active(spark)
        options = self._read_options(session_zone(session))
        self._refuse_changes(options, "explain shows")
        self._refuse_column("explain shows what is read by a filter")
        planned = plan_scan(self._state, options, for_native=True)
        given = {name.lower(): value for name, value in self.options.items()}
        shown = given.get("filter", self._condition)
        if session is None:
            return summarize(planned, options, shown, None)
        native = has_native_scans(session, planned.state)
        obstacle = storage_obstacle(session, planned.state)
        return summarize(planned, options, shown, native, obstacle)

    def plan_files(self) -> list[FileScanTask]:
        """Plans the scan and lists the data files it reads, without Spark.

        Timestamps in the filter need an offset, or the option `time-zone`.

        Raises:
            InvalidOptionError: this scan reads changes, which are not whole files.

        Other errors are those of `to_arrow`.
        """
        options = self._read_options(None)
        self._refuse_changes(options, "plan_files lists")
        self._refuse_column("plan_files lists the files of a filter")
        return file_tasks(plan_scan(self._state, options, for_native=False))

    def diff(
        self, other: TableScan, by: Sequence[str] | str | None = None, *, with_rows: bool = True
    ) -> Difference:
        """Compares the rows of this scan with those of another one, of any snapshot or table.

            old = table.scan(snapshot_id=42)
            old.diff(table.scan(), by="id")

        Columns of one table are compared by their ids, those of two by their names. Rows are read
        in this process, from the data files that only one of the scans has; files that both have
        are the same.

        Args:
            other: the scan to compare with: its rows are those after.
            by: names of the columns that identify a row, to tell changed rows from new ones; the
                identifier fields by default.
            with_rows: whether to compare rows; if not, columns and files are compared, from
                metadata alone.

        Returns:
            Columns, counts of files, and the rows that were removed, added and changed.

        Raises:
            InvalidOptionError: a column of `by` is not in both scans, or a scan reads changes or
                has a limit.

        Other errors are those of `to_arrow`.
        """
        names = names_argument("by", by)
        if isinstance(names, str):
            names = [".".join(name) for name in parse_column_list(names)]
        return compare_scans(self._side(), other._side(), names, with_rows=with_rows)

    def _side(self) -> tuple[TableState, ReadOptions]:
        """What `diff` compares."""
        options = self._read_options(None)
        self._refuse_changes(options, "diff compares")
        self._refuse_column("diff compares the rows of a filter")
        if self.limit is not None:
            raise InvalidOptionError(
                f"table {self._state.name}: diff compares all rows, but this scan has a limit"
            )
        return self._state, options

    @property
    def _condition(self) -> str | None:
        """The filter as text."""
        return self.filter if isinstance(self.filter, str) else None

    def _refuse_column(self, what: str) -> None:
        if self.filter is not None and self._condition is None:
            raise InvalidFilterError(
                f"table {self._state.name}: {what} that is SQL text, and this one is a Column, "
                'which Spark evaluates; give it as text, such as "id > 5", or use to_df(spark)'
            )

    def _extreme(self, function: Function, column: str) -> Any:
        self._refuse_column("without Spark, rows are chosen by a filter")
        options = replace(self._read_options(None), columns=tuple(parse_column_list(column)))
        self._refuse_changes(options, f"{function} reads")
        if self.limit is not None:
            raise InvalidOptionError(
                f"table {self._state.name}: {function} is of all rows, but this scan has a limit"
            )
        _, plan = plan_read(self._state, options)
        fields = plan.columns.fields
        kind = fields[0].field_type
        if len(fields) != 1 or not is_scalar(kind) or kind.type_id in _WITHOUT_ORDER:
            raise InvalidOptionError(
                f"table {self._state.name}: {column} is not one column whose values have an order"
            )
        stats_of = frozenset({fields[0].field_id})
        scan = plan_scan(self._state, options, for_native=False, stats_of=stats_of)
        return extreme_value(scan, function).as_py()

    def _count(self, spark: SparkSession | None) -> int:
        options = self._read_options(_zone_of(spark))
        if spark is None:
            self._refuse_column("without Spark, rows are counted by a filter")
            if options.changes is not None:
                return self._count_changes(options)
            return count_rows(plan_scan(self._state, options, for_native=False))
        from icebergds.spark import scan

        if options.changes is not None or not isinstance(self.filter, str | None):
            return scan.count_rows(self.to_df(spark))
        return scan.count_scan(spark, plan_scan(self._state, options, for_native=False))

    def _refuse_changes(self, options: ReadOptions, what: str) -> None:
        if options.changes is not None:
            raise InvalidOptionError(
                f"table {self._state.name}: {what} the files of one snapshot, but this scan reads "
                "changes between snapshots; use table.scan(...)"
            )

    def _count_changes(self, options: ReadOptions) -> int:
        snapshot, plan = plan_read(self._state, options)
        return read_count(plan, plan_task_groups(options, self._state, snapshot, plan))

    def _read_options(self, time_zone: str | None) -> ReadOptions:
        refuse_address_options(self.options)
        refuse_stream_options(self.options)
        return parse_read_options(
            self.options,
            filter=self._condition,
            columns=None if self.columns is None else parse_column_list(self.columns),
            snapshot_id=self.snapshot_id,
            branch=self.branch,
            tag=self.tag,
            time_zone=time_zone,
        )

    def _arguments(self) -> dict[str, object]:
        return {
            "filter": self.filter,
            "columns": self.columns,
            "snapshot_id": self.snapshot_id,
            "branch": self.branch,
            "tag": self.tag,
            "limit": self.limit,
        }

    def _load_options(self, time_zone: str | None) -> dict[str, str]:
        arguments = {
            "filter": self._condition,
            "columns": self.columns,
            "snapshot-id": None if self.snapshot_id is None else str(self.snapshot_id),
            "branch": self.branch,
            "tag": self.tag,
        }
        zone = {} if time_zone is None else {"time-zone": time_zone}
        return scan_options(self._state.io, arguments, {**zone, **self.options})


def _first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches if left else ():
        some = min(left, batch.num_rows)
        yield batch.slice(0, some)
        left -= some
        if not left:
            return


def _zone_of(spark: SparkSession | None) -> str | None:
    if spark is None:
        return None
    from icebergds.spark.session import session_zone

    return session_zone(spark)


def listed_names(names: Sequence[str]) -> str:
    """Joins names into the text of the option `columns`; quotes names that contain a comma."""
    return ",".join(f"`{n}`" if "," in n and "`" not in n else n for n in names)
