"""Entry points of `Table` that read a snapshot, the changes between two, or appended rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icebergds.api.jobs import sql_argument, task_runner, zone_of
from icebergds.api.progress import ProgressOption, shows_progress
from icebergds.api.scan import TableScan, listed_names
from icebergds.api.table_base import TableBase
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.operations.maintenance.purge.stored_rows import StoredRows, find_stored_rows
from icebergds.operations.options.arguments import (
    given_once,
    integer_argument,
    mapping_argument,
    named_options,
    names_argument,
    natural_argument,
    text_argument,
)
from icebergds.operations.read.options import parse_read_options

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


class TableReads(TableBase):
    """Reads of a table: of a snapshot, of the changes between two, and of appended rows."""

    __slots__ = ()

    def scan(
        self,
        filter: str | Column | None = None,
        columns: Sequence[str] | str | None = None,
        snapshot_id: int | None = None,
        *,
        branch: str | None = None,
        tag: str | None = None,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
        row_filter: str | Column | None = None,
        selected_fields: Sequence[str] | str | None = None,
    ) -> TableScan:
        """Describes a read of this table; run it with `to_df(spark)` or `to_arrow()`.

        Args:
            filter: a Spark SQL condition, or a Spark column if Spark reads the rows (`to_df`,
                `count(spark)`); only matching rows are returned.
            columns: column names, dotted for struct fields; all data columns by default.
            snapshot_id: the snapshot to read; the current one by default.
            branch: the branch to read instead.
            tag: the tag to read instead.
            options: further read options, such as `split-size`.
            limit: return at most so many rows, any of them.
            row_filter: PyIceberg's name of `filter`.
            selected_fields: PyIceberg's name of `columns`.

        Raises:
            InvalidFilterError: the filter is not a string.
            InvalidOptionError: another argument is of the wrong type, or one is given twice.
        """
        filter = given_once("filter", filter, "row_filter", row_filter)
        columns = given_once("columns", columns, "selected_fields", selected_fields)
        if selected_fields == ("*",):
            columns = None
        if filter is not None and not isinstance(filter, str) and not _is_column(filter):
            raise InvalidFilterError(
                f"filter {filter!r} is a {type(filter).__name__}; expected the condition as SQL "
                'text, such as "id > 5", or as a Column'
            )
        names = names_argument("columns", columns)
        return TableScan(
            self._state,
            filter,
            names if names is None or isinstance(names, str) else listed_names(names),
            integer_argument("snapshot_id", snapshot_id),
            text_argument("branch", branch),
            text_argument("tag", tag),
            mapping_argument("options", options),
            natural_argument("limit", limit),
        )

    def changes(
        self,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        *,
        columns: Sequence[str] | str | None = None,
        filter: str | Column | None = None,
        net_changes: bool = False,
        compute_updates: bool = False,
        identifier_columns: Sequence[str] | str | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> TableScan:
        """Describes a read of the row-level changes between two snapshots (change data feed).

        The rows have the data columns and `_change_type` (INSERT, DELETE, UPDATE_BEFORE,
        UPDATE_AFTER), `_change_ordinal` (of the commit, from 0) and `_commit_snapshot_id`. Rows
        that a commit only copied to other files are not changes.

        Args:
            start_snapshot_id: read the changes after this snapshot; by default all known changes,
                with the rows of the oldest snapshot as inserts.
            end_snapshot_id: read the changes up to and including this snapshot; the newest one by
                default.
            columns: column names, including metadata columns; by default all data columns and the
                three above.
            filter: a Spark SQL condition on data columns; only matching rows are returned.
            net_changes: return the net changes of all commits, as if they were one.
            compute_updates: report a delete and an insert with the same identifier in one
                snapshot as an update.
            identifier_columns: the columns that identify a row; the table's identifier fields by
                default. If given, updates are computed.
            branch: the branch whose changes are read; main by default.
            options: further read options, such as `start-timestamp`.

        Raises:
            InvalidFilterError: the filter is not a string.
            InvalidOptionError: another argument is of the wrong type, or is also given in
                `options`.
        """
        names = names_argument("identifier_columns", identifier_columns)
        listed = names if names is None or isinstance(names, str) else listed_names(names)
        given = {
            "read-change-feed": "true",
            "start-snapshot-id": integer_argument("start_snapshot_id", start_snapshot_id),
            "end-snapshot-id": integer_argument("end_snapshot_id", end_snapshot_id),
            "net-changes": "true" if net_changes else None,
            "compute-updates": "true" if compute_updates else None,
            "identifier-columns": listed,
        }
        return self.scan(filter, columns, branch=branch, options=named_options(given, options))

    def appends(
        self,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        *,
        columns: Sequence[str] | str | None = None,
        filter: str | Column | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> TableScan:
        """Describes a read of the rows that were appended between two snapshots.

        Rows that were deleted again by the end snapshot are not returned. Overwrite and delete
        snapshots in between are an error, unless the options `skip-overwrite-snapshots` or
        `skip-delete-snapshots` skip them.

        Args:
            start_snapshot_id: read what was appended after this snapshot; or give
                `start-timestamp` or `start-tag` in `options`.

        Other arguments and errors are those of `changes`.
        """
        given = {
            "start-snapshot-id": integer_argument("start_snapshot_id", start_snapshot_id),
            "end-snapshot-id": integer_argument("end_snapshot_id", end_snapshot_id),
        }
        asked = named_options(given, options)
        if not any(name.startswith("start-") for name in asked):
            raise InvalidOptionError(
                "appends needs a start: give start_snapshot_id, or start-timestamp or start-tag "
                "in options"
            )
        return self.scan(filter, columns, branch=branch, options=asked)

    @shows_progress
    def find_stored_rows(
        self,
        condition: str,
        *,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
    ) -> StoredRows:
        """Finds the files that hold rows which match a condition, deleted or not, in all snapshots.

        Deletes hide rows, and old snapshots, branches and tags keep them. This reads what is in the
        files: the data files and equality deletes of all snapshots, except those that have no such
        row by their partitions and bounds. It also lists the files in the table's directory that no
        snapshot refers to. Nothing is changed.

        Args:
            condition: a Spark SQL condition, as for `scan`; it may name columns that were dropped.
            spark: the session that runs the tasks; the active one by default. Without one, this
                process runs them.
            progress: whether to show progress, or what to call with it: see `maintain`.

        Returns:
            The files, with the snapshots, branches and tags that have them; `is_gone` if there are
            none. A notebook shows it as a table.

        Raises:
            InvalidFilterError: the condition is not text, cannot be parsed, or names a column that
                no schema of the table has.
            CorruptFileError, MissingFileError: metadata or a file is damaged or missing.
        """
        text = sql_argument("condition", condition)
        if text is None:
            raise InvalidFilterError('condition = None: expected a condition, such as "id = 7"')
        options = parse_read_options({}, filter=text, time_zone=zone_of(spark))
        return find_stored_rows(self._current(), options, task_runner(spark))


def _is_column(value: object) -> bool:
    """Whether this is a column of classic Spark or Spark Connect."""
    kind = type(value)
    return kind.__name__ == "Column" and kind.__module__.startswith("pyspark.")
