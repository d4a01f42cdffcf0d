"""Commits several changes of a table together (`Table.transaction`)."""

from __future__ import annotations

import logging
from typing import Self

from icebergds.api.staged_table import StagedTable
from icebergds.api.table import Table
from icebergds.commit.transaction import commit_staged
from icebergds.display import counted
from icebergds.operations.outcomes import nothing_committed

_LOG = logging.getLogger(__name__)


class Transaction(StagedTable):
    """A table on which changes are made one after the other, and committed together.

        with table.transaction() as tx:
            tx.update_schema().add_column("country", "string").commit()
            tx.append(df)
            tx.delete("day < date'2020-01-01'")

    Each change sees those before it, and so do reads of this object; nobody else sees any until all
    are committed, at the end of the block or by `commit_transaction`. If the block raises, nothing
    is committed, and files that were written are deleted. If another commit comes first, the
    changes are made again on the table as it is then; but if rows were changed that depend on a
    branch which somebody else has moved, ValidationError says so.

    Maintenance is done outside of transactions.
    """

    __slots__ = ("_outer",)

    def __init__(self, outer: Table) -> None:
        """Begins a transaction on the table's current state."""
        super().__init__(outer._current())
        self._outer = outer

    def commit_transaction(self) -> Table:
        """Commits all changes, and returns the table, which then has them.

        Raises:
            InvalidOptionError: the transaction has ended.
            ValidationError: another commit changed what a change was computed from.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            IcebergError: a change does not fit the table as another commit has left it.
        """
        staged = self._ended()
        with nothing_committed(self.name):
            self._outer._state = self._state = commit_staged(staged)
        return self._outer

    def abandon(self) -> None:
        """Ends the transaction without a commit, and deletes the files of its changes."""
        staged = self._ended()
        self._state = staged.base
        staged.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._staged is None:
            return
        if kind is None:
            self.commit_transaction()
        else:
            self.abandon()

    def __del__(self) -> None:
        staged = getattr(self, "_staged", None)
        if staged is not None and staged.steps:
            _LOG.warning(
                "table %s: a transaction was neither committed nor abandoned, and lost %s; use "
                "`with table.transaction() as tx:`, or call its commit_transaction()",
                staged.name,
                counted(len(staged.steps), "change"),
            )
