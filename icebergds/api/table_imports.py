"""Entry points of `Table` that add files of other writers, and that prepare copies of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from icebergds.api.jobs import task_runner, zone_of
from icebergds.api.progress import ProgressOption, shows_progress
from icebergds.api.table_base import TableBase
from icebergds.errors import InvalidOptionError
from icebergds.operations.imports.add_files import AddedFiles, AddFilesRequest, add_files
from icebergds.operations.imports.rewrite_table_path import (
    RewritePathRequest,
    RewrittenTablePath,
    rewrite_table_path,
)
from icebergds.operations.imports.source_files import source_files
from icebergds.operations.maintenance.maintained_branch import maintained_branch
from icebergds.operations.options.arguments import flag_argument, path_argument, text_argument
from icebergds.operations.outcomes import nothing_committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icebergds.operations.imports.foreign_table import ForeignTable

Path: TypeAlias = str | os.PathLike[str]
"""A location of a file or folder."""


class TableImports(TableBase):
    """Adds files of other writers, and prepares copies of a table."""

    __slots__ = ()

    @shows_progress
    def add_files(
        self,
        file_paths: Iterable[Path] | Path,
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str | None = None,
        *,
        partition_filter: Mapping[str, Any] | None = None,
        spark: SparkSession | None = None,
        progress: ProgressOption = None,
    ) -> AddedFiles:
        """Adds existing Parquet, ORC and Avro files to the table in place, in one commit.

        The files are neither copied nor moved; from then on they belong to the table, so
        maintenance may delete them once no snapshot has them. Only their footers are read. Files
        without field ids are matched by the names of their columns: if the table has no
        `schema.name-mapping.default`, the same commit sets it.

        For columns that the table is partitioned by, values come from folders such as
        `day=2026-01-01/country=de`; `__HIVE_DEFAULT_PARTITION__` means null. Other partition
        values come from the bounds of a file's columns, if all of its rows are in one partition.
        All files are checked before anything is committed.

        Args:
            file_paths: paths of files and folders. In folders, names that begin with `_` or `.` are
                skipped; the others must all be data files. A file is added once, however often it
                is named.
            snapshot_properties: entries to add to the snapshot summary.
            check_duplicate_files: refuse files that the branch has already.
            branch: the branch to commit to; main by default.
            partition_filter: values by partition field, such as `{"day": "2026-01-01"}`: only files
                in such partitions are added.
            spark: the session that reads the footers if there are more than 1,000 files; the active
                one by default. Timestamps in folder names are in its time zone, or in UTC without a
                session.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            How many files were added, in how many partitions.

        Raises:
            InvalidDataError: a file does not fit the table: it lacks a required column, has a type
                that cannot be read as the table's, field ids of other columns, or rows of several
                partitions. The message names the file.
            AlreadyExistsError: the branch has one of the files already.
            MissingFileError: there is nothing at a path.
            InvalidOptionError: an argument is wrong, or there are no files.
            CorruptFileError, UnsupportedFeatureError: a file is damaged, encrypted or in another
                format.
            ValidationError: another commit changed the table's columns meanwhile.
            CommitConflictError, CommitStateUnknownError: as for `append`.
            StorageError: the storage or the catalog failed.

        Examples:
            >>> table.add_files("s3://bucket/landing/events")  # doctest: +SKIP
            AddedFiles(added_files_count=24, changed_partition_count=6)
        """
        if partition_filter is not None and not isinstance(partition_filter, Mapping):
            raise InvalidOptionError(
                f"partition_filter = {partition_filter!r}: expected a mapping of partition fields "
                'to values, such as {"day": "2026-01-01"}'
            )
        paths = _paths(file_paths)
        refuses_duplicates = flag_argument("check_duplicate_files", check_duplicate_files)
        with nothing_committed(self.name):
            table = self._current()
            options = maintained_branch(table, branch, snapshot_properties)
            files = source_files(table.io, paths)
            zone = zone_of(spark) or "UTC"
            request = AddFilesRequest(files, partition_filter or {}, refuses_duplicates, zone)
            added, self._state = add_files(table, request, options, task_runner(spark))
        return added

    @shows_progress
    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
        *,
        progress: ProgressOption = None,
    ) -> RewrittenTablePath:
        """Prepares a copy of the table at another place; the table itself stays as it is.

        A table's metadata has the full paths of its files. This writes all files that contain paths
        to the staging location, with the new prefix: metadata files, manifest lists, manifests,
        position delete files and deletion vectors. The list of files to copy has a line
        `source,target` for each of these and for each data file, equality delete file and
        statistics file. Once all are copied, the table can be loaded at its new place, or
        registered in a catalog by the metadata file `latest_version`.

        Args:
            source_prefix: what all paths of the table begin with, such as its location.
            target_prefix: what replaces it; a relative path is made absolute.
            start_version: the name of a metadata file whose state was copied before; only what is
                newer is written and listed.
            end_version: the name of the metadata file to copy up to; the newest one by default.
            staging_location: the directory to write to; a new one in the table's metadata directory
                by default.
            create_file_list: whether to write the list.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            Where the list is, the name of the newest metadata file of the copy, and how many
            manifests and delete files were written.

        Raises:
            InvalidOptionError: the prefixes are wrong, the table refers to files elsewhere, or has
                no such version.
            MissingFileError: a file that the copy needs does not exist.
            CorruptFileError: a file is damaged.
            UnsupportedFeatureError: the table is encrypted.
            StorageError: the storage failed; what was written was deleted.

        Examples:
            >>> table.rewrite_table_path(  # doctest: +SKIP
            ...     "s3://old/db/events", "s3://new/db/events", staging_location="s3://new/staging"
            ... )
        """
        request = RewritePathRequest(
            path_argument("source_prefix", source_prefix),
            self.io.absolute(path_argument("target_prefix", target_prefix)),
            text_argument("start_version", start_version),
            text_argument("end_version", end_version),
            text_argument("staging_location", staging_location),
            flag_argument("create_file_list", create_file_list),
        )
        return rewrite_table_path(self._current(), request)


@shows_progress
def add_files_of(
    table: TableBase,
    source: ForeignTable,
    *,
    check_duplicate_files: bool,
    partition_filter: Mapping[str, Any] | None,
    spark: SparkSession,
) -> AddedFiles:
    """Adds the files of another catalog's table, with its partition values.

    Other arguments and errors are those of `add_files`.
    """
    zone = zone_of(spark) or "UTC"
    request = AddFilesRequest(
        source.files, partition_filter or {}, check_duplicate_files, zone, source.defaulted
    )
    with nothing_committed(table.name):
        current = table._current()
        options = maintained_branch(current, None, None)
        added, table._state = add_files(current, request, options, task_runner(spark))
    return added


def _paths(given: object) -> list[str]:
    if isinstance(given, str | os.PathLike):
        return [path_argument("file_paths", given)]
    if not isinstance(given, Iterable):
        raise InvalidOptionError(
            f"file_paths = {given!r}: expected a path, or a list of paths, of files or folders"
        )
    return [path_argument("file_paths", path) for path in given]
