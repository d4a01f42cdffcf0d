"""Entry points of `Table` that append, replace, change and delete rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icebergds.api.progress import describing_statement, jobs_described
from icebergds.api.row_level import (
    Changed,
    begin_merge,
    change_by_key,
    delete_rows,
    overwrite_rows,
    replace_rows,
    update_rows,
    write_rows,
)
from icebergds.api.scan import listed_names
from icebergds.api.table_base import TableBase
from icebergds.operations.options.arguments import names_argument
from icebergds.operations.options.rows import Rows
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.row_counts import RowCounts, counts_of_write

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icebergds.spark.row_level.conditions import Value
    from icebergds.spark.row_level.matching_changes import MatchedBy
    from icebergds.spark.row_level.merge import MergeBuilder


class TableWrites(TableBase):
    """Appends, replaces, changes and deletes rows of a table."""

    __slots__ = ()

    @jobs_described
    def append(
        self,
        df: Rows | DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Appends rows, in one commit.

        A Spark DataFrame is first shuffled as the table property `write.distribution-mode` says,
        and each task sorts its rows by the table's sort order.

        Args:
            df: a Spark DataFrame; or rows of pyarrow, pandas, polars or any other library with
                Arrow streams (`__arrow_c_stream__`), which are written in this process.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries to add to the snapshot summary.
            options: further write options, such as `target-file-size-bytes`.

        Returns:
            The number of rows and the new snapshot.

        Raises:
            InvalidDataError: the rows do not fit the table's schema.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            StorageError: the storage or the catalog's database failed; nothing was committed.
        """
        return self._write(df, False, self._options(options, snapshot_properties, branch=branch))

    @jobs_described
    def overwrite(
        self,
        df: Rows | DataFrame,
        overwrite_filter: str | Column | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Replaces all rows, or the rows that match a filter, in one commit.

        Args:
            overwrite_filter: the rows to replace, as Spark SQL or a Spark column. If it matches
                only some rows of a file, they are found and deleted as by `delete`: by Spark with
                a Spark DataFrame, else in this process.

        Other arguments and errors are those of `append`.

        Raises:
            ValidationError: concurrent commits changed the replaced rows (option
                `isolation-level`).
        """
        if overwrite_filter is None or isinstance(overwrite_filter, str):
            named = {"branch": branch, "overwrite_filter": overwrite_filter}
            return self._write(df, True, self._options(options, snapshot_properties, **named))
        given = self._options(options, snapshot_properties, branch=branch)
        with nothing_committed(self.name, merges_schema=given.merge_schema):
            table = self._current()
            committed = overwrite_rows(table, df, overwrite_filter, given)
        self._state = table.state if committed is None else committed.state
        return counts_of_write(committed)

    @jobs_described
    def dynamic_partition_overwrite(
        self,
        df: Rows | DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Replaces every partition that `df` has rows for, in one commit.

        Arguments and errors are those of `overwrite`.
        """
        named = {"branch": branch, "overwrite_mode": "dynamic"}
        return self._write(df, True, self._options(options, snapshot_properties, **named))

    @jobs_described
    def delete(
        self,
        condition: str | Column,
        *,
        alias: str | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> RowCounts:
        """Deletes the rows that match a condition, in one commit.

        If metadata shows that all matching rows are in files that match entirely, those files are
        removed without reading data. Otherwise Spark finds the rows, or this process if there is no
        Spark session, and the table property `write.delete.mode` chooses how they are deleted: with
        delete files (`merge-on-read`) or by rewriting their data files (`copy-on-write`, the
        default). If no row matches, nothing is committed.

        Args:
            condition: Spark SQL or a Spark column; must be deterministic. Without a Spark session,
                SQL that scans take as a filter.
            alias: a name of the table in the condition, as in `alias.id`.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries to add to the snapshot summary.
            options: further write options, such as `isolation-level`.
            spark: the session that finds the rows; the active one by default.

        Returns:
            The number of deleted rows. If whole files were removed, rows of these files that
            position or equality deletes had deleted before are counted too; if another commit
            came in between, so are those that deletion vectors had deleted.

        Raises:
            InvalidFilterError: the condition does not fit the table, or is not deterministic.
            InvalidOptionError: it is neither SQL nor a column, or a column needs a Spark session.
            UnsupportedFeatureError: `merge-on-read` in format version 1.
            ValidationError: concurrent commits changed the rows that were read
                (`write.delete.isolation-level`).
            CommitConflictError, CommitStateUnknownError: as for `append`.
            PySparkException: the Spark job or the query failed for another reason.
        """
        given = self._options(options, snapshot_properties, branch=branch)
        with nothing_committed(self.name):
            return self._changed(delete_rows(self._current(), condition, given, spark, alias))

    @jobs_described
    def update(
        self,
        set: Mapping[str, Value],
        where: str | Column | None = None,
        *,
        alias: str | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> RowCounts:
        """Updates columns of the rows that match a condition, in one commit.

        The table property `write.update.mode` chooses how, as for `delete`. Updated rows keep
        their `_row_id`.

        Args:
            set: new values by column name (dotted for struct fields), as Spark SQL, Spark columns,
                or numbers, `bool`s, dates and `datetime`s; all are computed from the row before the
                update. Text is SQL: `"'eu'"` is the text eu.
            where: the rows to update, as Spark SQL or a Spark column; all rows by default.
            alias: a name of the table in values and the condition, as in `alias.id`.

        Other arguments and errors are those of `delete`.

        Raises:
            InvalidDataError: a column is unknown or set twice, or a value does not fit its type.

        Examples:
            >>> table.update({"price": "price * 2"}, "region = 'eu'")  # doctest: +SKIP
        """
        given = self._options(options, snapshot_properties, branch=branch)
        with nothing_committed(self.name):
            changed = update_rows(self._current(), set, where, given, spark, alias)
            return self._changed(changed)

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
        """Starts a merge of a source DataFrame into this table; `execute()` runs it.

        The table property `write.merge.mode` chooses how, as for `delete`. Updated rows keep
        their `_row_id`. It is an error if two source rows change the same row of the table.

        Args:
            source: the source rows.
            on: the match condition, as Spark SQL or a Spark column that names columns by the
                aliases; or the name or names of columns that must be equal on both sides.
            source_alias: the name of the source in conditions and values.
            target_alias: the name of this table in them.

        Other arguments and errors are those of `delete`.

        Examples:
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

    @jobs_described
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
        """Inserts rows and replaces existing rows with the same key, in one commit.

        The table property or option `write.upsert.mode` says how existing rows are deleted: by
        position, for which the key columns of the table are read at the commit, by equality
        deletes, which later reads apply, or (`auto`) by position if that reads little.

        Args:
            df: the rows, as for `append`.
            keys: the key columns; the table's identifier fields by default.
            order_by: if several rows of `df` have the same key, the one with the greatest value
                in this column wins; without `order_by`, such rows are an error.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries to add to the snapshot summary.
            options: further write options.

        Returns:
            The numbers of rows `inserted` and `updated`, and of further rows of these keys that
            were `deleted`; or, with equality deletes, the number of rows `upserted`.

        Raises:
            InvalidOptionError: there are no key columns, or their types cannot be compared.
            InvalidDataError: the rows do not fit the table's schema, or two have the same key.
            UnsupportedFeatureError: the table has format version 1 (see `upgrade`).
            CommitConflictError, CommitStateUnknownError: as for `append`.
            PySparkException: the Spark job or the query failed for another reason.
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

    @jobs_described
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
        """Applies a changelog, in one commit; the last row of each key wins.

        An insert is assumed to have a new key: it does not replace rows that the table has.

        Args:
            row_kind_column: the column with the kind of each change: `+I`, `-U`, `+U` or `-D`, or
                insert, update_before, update_after or delete. It is written only if the table
                has a column of this name.
            order_by: the column that orders the changes of a key; by default they are in the order
                of `df`, which a single Spark task then writes.

        Other arguments and errors are those of `upsert`.
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

    @jobs_described
    def delete_keys(
        self,
        df: Rows | DataFrame,
        keys: Sequence[str] | str | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Deletes the rows whose keys are in `df`, in one commit.

        Arguments and errors are those of `upsert`.

        Returns:
            The number of rows `deleted`; with equality deletes the number of keys, whether or not
            the table had rows with these keys.
        """
        return self._change_by_key(
            WriteOperation.DELETE, df, keys, options, snapshot_properties, branch=branch
        )

    def _replace_rows(
        self,
        df: DataFrame,
        replaced: str | MatchedBy,
        alias: str,
        *,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> RowCounts:
        """Replaces rows that only Spark finds, for SQL's INSERT INTO ... REPLACE.

        Args:
            replaced: a condition on the table, or how its rows match those of a query.
            alias: the name of the table in it.
        """
        given = self._options(options, None, branch=branch)
        with (
            describing_statement("overwrite", self.name),
            nothing_committed(self.name, merges_schema=given.merge_schema),
        ):
            return self._changed(replace_rows(self._current(), df, replaced, alias, given))

    def _changed(self, changed: Changed) -> RowCounts:
        self._state = changed.state
        return changed.counts

    def _write(self, rows: Rows | DataFrame, overwrite: bool, options: WriteOptions) -> RowCounts:
        with nothing_committed(self.name, merges_schema=options.merge_schema):
            table = self._current()
            committed = write_rows(table, rows, options, overwrite=overwrite)
        self._state = table.state if committed is None else committed.state
        return counts_of_write(committed)

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
        with nothing_committed(self.name, merges_schema=given.merge_schema):
            return self._changed(change_by_key(self._current(), rows, given))
