"""Loads the keys that equality deletes delete, for the tasks of a group one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.formats.deletes.positions import PositionSet
from icebergds.scan.read.deletes import load_key_set
from icebergds.scan.read.key_positions import positions_of_large_set
from icebergds.scan.read.key_set import EqualityKeySet
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup


@dataclass(frozen=True, slots=True)
class TaskKeys:
    """What a task's equality delete groups delete, by their indices.

    Attributes:
        sets: the keys of groups that fit in memory.
        positions: the rows of the task's file that all other groups delete.
    """

    sets: Mapping[int, EqualityKeySet]
    positions: Mapping[int, PositionSet]


class KeyLoader:
    """Loads keys for the tasks of a group, in their order."""

    def __init__(self, plan: ReadPlan, task_group: ScanTaskGroup) -> None:
        self._plan, self._task_group = plan, task_group
        self._sets: dict[int, EqualityKeySet | None] = {}
        self._large: dict[int, dict[int, PositionSet]] = {}

    def keys_of(self, number: int) -> TaskKeys:
        """The keys for a task, by its number in the group.

        Raises:
            CorruptFileError, MissingFileError: a file is damaged or missing.
        """
        # Kept while consecutive tasks use them, even if they are too large for the cache.
        self._sets = {
            index: self._sets[index] if index in self._sets else self._load(index)
            for index in self._task_group.tasks[number].equality_groups
        }
        large = [index for index, keys in self._sets.items() if keys is None]
        for index in large:
            if index not in self._large:
                self._large[index] = positions_of_large_set(self._plan, self._task_group, index)
        return TaskKeys(
            {index: keys for index, keys in self._sets.items() if keys is not None},
            {index: self._large[index][number] for index in large},
        )

    def _load(self, index: int) -> EqualityKeySet | None:
        group = self._task_group.equality_deletes[index]
        return load_key_set(self._plan, self._task_group.key_schema, group)
