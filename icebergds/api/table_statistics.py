"""Entry points of `Table` for its statistics files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icebergds.api.job_descriptions import jobs_described
from icebergds.api.maintenance import task_runner
from icebergds.api.scan import listed_names
from icebergds.api.table_base import TableBase
from icebergds.api.update_statistics import UpdateStatistics
from icebergds.operations.options.arguments import integer_argument, names_argument
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.statistics.partition_stats import compute_partition_stats
from icebergds.operations.statistics.table_stats import compute_table_stats
from icebergds.scan.projection import parse_column_list
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

    @jobs_described
    def compute_table_stats(
        self,
        columns: Sequence[str] | str | None = None,
        snapshot_id: int | None = None,
        spark: SparkSession | None = None,
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

        Returns:
            The statistics file; None if the table has no snapshot.

        Raises:
            InvalidOptionError: a column does not exist, or is not of a primitive type.
            NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.
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

    def compute_partition_stats(
        self, snapshot_id: int | None = None
    ) -> PartitionStatisticsFile | None:
        """Counts the rows, files and deletes of each partition, and commits that as a file.

        Only manifests are read: of the snapshot, or if an ancestor has a partition statistics file,
        only those that were added since. If the snapshot has such a file, nothing is done.

        Args:
            snapshot_id: the snapshot that is counted; the current one by default.

        Returns:
            The partition statistics file; None if the snapshot has no files.

        Raises:
            InvalidOptionError: the table is not partitioned.
            NoSuchSnapshotError: the snapshot does not exist, or was expired meanwhile.
            CorruptFileError, MissingFileError: a manifest is damaged or missing.
            CommitConflictError, CommitStateUnknownError: as for `append`.
        """
        wanted = integer_argument("snapshot_id", snapshot_id)
        with nothing_committed(self.name):
            file, self._state = compute_partition_stats(self._current(), wanted)
        return file
