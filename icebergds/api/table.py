"""`Table`: one table at one moment, its scans and its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from icebergds.api.row_level import (
    Changed,
    begin_merge,
    change_by_key,
    delete_rows,
    overwrite_rows,
    update_rows,
    write_frame,
)
from icebergds.api.scan import TableScan, listed_names
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError, ValidationError
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.upgrade import upgrade_table
from icebergds.operations.options.arguments import (
    integer_argument,
    mapping_argument,
    named_options,
    names_argument,
    text_argument,
)
from icebergds.operations.write.arrow_rows import Rows, write_rows
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot, SnapshotRef
from icebergds.spec.sort import SortOrder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icebergds.spark.row_level.merge import MergeBuilder


@dataclass(slots=True)
class Table:
    """A table as it was when it was loaded, refreshed, or changed through this object."""

    _address: TableAddress
    _state: TableState
    _operations: TableOperations | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self._state.name

    def __repr__(self) -> str:
        return f"Table({self.name!r}, metadata_location={self.metadata_location!r})"

    @property
    def metadata(self) -> TableMetadata:
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        return self._state.metadata_location

    @property
    def io(self) -> FileIO:
        return self._state.io

    def refresh(self) -> Table:
        """Loads the table again, here; returns it."""
        operations = self._operations
        self._state = self._address.load() if operations is None else operations.refresh()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # What commits may hold connections.
        return Table, (self._address, self._state)

    def location(self) -> str:
        """The table's base location, as its metadata has it."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self.metadata.spec()

    def sort_order(self) -> SortOrder:
        """The order in which new files should be sorted."""
        return self.metadata.sort_order()

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of the main branch; None where the table has no rows yet."""
        return self.metadata.current_snapshot()

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Every snapshot that has not expired."""
        return tuple(self.metadata.snapshots)

    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    def append(
        self,
        df: Rows | DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Adds rows, in one commit.

        A DataFrame of Spark is first shuffled as the table's `write.distribution-mode` says, and
        each task's rows are sorted in the table's order.

        Args:
            df: a DataFrame of Spark, or an Arrow table, batch or reader of batches.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries of the snapshot's summary.
            options: further options of the write, such as `target-file-size-bytes`.

        Raises:
            InvalidDataError: the rows do not fit the table.
            CommitConflictError: other commits kept coming first.
            CommitStateUnknownError: whether the commit landed is not known.
        """
        self._write(df, False, self._options(options, snapshot_properties, branch=branch))

    def overwrite(
        self,
        df: Rows | DataFrame,
        overwrite_filter: str | Column | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces all rows, or those of a filter, in one commit.

        Args:
            overwrite_filter: a condition, as Spark SQL or as a column. Where it takes only some
                rows of a file, Spark finds them, and they go as those of `delete` do; without
                Spark nothing is written.

        Other arguments and errors are those of `append`.

        Raises:
            ValidationError: others changed what is replaced (option `isolation-level`), or `df` is
                no DataFrame of Spark, and the filter takes only some rows of a file.
        """
        if overwrite_filter is None or isinstance(overwrite_filter, str):
            named = {"branch": branch, "overwrite_filter": overwrite_filter}
            self._write(df, True, self._options(options, snapshot_properties, **named))
            return
        given = self._options(options, snapshot_properties, branch=branch)
        table = self._current()
        committed = overwrite_rows(table, df, overwrite_filter, given)
        self._state = table.state if committed is None else committed.state

    def dynamic_partition_overwrite(
        self,
        df: Rows | DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces the partitions that the rows are in, in one commit.

        Arguments and errors are those of `overwrite`.
        """
        named = {"branch": branch, "overwrite_mode": "dynamic"}
        self._write(df, True, self._options(options, snapshot_properties, **named))

    def delete(
        self,
        condition: str | Column,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> RowCounts:
        """Deletes the rows for which a condition is true, in one commit.

        Where that takes whole files, which metadata tells, they are removed and nothing is read.
        Else Spark finds the rows, and they go as the table's `write.delete.mode` says: by delete
        files (`merge-on-read`) or by writing their files anew (`copy-on-write`, the default).
        Nothing is committed where no row matches.

        Args:
            condition: SQL, or a column of Spark; it must be deterministic.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries of the snapshot's summary.
            options: further options of the write, such as `isolation-level`.
            spark: the session that finds rows; the active one by default.

        Returns:
            How many rows were deleted; where whole files were, those of earlier deletes included.

        Raises:
            InvalidFilterError: the condition does not fit the table, or is not deterministic.
            InvalidOptionError: it is neither SQL nor a column, or there is no Spark session.
            UnsupportedFeatureError: `merge-on-read` in format version 1.
            ValidationError: others changed what was read (`write.delete.isolation-level`).
            CommitConflictError, CommitStateUnknownError: as for `append`.
            PySparkException: the job failed for a reason of Spark's or of the query's.
        """
        given = self._options(options, snapshot_properties, branch=branch)
        return self._changed(delete_rows(self._current(), condition, given, spark))

    def update(
        self,
        set: Mapping[str, str | Column],
        where: str | Column | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> RowCounts:
        """Gives columns new values in the rows for which a condition is true, in one commit.

        The table's `write.update.mode` says how, as for `delete`. Rows keep their `_row_id`.

        Args:
            set: values by columns, also dotted for fields of structs; SQL or columns of Spark,
                computed from the row as it was.
            where: SQL, or a column of Spark; all rows by default.

        Other arguments and errors are those of `delete`.

        Raises:
            InvalidDataError: a column is unknown or set twice, or a value does not fit it.

        >>> table.update({"price": "price * 2"}, "region = 'eu'")  # doctest: +SKIP
        """
        given = self._options(options, snapshot_properties, branch=branch)
        return self._changed(update_rows(self._current(), set, where, given, spark))

    def merge(
        self,
        source: DataFrame,
        on: str | Column | Sequence[str],
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> MergeBuilder:
        """Begins a merge: rows of this table are changed by the rows of a DataFrame.

        The table's `write.merge.mode` says how, as for `delete`. Updated rows keep their `_row_id`.
        A row that two rows of the source change is an error.

        Args:
            source: the rows.
            on: which rows match: SQL or a column on both sides by their aliases, or names of
                columns that are equal.
            source_alias, target_alias: what the sides are called in conditions and values.

        Other arguments and errors are those of `delete`.

        >>> (  # doctest: +SKIP
        ...     table.merge(updates, "target.id = source.id")
        ...     .when_matched_delete("source.gone")
        ...     .when_matched_update({"name": "source.name"})
        ...     .when_not_matched_insert_all("not source.gone")
        ...     .execute()
        ... )
        """
        given = self._options(options, snapshot_properties, branch=branch)
        aliases = (source_alias, target_alias)
        return begin_merge(self._current, self._changed, source, on, aliases, given)

    def upsert(
        self,
        df: Rows | DataFrame,
        keys: Sequence[str] | str | None = None,
        *,
        order_by: str | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Adds rows, each in the place of those with the same key, in one commit.

        Nothing is read: older rows go by equality deletes, which later reads apply.

        Args:
            df: a DataFrame of Spark, or an Arrow table, batch or reader of batches.
            keys: the columns that tell rows apart; the table's identifier fields by default.
            order_by: the column whose greatest value wins among new rows of one key, which are an
                error without it.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries of the snapshot's summary.
            options: further options of the write.

        Returns:
            How many rows were `upserted`.

        Raises:
            InvalidOptionError: there are no keys, or they cannot be compared.
            InvalidDataError: the rows do not fit the table, or two have one key.
            UnsupportedFeatureError: the table is of format version 1 (`upgrade`).
            CommitConflictError, CommitStateUnknownError: as for `append`.
            PySparkException: the job failed for a reason of Spark's or of the query's.
        """
        return self._change_by_key(
            WriteOperation.UPSERT,
            df,
            keys,
            options,
            snapshot_properties,
            branch=branch,
            upsert_order_by=order_by,
        )

    def delta(
        self,
        df: Rows | DataFrame,
        row_kind_column: str,
        keys: Sequence[str] | str | None = None,
        *,
        order_by: str | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Applies a stream of changes, in one commit: of the rows of one key, the last one counts.

        Args:
            row_kind_column: the column that says what a row does: `+I`, `-U`, `+U` or `-D`, or
                insert, update_before, update_after or delete. It is written only where the table
                has a column of its name.
            order_by: the column that says which of the rows of a key is later; by default the
                order of the frame, which one task then writes alone.

        Other arguments and errors are those of `upsert`. An insert trusts that its key is new.
        """
        return self._change_by_key(
            WriteOperation.DELTA,
            df,
            keys,
            options,
            snapshot_properties,
            branch=branch,
            upsert_order_by=order_by,
            row_kind_column=row_kind_column,
        )

    def delete_keys(
        self,
        df: Rows | DataFrame,
        keys: Sequence[str] | str | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Deletes the rows that have the keys of a frame's rows, in one commit, reading nothing.

        Arguments and errors are those of `upsert`.

        Returns:
            How many keys were `deleted`, whether the table has such rows or not.
        """
        return self._change_by_key(
            WriteOperation.DELETE, df, keys, options, snapshot_properties, branch=branch
        )

    def upgrade(self, format_version: int) -> Table:
        """Raises the table's format version, here and for all writers; returns this table.

        Version 2 brings delete files, version 3 deletion vectors and row lineage. There is no way
        back.

        Raises:
            InvalidOptionError: no such version, or one below the table's.
        """
        self._state = upgrade_table(self._current(), format_version)
        return self

    def scan(
        self,
        filter: str | None = None,
        columns: Sequence[str] | str | None = None,
        snapshot_id: int | None = None,
        *,
        branch: str | None = None,
        tag: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> TableScan:
        """A read of this table: which rows, which columns, which snapshot.

        Args:
            filter: a Spark SQL condition; the rows that come out satisfy it.
            columns: names, dotted for fields inside structs; all data columns by default.
            snapshot_id: the snapshot to read; the current one by default.
            branch: the branch to read instead.
            tag: the tag to read instead.
            options: further options of the read, such as `split-size`.

        Raises:
            InvalidFilterError: the filter is no text.
            InvalidOptionError: another argument is of the wrong type.
        """
        if filter is not None and not isinstance(filter, str):
            raise InvalidFilterError(
                f"filter {filter!r} is a {type(filter).__name__}; write the condition as text, "
                'such as "id > 5"'
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
        )

    def changes(
        self,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        *,
        columns: Sequence[str] | str | None = None,
        filter: str | None = None,
        net_changes: bool = False,
        compute_updates: bool = False,
        identifier_columns: Sequence[str] | str | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> TableScan:
        """A read of the rows that snapshots inserted and deleted, with what was done to each.

        Beside the data columns the rows have `_change_type` (INSERT, DELETE, UPDATE_BEFORE,
        UPDATE_AFTER), `_change_ordinal` (of the commit, from 0) and `_commit_snapshot_id`. Rows
        that a commit only moved to other files are not among them.

        Args:
            start_snapshot_id: the changes after this snapshot; by default all that are known, the
                rows of the oldest snapshot as insertions.
            end_snapshot_id: the last snapshot whose changes are read; by default the newest one.
            columns: names, also of metadata columns; all data columns and the three by default.
            filter: a Spark SQL condition on data columns, that rows satisfy.
            net_changes: what was done in all, as if the snapshots were one.
            compute_updates: a deletion and an insertion of one identifier, in one snapshot, are an
                update.
            identifier_columns: the columns of the identifier; the table's identifier fields by
                default. Naming some asks for updates.
            branch: the branch whose changes are read; main by default.
            options: further options of the read, such as `start-timestamp`.

        Raises:
            InvalidFilterError: the filter is no text.
            InvalidOptionError: another argument is of the wrong type, or is an option as well.
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
        filter: str | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> TableScan:
        """A read of the rows that appends between two snapshots added.

        Rows that were deleted by the end are not among them. Snapshots that overwrite or delete are
        an error, but for the options `skip-overwrite-snapshots` and `skip-delete-snapshots`.

        Args:
            start_snapshot_id: what was appended after this snapshot; or `options` say since when.

        Other arguments and errors are those of `changes`.
        """
        given = {
            "start-snapshot-id": integer_argument("start_snapshot_id", start_snapshot_id),
            "end-snapshot-id": integer_argument("end_snapshot_id", end_snapshot_id),
        }
        asked = named_options(given, options)
        if not any(name.startswith("start-") for name in asked):
            raise InvalidOptionError(
                "appends begin after a snapshot: give start_snapshot_id, or start-timestamp or "
                "start-tag among the options"
            )
        return self.scan(filter, columns, branch=branch, options=asked)

    def _current(self) -> LoadedTable:
        """The table as it is now.

        Raises:
            InvalidOptionError: it was loaded from a metadata file, which never changes.
            ValidationError: it is another one of the same name.
        """
        if self._operations is None:
            self._operations = self._address.operations()
        state = self._operations.refresh()
        known, found = self.metadata.table_uuid, state.metadata.table_uuid
        if known is not None and found != known:
            raise ValidationError(
                f"table {state.name} was dropped and made again since it was loaded: its UUID is "
                f"{found}, expected {known}; load it again"
            )
        return LoadedTable(self._address, self._operations, state)

    def _options(
        self,
        options: Mapping[str, str] | None,
        snapshot_properties: Mapping[str, str] | None,
        **arguments: str | None,
    ) -> WriteOptions:
        return WriteOptions.of(self._address, options, snapshot_properties, **arguments)

    def _changed(self, changed: Changed) -> RowCounts:
        self._state = changed.state
        return changed.counts

    def _write(self, rows: Rows | DataFrame, overwrite: bool, options: WriteOptions) -> None:
        table = self._current()
        if isinstance(rows, Rows):
            committed = write_rows(options, rows, overwrite=overwrite, table=table)
        else:
            committed = write_frame(table, rows, options, overwrite=overwrite)
        self._state = table.state if committed is None else committed.state

    def _change_by_key(
        self,
        operation: WriteOperation,
        rows: Rows | DataFrame,
        keys: Sequence[str] | str | None,
        options: Mapping[str, str] | None,
        snapshot_properties: Mapping[str, str] | None,
        **arguments: str | None,
    ) -> RowCounts:
        names = names_argument("keys", keys)
        given = self._options(
            options,
            snapshot_properties,
            write_operation=operation,
            upsert_keys=names if names is None or isinstance(names, str) else listed_names(names),
            **arguments,
        )
        return self._changed(change_by_key(self._current(), rows, given))
