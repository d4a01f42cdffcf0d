"""Sets and removes statistics files of a table (`Table.update_statistics`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from icebergds.api.display import update_text
from icebergds.errors import InvalidOptionError
from icebergds.operations.options.arguments import integer_argument
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.statistics.statistics_commits import (
    StatisticsUpdate,
    update_statistics,
)
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.updates.table_updates import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)

if TYPE_CHECKING:
    from icebergds.api.table_base import TableBase

_File = TypeVar("_File")


@dataclass(slots=True)
class UpdateStatistics:
    """Changes of a table's statistics files, committed together.

        with table.update_statistics() as update:
            update.set_statistics(statistics_file)
            update.remove_statistics(snapshot_id=2)

    The changes are committed at the end of the block, or by `commit`; if another commit comes
    first, they are made again on the table as it is then. Files that are set must have been
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
