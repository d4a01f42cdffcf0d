"""A table in a transaction, whose changes wait for its end (`StagedTable`)."""

from __future__ import annotations

from typing import Any, NoReturn

from icebergds.api.table import Table
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.staging import StagedOperations
from icebergds.errors import InvalidOptionError


class StagedTable(Table):
    """A table on which changes are made one after the other; each sees those before it."""

    __slots__ = ("_staged",)

    def __init__(self, found: LoadedTable) -> None:
        """Begins on a table as it was just loaded."""
        staged = StagedOperations(found.operations, found.state)
        super().__init__(found.address, found.state, staged)
        self._staged: StagedOperations | None = staged

    def __reduce__(self) -> NoReturn:
        raise InvalidOptionError(
            f"table {self.name}: a transaction cannot be sent to other processes; use it where it "
            "was begun"
        )

    def _current(self) -> Any:
        if self._staged is None:
            raise self._is_over()
        return super()._current()

    def _ended(self) -> StagedOperations:
        """Ends the changes, and returns them."""
        staged, self._staged = self._staged, None
        if staged is None:
            raise self._is_over()
        return staged

    def _is_over(self) -> InvalidOptionError:
        return InvalidOptionError(
            f"table {self.name}: this transaction has ended; begin another one"
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidOptionError(
            f"table {self.name}: maintenance and further transactions are not possible inside of a "
            "transaction; commit it first"
        )

    transaction = _refuse
    maintain = rewrite_data_files = rewrite_position_delete_files = _refuse
    convert_equality_deletes = remove_dangling_deletes = rewrite_manifests = _refuse
    expire_snapshots = remove_orphan_files = _refuse
    compute_table_stats = compute_partition_stats = _refuse
