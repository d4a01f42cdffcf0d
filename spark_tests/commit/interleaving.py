"""Table operations between which other writers commit, exactly where a test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icebergds.commit.operations import TableOperations, TableState
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate


class InterleavedOperations:
    """Makes one of the commits of others before each attempt, as long as there are some.

    Remembers what the last attempt asked for.
    """

    def __init__(self, operations: TableOperations, others: Sequence[Callable[[], object]]) -> None:
        self._operations = operations
        self._others = list(others)
        self.attempts = 0
        self.requirements: list[TableRequirement] = []
        self.updates: list[TableUpdate] = []

    @property
    def name(self) -> str:
        return self._operations.name

    def refresh(self) -> TableState:
        return self._operations.refresh()

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        self.attempts += 1
        self.requirements, self.updates = list(requirements), list(updates)
        if self._others:
            self._others.pop(0)()
        return self._operations.commit(base, requirements, updates)
