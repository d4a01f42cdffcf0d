"""Computes and sets the statistics files of `Table` (`UpdateStatistics`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from icebergds.api.display import update_text
from icebergds.api.jobs import task_runner
from icebergds.api.progress import ProgressOption, shows_progress
from icebergds.api.scan import listed_names
from icebergds.api.table_base import TableBase
from icebergds.errors import InvalidOptionError
from icebergds.operations.options.arguments import integer_argument, names_argument
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.statistics.partition_stats import compute_partition_stats
from icebergds.operations.statistics.statistics_commits import StatisticsUpdate, update_statistics
from icebergds.operations.statistics.table_stats import compute_table_stats
from icebergds.scan.projection import parse_column_list
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.updates.table_updates import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_File = TypeVar("_File")


class TableStatistics(TableBase):
    """The statistics files of a table."""

    __slots__ = ()

    def statistics_files(self) -> tuple[StatisticsFile, ...]:
        """The statistics files, at most one for each snapshot."""
        return self.metadata.statistics

    def partition_statistics_files(self) -> tuple[PartitionStatisticsFile, ...]:
        """The partition statistics files, at most one for each snapshot."""
        return self.metadata.partition_statistics

    def update_statistics(self) -> UpdateStatistics:
        """Sets and removes statistics files that exist, in one commit: see `UpdateStatistics`."""
        return UpdateStatistics(self)

    @shows_progress
    def compute_table_stats(
        self,
        columns: Sequence[str] | str | None = None,
        snapshot_id: int | None = None,
        spark: SparkSession | None = None,
        *,
        progress: ProgressOption = None,
    ) -> StatisticsFile | None:
        """Estimates how many distinct values columns have, and commits that as a statistics file.

        Reads the columns of all live rows. For each column the file has a Theta sketch
        (`apache-datasketches-theta-v1`), and its estimate as the property `ndv`: exact up to 4,096
        values, beyond them 1.6 % off on average. Nulls and empty strings are not counted. A
        statistics file that the snapshot has is replaced.

        Args:
            columns: names of columns of primitive types, dotted for struct fields; all such columns
                at the top level by default.
            snapshot_id: the snapshot whose rows are read; the current one by default.
            spark: the session that runs the tasks; the active one by default. Without one, this
                process runs them.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            The statistics file; None if the table has no snapshot.

        Raises:
            InvalidOptionError: a column does not exist, or is not of a primitive type.
            NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.
            UnsupportedFeatureError: the table is encrypted, without the property
                `icebergds.statistics-in-clear`.
            CommitConflictError, CommitStateUnknownError: as for `append`.
            PySparkException: the Spark job failed for another reason.
        """
        names = names_argument("columns", columns)
        text = names if names is None or isinstance(names, str) else listed_names(names)
        parts = None if text is None else parse_column_list(text)
        wanted = integer_argument("snapshot_id", snapshot_id)
        with nothing_committed(self.name):
            file, self._state = compute_table_stats(
                self._current(), parts, wanted, task_runner(spark)
            )
        return file

    @shows_progress
    def compute_partition_stats(
        self,
        snapshot_id: int | None = None,
        *,
        progress: ProgressOption = None,
    ) -> PartitionStatisticsFile | None:
        """Counts the rows, files and deletes of each partition, and commits that as a file.

        Only manifests are read: of the snapshot, or if an ancestor has a partition statistics file,
        only those that were added since. If the snapshot has such a file, nothing is done.

        Args:
            snapshot_id: the snapshot that is counted; the current one by default.
            progress: whether to show progress, or a function that is called with each
                `icebergds.Progress`; see `icebergds.progress`.

        Returns:
            The partition statistics file; None if the snapshot has no files.

        Raises:
            InvalidOptionError: the table is not partitioned.
            NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
            CorruptFileError, MissingFileError: a manifest is damaged or missing.
            UnsupportedFeatureError: the table is encrypted, without the property
                `icebergds.statistics-in-clear`.
            CommitConflictError, CommitStateUnknownError: as for `append`.
        """
        wanted = integer_argument("snapshot_id", snapshot_id)
        with nothing_committed(self.name):
            file, self._state = compute_partition_stats(self._current(), wanted)
        return file


@dataclass(slots=True)
class UpdateStatistics:
    """Changes of a table's statistics files, committed together.

        with table.update_statistics() as update:
            update.set_statistics(statistics_file)
            update.remove_statistics(snapshot_id=2)

    The changes are committed at the end of the block, or by `commit`; if another commit comes
    first, they are repeated on the table's new state. Files that are set must have been
    written; those that are removed or replaced stay until `remove_orphan_files`.
    """

    _table: TableBase
    _updates: list[StatisticsUpdate] = field(default_factory=list)

    def __repr__(self) -> str:
        return update_text("UpdateStatistics", self._table.name, len(self._updates))

    def set_statistics(self, statistics_file: StatisticsFile) -> Self:
        """Sets the statistics file of its snapshot, replacing an older one."""
        file = _checked("statistics_file", statistics_file, StatisticsFile)
        return self._add(SetStatistics(file))

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Removes the statistics file of a snapshot, if there is one."""
        return self._add(RemoveStatistics(_snapshot_id(snapshot_id)))

    def set_partition_statistics(self, partition_statistics_file: PartitionStatisticsFile) -> Self:
        """Sets the partition statistics file of its snapshot, replacing an older one."""
        file = _checked(
            "partition_statistics_file", partition_statistics_file, PartitionStatisticsFile
        )
        return self._add(SetPartitionStatistics(file))

    def remove_partition_statistics(self, snapshot_id: int) -> Self:
        """Removes the partition statistics file of a snapshot, if there is one."""
        return self._add(RemovePartitionStatistics(_snapshot_id(snapshot_id)))

    def commit(self) -> None:
        """Commits the changes; the table's object then has them.

        Raises:
            NoSuchSnapshotError: the table does not have the snapshot of a file.
            UnsupportedFeatureError: a file is set, and the table is encrypted, without the property
                `icebergds.statistics-in-clear`.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            StorageError: the storage or the catalog's database failed; nothing was committed.
        """
        with nothing_committed(self._table.name):
            self._table._state = update_statistics(self._table._current(), self._updates)
        self._updates = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    def _add(self, update: StatisticsUpdate) -> Self:
        self._updates.append(update)
        return self


def _checked(name: str, value: Any, kind: type[_File]) -> _File:
    if not isinstance(value, kind):
        raise InvalidOptionError(
            f"{name} = {value!r} is a {type(value).__name__}; expected a {kind.__name__} of "
            "icebergds, such as those that the table lists"
        )
    return value


def _snapshot_id(value: Any) -> int:
    found = integer_argument("snapshot_id", value)
    if found is None:
        raise InvalidOptionError("snapshot_id is None; expected the id of a snapshot")
    return found
