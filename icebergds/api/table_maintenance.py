"""Entry points of `Table` for maintenance: smaller deletes, better files, a shorter history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icebergds.api.jobs import filter_argument, task_runner, zone_of
from icebergds.api.progress import ProgressOption, shows_progress
from icebergds.api.rewrite import rewrite_files, rewriter_of
from icebergds.api.table_base import TableBase
from icebergds.catalog.filesystem.commits import check_changeable
from icebergds.commit.retention import ExpiryRequest
from icebergds.errors import InvalidOptionError
from icebergds.expr.nodes import Expr
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    ConvertedEqualityDeletes,
    conversion_options,
    convert_equality_deletes,
)
from icebergds.operations.maintenance.deletes.remove_dangling_deletes import (
    RemovedDanglingDeletes,
    remove_dangling_deletes,
)
from icebergds.operations.maintenance.deletes.rewrite_position_deletes import (
    RewrittenPositionDeletes,
    rewrite_position_deletes,
)
from icebergds.operations.maintenance.health.health import TableHealth, health
from icebergds.operations.maintenance.maintain import MaintenanceRequest, maintain
from icebergds.operations.maintenance.maintained_branch import (
    check_maintained_branch,
    maintained_branch,
)
from icebergds.operations.maintenance.policy import MaintenancePolicy, policy_of
from icebergds.operations.maintenance.report import MaintenanceReport
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.rewrite_data_files import RewrittenDataFiles
from icebergds.operations.maintenance.rewrite_manifests import RewrittenManifests, rewrite_manifests
from icebergds.operations.maintenance.unused_files.expire_snapshots import (
    ExpiredSnapshots,
    expire_snapshots,
)
from icebergds.operations.maintenance.unused_files.orphan_files import (
    OrphanFiles,
    parse_orphan_options,
)
from icebergds.operations.maintenance.unused_files.remove_orphan_files import remove_orphan_files
from icebergds.operations.maintenance.verify.findings import Depth
from icebergds.operations.maintenance.verify.verification import TableVerification
from icebergds.operations.maintenance.verify.verify import verify, verify_and_repair
from icebergds.operations.options.arguments import (
    flag_argument,
    integers_argument,
    mapping_argument,
    positive_argument,
    text_argument,
)
from icebergds.operations.options.moments import moment_or_age
from icebergds.operations.options.rows import Rows
from icebergds.operations.outcomes import nothing_committed
from icebergds.spec.sort import SortOrder
from icebergds.spec.values.dates import now_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableMaintenance(TableBase):
    """Maintenance of a table: smaller deletes, better files, a shorter history."""

    __slots__ = ()

    @shows_progress
    def health(self, branch: str | None = None, *, progress: ProgressOption = None) -> TableHealth:
        """Reports what a read of a branch costs beyond the minimum, and what to do about it.

        It reads only metadata, of the state that this object has. It takes as long and as much
        memory as planning a scan of all rows: for 1,000,000 data files, about as long as the first
        part of `scan().to_df()`, and all of their manifest entries in memory. Delete manifests are
        read twice; data manifests only if there are deletes that apply to no data file.

        Args:
            branch: the branch to look at; main by default.
            progress: whether to show progress, or what to call with it: see `maintain`.

        Returns:
            Figures, and in `advice` the actions that are worth it, in the order in which to run
            them. A notebook shows it as a table.

        Raises:
            InvalidOptionError: `branch` is not text, or a table property is malformed.
            NoSuchSnapshotError: the table has no such branch.
            CorruptFileError, MissingFileError: a manifest is damaged or missing.
            UnsupportedFeatureError: the table is encrypted, without a key service.
        """
        return health(self._state, text_argument("branch", branch))

    @shows_progress
    def report(
        self,
        path: str | Path,
        branch: str | None = None,
        *,
        orphans: bool = False,
        prices: str | Path | Mapping[str, Any] | None = None,
        progress: ProgressOption = None,
    ) -> TableHealth:
        """Writes what `health` finds to one HTML file, with charts, and the commands to run.

        The file needs no network. It needs jinja2 and matplotlib: the extra `report`.

        Args:
            path: the local file to write.
            branch: the branch to look at; main by default.
            orphans: whether to list the table's directory, and say what orphan files hold.
            prices: what storage and reads cost: a TOML file, or its keys and values; see
                docs/fleets.md.
            progress: whether to show progress, or what to call with it: see `maintain`.

        Raises:
            InvalidOptionError: an argument or the price file is wrong.
            StorageError: the file cannot be written.
            ImportError: jinja2 or matplotlib is not installed.
            IcebergError: as for `health`.
        """
        from icebergds.operations.maintenance.fleet.cost import prices_of, read_prices, report_of
        from icebergds.operations.maintenance.fleet.page import (
            render_page,
            require_report_packages,
            write_page,
        )

        require_report_packages()
        known = prices_of(prices) if isinstance(prices, Mapping) else prices and read_prices(prices)
        searches = flag_argument("orphans", orphans)

        def find_orphans() -> OrphanFiles:
            return self.remove_orphan_files(dry_run=True, options={"stream-results": "true"})

        measured = self.health(branch)
        report = report_of(measured, known or None, find_orphans if searches else None)
        page = render_page(f"Health of {self.name}", [report], measured_ms=now_ms())
        write_page(path, page)
        return measured

    @shows_progress
    def verify(
        self,
        depth: str = "metadata",
        *,
        repair: bool = False,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
    ) -> TableVerification:
        """Compares what the table's metadata says with the files, and tells every difference.

        - `metadata`: all manifest lists and manifests of all kept snapshots; that files exist and
          have their sizes; counts, partition summaries, sequence numbers, row ids; totals and
          changes in the summaries of snapshots; delete files that apply to nothing; orphan files.
        - `footers`: in addition, the footers of all files that branches and tags have: rows,
          columns and their types, bounds, counts of values and nulls, sizes of columns, split
          offsets; deletion vectors and statistics files are read.
        - `rows`: in addition, bounds and counts of all rows; positions of position deletes; that
          row ids are unique, for which 8 bytes for each row are in memory.

        What earlier snapshots have, which no branch or tag has, is compared by metadata alone. A
        file that is damaged or missing is a finding; the others are verified all the same.

        Args:
            depth: `metadata`, `footers` or `rows`.
            repair: correct bounds, counts, sizes and split offsets in manifests, what the manifest
                list says of manifests, and totals, and drop wrong statistics files, in one commit
                with the operation `replace`. Rows and live files stay as they are. Only what this
                depth has proved is corrected; if that is nothing, nothing is committed.
            branch: the branch that is repaired; main by default.
            snapshot_properties: entries to add to the snapshot summary of a repair.
            spark: the session whose executors open the files if there are many; the active one by
                default. Without a session, this process does it.
            progress: whether to show progress, or what to call with it: see `maintain`.

        Returns:
            The findings, and what was looked at. A notebook shows it as a table.

        Raises:
            InvalidOptionError: an argument is wrong, or the table has no such branch; or it was
                copied or moved, so that its metadata names the files of another table.
            UnsupportedFeatureError: an encrypted table is to be repaired, without a key service; or
                files are to be opened of which the catalog restricts the rows.
            MissingFileError, CorruptFileError: a manifest of the branch that is to be repaired
                cannot be read; nothing was repaired.
            StorageError: the storage failed.
            CommitConflictError, CommitStateUnknownError: as for `append`, if it repairs.
        """
        chosen = _depth(text_argument("depth", depth))
        if not flag_argument("repair", repair):
            if name := text_argument("branch", branch):
                check_maintained_branch(self._state, name)
            if self._operations is not None:
                check_changeable(self._operations, self._state)
            return verify(self._state, chosen, task_runner(spark))
        with nothing_committed(self.name):
            table = self._current()
            options = maintained_branch(table, branch, snapshot_properties)
            result, self._state = verify_and_repair(table, chosen, task_runner(spark), options)
        return result

    @shows_progress
    def maintain(
        self,
        policy: MaintenancePolicy | None = None,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
        **changes: Any,
    ) -> MaintenanceReport:
        """Does what `health` advises, best first, within a budget of bytes and time.

        Equality deletes are converted, data files and delete files rewritten, dangling deletes
        removed, manifests rewritten, and snapshots expired; orphan files are removed only if the
        policy says so. With `purge_deleted`, deleted rows are deleted for good: see
        docs/deleting-for-good.md. Health is measured again after each step, because a step may make
        others necessary.

        If a step fails, the others still run, and all of them are safe to repeat. Only if it is not
        known whether a commit succeeded, no further step starts. An error is raised at the end, so
        that a job that runs this notices it; its `report` says what was done.

        Args:
            policy: which actions to take, what to keep, and the budget; all that health advises, as
                the table's properties say and without a limit, by default.
            branch: the branch that is maintained; main by default. Snapshots of all branches
                expire.
            dry_run: change nothing, and return what would be done; without steps that others would
                make necessary.
            snapshot_properties: entries to add to the snapshot summaries.
            spark: the session that runs the tasks; the active one by default. Without one, this
                process runs them.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.
            changes: fields of the policy by name, such as `max_seconds=600`.

        Returns:
            The steps with their reasons, gains and results. A notebook shows it as a table.

        Raises:
            InvalidOptionError, NoSuchSnapshotError: an argument is wrong or does not fit the table;
                nothing was done.
            CorruptFileError, MissingFileError: a manifest is damaged or missing; nothing was done.
            ValidationError: deleted rows are to go for good, but `gc.enabled` is false; nothing was
                done.
            MaintenanceError: a step failed; the others were done. Its cause is the first failure.
        """
        chosen = policy_of(policy, changes)
        is_dry = flag_argument("dry_run", dry_run)
        write = self._options(None, snapshot_properties, branch=branch).in_zone(zone_of(spark))
        with nothing_committed(self.name):
            table = self._current()
        # Files with one deleted row are rewritten, too.
        given = {"delete-file-threshold": "1"} if chosen.purge_deleted else {}
        options = RewriteOptions.of(given, table.metadata.properties)
        request = MaintenanceRequest(
            chosen,
            write,
            options,
            task_runner(spark),
            rewriter_of(table, chosen.strategy, chosen.sort_order, options, spark),
            dry_run=is_dry,
        )
        report, self._state = maintain(table, request)
        report.raise_failures()
        return report

    @shows_progress
    def rewrite_data_files(
        self,
        strategy: str = "binpack",
        where: str | Expr | None = None,
        sort_order: str | SortOrder | None = None,
        *,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
    ) -> RewrittenDataFiles:
        """Rewrites small files, large files and files with many deletes to files of a good size.

        Rows do not change, and readers of changes skip the commit. Others may write meanwhile: what
        they delete is deleted in the new files, too.

        Args:
            strategy: `binpack`, which keeps the order of rows; or `sort`, or `zorder` or `hilbert`,
                which sort by several columns at once and, as `sort`, need a Spark session.
            where: rewrite only files that may have rows that match this Spark SQL condition, or
                filter that is bound to the table's schema.
            sort_order: for `sort`, such as `"region, ts desc"`, the table's by default; for
                `zorder` and `hilbert`, the columns. `"zorder(region, ts)"` and
                `"hilbert(region, ts)"` are orders of `sort`, too.
            branch: the branch whose files are rewritten; main by default.
            options: Java Iceberg's, such as `target-file-size-bytes`, `rewrite-all` or
                `partial-progress.enabled`; see docs/maintenance.md.
            snapshot_properties: entries to add to the snapshot summary.
            spark: the session that runs the tasks; the active one by default. Without one, this
                process runs them, unless rows are sorted.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Raises:
            InvalidOptionError, InvalidFilterError: an argument or option is malformed.
            CommitConflictError, ValidationError: concurrent commits conflict.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            StorageError: the storage or the catalog's database failed.
        """
        write = self._options(None, snapshot_properties, branch=branch)
        with nothing_committed(self.name):
            table = self._current()
        done, self._state = rewrite_files(table, strategy, where, sort_order, write, options, spark)
        return done

    @shows_progress
    def rewrite_position_delete_files(
        self,
        where: str | Expr | None = None,
        *,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
    ) -> RewrittenPositionDeletes:
        """Merges small position delete files, which make reads slow; rows stay as they are.

        Deletes of data files that are no longer in the table are dropped. In a table of version 3,
        position delete files that are left from version 2 become deletion vectors. If there is
        nothing to do, nothing is committed.

        Args:
            where: a Spark SQL condition, or a filter that is bound to the table's schema; only
                partitions that may have matching rows are rewritten.
            options: Java Iceberg's, such as `min-input-files` and `rewrite-all`.
            branch: the branch whose deletes are rewritten; main by default.
            snapshot_properties: entries to add to the snapshot summary.
            spark: the session that runs the tasks; the active one by default. Without one they run
                in this process.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Raises:
            InvalidFilterError: the condition does not fit the table, or is not plain enough to plan
                with.
            InvalidOptionError: an option or an argument is wrong.
            ValidationError: other commits removed the delete files meanwhile.
            CommitConflictError, CommitStateUnknownError: as for `append`.
        """
        condition = filter_argument("where", where)
        chosen = mapping_argument("options", options)
        write = self._options(None, snapshot_properties, branch=branch)
        write = write.in_zone(zone_of(spark))
        with nothing_committed(self.name):
            result, self._state = rewrite_position_deletes(
                self._current(), condition, chosen, write, task_runner(spark)
            )
        return result

    @shows_progress
    def convert_equality_deletes(
        self,
        where: str | Expr | None = None,
        *,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
    ) -> ConvertedEqualityDeletes:
        """Converts equality deletes to position deletes, in one commit that removes them.

        Data files to which equality deletes apply are read (only their key columns), and the rows
        that the deletes match are deleted by position: with position delete files in format
        version 2, with deletion vectors in version 3. No row changes, and readers of changes skip
        the commit. If no equality delete file can be removed, nothing is committed.

        Equality deletes that concurrent commits add stay; those that still apply to a data file
        that was not converted stay, too.

        Args:
            where: a Spark SQL condition, such as one on partition columns, or a filter that is
                bound to the table's schema: convert deletes only in data files that may have rows
                that match it. An equality delete file is removed only if no other data file needs
                it.
            branch: the branch whose deletes are converted; main by default.
            options: `split-size`, `lookback`, `file-open-cost`, `batch-size`,
                `delete-cache-bytes` and `time-zone`, as for reads.
            snapshot_properties: entries to add to the snapshot summary.
            spark: the session whose executors do the work; the active one by default. Without a
                session, this process does it.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            How many equality delete files were converted and how many remain, and what was added.

        Raises:
            InvalidFilterError: the condition does not fit the table.
            InvalidOptionError: an option is unknown or malformed, or the branch does not exist.
            ValidationError: concurrent commits changed the same files again and again.
            CommitConflictError, CommitStateUnknownError: as for `append`.
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.
            PySparkException: the Spark job failed for another reason.
        """
        given = conversion_options(
            self._address,
            mapping_argument("options", options),
            where=filter_argument("where", where),
            branch=text_argument("branch", branch),
            snapshot_properties=snapshot_properties,
            time_zone=zone_of(spark),
        )
        with nothing_committed(self.name):
            self._state, converted = convert_equality_deletes(
                self._current(), given, task_runner(spark)
            )
        return converted

    @shows_progress
    def remove_dangling_deletes(
        self,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> RemovedDanglingDeletes:
        """Removes delete files that apply to no data file, in one commit; no row changes.

        Metadata shows which deletes are older than all data files of their partition, which delete
        from data files that no longer exist, and which equality deletes have keys outside the
        bounds of every data file that they could apply to. In addition, up to 256 MB of position
        deletes are read: those that may apply to data files by their bounds, if all these data
        files were added later, as by a compaction. If they name none of them, they are removed,
        too.
        If there are none, nothing is committed.

        Args:
            branch: the branch to commit to; main by default.
            snapshot_properties: entries to add to the snapshot summary.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Raises:
            InvalidOptionError: the table has no such branch.
            CorruptFileError, MissingFileError: a manifest or delete file cannot be read.
            CommitConflictError, CommitStateUnknownError: as for `append`.
        """
        with nothing_committed(self.name):
            counts, self._state = remove_dangling_deletes(
                self._current(), branch=branch, snapshot_properties=snapshot_properties
            )
        return counts

    @shows_progress
    def rewrite_manifests(
        self,
        spec_id: int | None = None,
        sort_by: Sequence[str] | str | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> RewrittenManifests:
        """Rewrites the manifests of one partition spec, in one commit; no row changes.

        Entries of neighbouring partitions are put in the same manifest, so that planning skips more
        manifests, and each has about `commit.manifest.target-size-bytes`. If there is one manifest
        below that size already, nothing is committed. Manifests that others add meanwhile stay as
        they are.

        Args:
            spec_id: the partition spec whose manifests to rewrite; the current one by default.
            sort_by: names of partition fields to cluster by first; the others follow in the
                order of the spec.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries to add to the snapshot summary.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Raises:
            InvalidOptionError: the table has no such spec, partition field or branch.
            CommitConflictError, CommitStateUnknownError: as for `append`.
        """
        with nothing_committed(self.name):
            counts, self._state = rewrite_manifests(
                self._current(),
                spec_id,
                sort_by,
                branch=branch,
                snapshot_properties=snapshot_properties,
            )
        return counts

    @shows_progress
    def expire_snapshots(
        self,
        older_than: datetime | timedelta | str | int | None = None,
        retain_last: int | None = None,
        snapshot_ids: Sequence[int] | int | None = None,
        *,
        clean_expired_metadata: bool = False,
        max_concurrent_deletes: int | None = None,
        dry_run: bool = False,
        progress: ProgressOption = None,
    ) -> ExpiredSnapshots:
        """Removes old snapshots, in one commit, then deletes the files that only they used.

        Snapshots that are younger than `older_than`, or among the newest `retain_last` of a branch,
        are kept, and so are the heads of branches and tagged snapshots. Without these arguments the
        table properties `history.expire.*` apply. A branch's own retention takes precedence over
        both. Branches and tags that are older than their maximum age are removed, except main.

        Args:
            older_than: expire snapshots before this time: an age as a timedelta, a datetime with a
                time zone, a timestamp such as `2026-01-31T12:00:00Z`, or milliseconds since 1970.
            retain_last: how many snapshots of each branch to keep, however old.
            snapshot_ids: snapshots to expire at any age, in addition to those that are old enough.
            clean_expired_metadata: also remove partition specs and schemas that no remaining
                snapshot needs.
            max_concurrent_deletes: delete files one by one, this many at a time; by default in
                batches if the storage supports them.
            dry_run: change nothing, and return what would be expired and deleted.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            The expired snapshots, and how many files were deleted.

        Raises:
            InvalidOptionError: an argument is of the wrong type or out of range.
            NoSuchSnapshotError: the table does not have one of `snapshot_ids`.
            ValidationError: a branch or tag refers to one of `snapshot_ids`, or the table property
                `gc.enabled` is false.
            CommitConflictError, CommitStateUnknownError: as for `append`; nothing was deleted.
            IcebergError: snapshots were expired, but no file was deleted, because the files of
                remaining snapshots could not be listed. Delete them with `remove_orphan_files`.
        """
        request = ExpiryRequest(
            now_ms(),
            moment_or_age("older_than", older_than),
            positive_argument("retain_last", retain_last),
            frozenset(integers_argument("snapshot_ids", snapshot_ids)),
        )
        cleans = flag_argument("clean_expired_metadata", clean_expired_metadata)
        at_once = positive_argument("max_concurrent_deletes", max_concurrent_deletes)
        is_dry = flag_argument("dry_run", dry_run)
        with nothing_committed(self.name):
            self._state, expired = expire_snapshots(
                self._current(),
                request,
                clean_expired_metadata=cleans,
                max_concurrent_deletes=at_once,
                dry_run=is_dry,
            )
        return expired

    @shows_progress
    def remove_orphan_files(
        self,
        older_than: datetime | timedelta | str | int | None = None,
        location: str | None = None,
        *,
        dry_run: bool = False,
        max_concurrent_deletes: int | None = None,
        file_list: Sequence[str] | Rows | None = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "error",
        options: Mapping[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> OrphanFiles:
        """Deletes old files in the table's directory that no snapshot and no metadata refers to.

        Such files are left by writes that failed. Only their age protects files of running writes.
        Reads of any snapshot, on any branch or tag, are not affected.

        Args:
            older_than: only files last modified before are deleted; 3 days ago by default, at
                least 24 hours ago. An age as a timedelta, a datetime (without a zone: local time),
                milliseconds since 1970, or a timestamp with an offset as text.
            location: the directory to search, the table's location by default. No other directory
                is searched, not even that of the property `write.data.path`.
            dry_run: only find them.
            max_concurrent_deletes: how many batches of files are deleted side by side; 4 by
                default.
            file_list: files to examine instead of listing the directory: locations, or a table of
                Arrow, pandas or polars with columns `file_path` and `last_modified`. `older_than`
                may be any time. Files outside of `location` are ignored.
            equal_schemes: schemes that mean the same, such as `{"oss": "s3"}`. Known are s3a and
                s3n (s3), gcs (gs), abfss (abfs) and wasbs (wasb).
            equal_authorities: buckets or hosts that mean the same.
            prefix_mismatch_mode: what to do about files whose paths the table refers to with
                another scheme or authority: `error` (nothing is deleted), `ignore` or `delete`.
            options: `stream-results` returns at most 20,000 locations; `other-tables` is `error`,
                `keep` or `delete`, for files of tables that are found in the directory.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            The orphan files, and which of them could not be deleted.

        Raises:
            InvalidOptionError: an argument is wrong, or `location` is missing or not the table's.
            UnsupportedFeatureError: the table belongs to a catalog but is named by its location.
            ValidationError: the table property `gc.enabled` is false, another table's metadata is
                in the directory, or files are referenced with another scheme or authority.
            CorruptFileError, MissingFileError: a manifest is damaged or missing.
            StorageError: the storage or the catalog failed; nothing was deleted.
        """
        asked = parse_orphan_options(
            older_than=older_than,
            location=location,
            dry_run=dry_run,
            max_concurrent_deletes=max_concurrent_deletes,
            file_list=file_list,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            prefix_mismatch_mode=prefix_mismatch_mode,
            options=options,
        )
        with nothing_committed(self.name):
            return remove_orphan_files(self._current(), asked)


def _depth(name: str | None) -> Depth:
    try:
        return Depth(name or Depth.METADATA)
    except ValueError:
        raise InvalidOptionError(f"depth = {name!r}: expected one of {', '.join(Depth)}") from None
