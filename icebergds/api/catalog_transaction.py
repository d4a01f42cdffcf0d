"""Commits changes of several tables together (`Catalog.transaction`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

from icebergds.api.catalog_base import Name
from icebergds.api.table import StagedTable
from icebergds.catalog import base
from icebergds.catalog.base import Identifier, TransactionCatalog
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.staging import StagedOperations
from icebergds.commit.transaction import commit_staged
from icebergds.commit.transaction_tables import commit_staged_tables
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.operations.outcomes import nothing_committed


class CatalogTransaction:
    """Changes of tables of one catalog, committed together or not at all.

        with catalog.transaction() as tx:
            tx.table("db.orders").append(orders)
            tx.table("db.totals").overwrite(totals)

    Each change of a table sees those before it, and so do reads of that object; nobody else sees
    any until all are committed, at the end of the block or by `commit_transaction`. If the block
    raises, nothing is committed, and files that were written are deleted. If another commit comes
    first, the changes of all tables are repeated, as in `Table.transaction`. A table that is only
    read may change meanwhile.

    Catalogs that commit to one table at a time refuse a change of a second one.
    """

    def __init__(
        self,
        catalog: base.Catalog,
        identifier: Callable[[Name], Identifier],
        load: Callable[[Identifier], LoadedTable],
    ) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._load = load
        self._tables: dict[Identifier, TableInTransaction] = {}
        self._has_ended = False

    def table(self, identifier: Name) -> TableInTransaction:
        """A table of the catalog: the same object for the same name.

        Raises:
            NoSuchTableError: the table does not exist.
            InvalidOptionError: the transaction has ended.
        """
        if self._has_ended:
            raise self._is_over()
        parts = self._identifier(identifier)
        if parts not in self._tables:
            self._tables[parts] = TableInTransaction(self._load(parts), self)
        return self._tables[parts]

    def commit_transaction(self) -> None:
        """Commits all changes of all tables.

        Raises:
            InvalidOptionError: the transaction has ended.
            ValidationError: another commit changed what a change was computed from.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            IcebergError: a change does not fit its table as another commit has left it.
        """
        staged = self._ended()
        changed = {parts: found for parts, found in staged.items() if found.steps}
        if not changed:
            return
        with nothing_committed(", ".join(found.name for found in changed.values())):
            if len(changed) == 1:
                states = [commit_staged(found) for found in changed.values()]
            else:
                catalog = self._catalog
                assert isinstance(catalog, TransactionCatalog), "it was checked before the change"
                states = commit_staged_tables(
                    changed, catalog.commit_tables, is_atomic=catalog.commits_atomically
                )
        for parts, state in zip(changed, states, strict=True):
            self._tables[parts]._state = state

    def abandon(self) -> None:
        """Ends the transaction without a commit, and deletes the files of its changes."""
        for parts, staged in self._ended().items():
            self._tables[parts]._state = staged.base
            staged.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._has_ended:
            return
        if kind is None:
            self.commit_transaction()
        else:
            self.abandon()

    def __reduce__(self) -> NoReturn:
        raise InvalidOptionError(
            f"catalog {self._catalog.name}: a transaction cannot be sent to other processes; use "
            "it where it was begun"
        )

    def _check_change(self, table: TableInTransaction) -> None:
        """Refuses a change of a second table that could not be committed."""
        others = [
            other.name
            for other in self._tables.values()
            if other is not table and other._staged is not None and other._staged.steps
        ]
        if not others:
            return
        if not isinstance(self._catalog, TransactionCatalog):
            raise UnsupportedFeatureError(
                f"table {table.name} cannot be changed together with {', '.join(others)}: catalog "
                f"{self._catalog.name} commits to one table at a time; use a transaction for each "
                "table, or a REST or SQL catalog"
            )
        self._catalog.check_transactions()

    def _ended(self) -> dict[Identifier, StagedOperations]:
        if self._has_ended:
            raise self._is_over()
        self._has_ended = True
        return {parts: table._ended() for parts, table in self._tables.items()}

    def _is_over(self) -> InvalidOptionError:
        return InvalidOptionError(
            f"catalog {self._catalog.name}: this transaction has ended; begin another one by "
            "catalog.transaction()"
        )


class TableInTransaction(StagedTable):
    """A table in a catalog transaction, whose changes are committed when the transaction ends."""

    __slots__ = ("_of",)

    def __init__(self, found: LoadedTable, of: CatalogTransaction) -> None:
        self._of = of
        super().__init__(found)

    def _current(self) -> Any:
        self._of._check_change(self)
        return super()._current()
