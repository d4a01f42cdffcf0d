"""Stores a table's metadata file in its row in the database (`SqlPointer`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import (
    Pointer,
    Swap,
    applied,
    is_moved,
    refused,
    uncertain,
)
from icebergds.catalog.pointer.table_operations import PointerTableOperations, PreparedCommit
from icebergds.catalog.sql.database import Database, Write
from icebergds.catalog.sql.tables import TableRows
from icebergds.commit.operations import TableCommit, TableState
from icebergds.errors import AlreadyExistsError, CommitConflictError, IcebergError


@dataclass(frozen=True, slots=True)
class SqlPointer:
    """The row of a table or view; implements `MetadataPointer`.

    Attributes:
        what: the table or view in messages, such as `table lake.db.t`.
    """

    rows: TableRows
    identifier: Identifier
    what: str

    def find(self) -> Pointer | None:
        return self.rows.find(self.identifier)

    def insert(self, location: str, metadata: object) -> Swap:
        write = self.rows.insert(self.identifier, location)
        if write.error is None:
            return applied()
        if write.breaks_rule and self.rows.has_key(self.identifier):
            return refused(AlreadyExistsError(f"{self.what} already exists, as a table or view"))
        database = self.rows.database
        return _failed(
            database, write, database.failure(f"refused to create {self.what}", write.error)
        )

    def swap(self, base: Pointer, location: str, metadata: object) -> Swap:
        assert base.metadata_location is not None, "a commit is based on a metadata file"
        write = self.rows.swap((self.identifier, base.metadata_location, location))
        return _swap_outcome(self.rows.database, write, self.what)

    def delete(self, found: Pointer) -> bool:
        write = self.rows.delete(self.identifier, found.metadata_location)
        rows = self.rows.database.require(write, f"drop {self.what}", lambda: self.find() is None)
        return rows > 0

    def move(self, target: SqlPointer, found: Pointer) -> bool:
        write = self.rows.rename(self.identifier, target.identifier)
        if write.breaks_rule and self.rows.has_key(target.identifier):
            new = ".".join((self.rows.database.catalog, *target.identifier))
            raise AlreadyExistsError(
                f"{self.what} cannot be renamed: {new} exists, as a table or view"
            )
        rows = self.rows.database.require(
            write, f"rename {self.what}", lambda: is_moved(self, target)
        )
        return rows > 0


def commit_tables(
    rows: TableRows, commits: Sequence[tuple[PointerTableOperations, TableCommit]]
) -> list[TableState]:
    """Commits to all tables or to none.

    Args:
        rows: the rows of the catalog's tables.
        commits: each with the operations of its table.

    Returns:
        The tables after the commit, in the same order.

    Raises:
        CommitConflictError: another commit to one of the tables came first.
        NoSuchTableError: one of the tables does not exist.
        CommitStateUnknownError: it is unknown whether they were committed.
        StorageError: the database failed, or a metadata file was not written.
    """
    prepared: list[tuple[PointerTableOperations, Identifier, PreparedCommit]] = []
    states = [each.base for _, each in commits]
    try:
        places = []
        for place, (operations, each) in enumerate(commits):
            new = operations.prepare(each.base, each.requirements, each.updates)
            if new is not None:
                prepared.append((operations, each.identifier, new))
                places.append(place)
        if prepared:
            _swap(rows, prepared)
    except IcebergError as error:
        for operations, _, new in prepared:
            operations.discard(new, error)
        raise
    for place, (operations, _, new) in zip(places, prepared, strict=True):
        states[place] = operations.finish(new)
    return states


def _swap(
    rows: TableRows, prepared: Sequence[tuple[PointerTableOperations, Identifier, PreparedCommit]]
) -> None:
    # In a fixed order, so that two transactions do not deadlock.
    ordered = sorted(prepared, key=lambda each: each[1])
    what = "tables " + ", ".join(operations.name for operations, _, _ in ordered)
    write = rows.swap(
        *((identifier, new.base.metadata_location, new.location) for _, identifier, new in ordered)
    )
    swap = _swap_outcome(rows.database, write, what)
    # The database applies all or none, so checking one table is sufficient.
    operations, _, new = ordered[0]
    if operations.was_applied(new, swap):
        return
    if swap.error is not None and not swap.pending:
        raise swap.error from swap.cause
    raise CommitConflictError(f"{what}: another commit to one of them came first") from swap.cause


def _swap_outcome(database: Database, write: Write, what: str) -> Swap:
    """The outcome of a transaction that swaps rows.

    Args:
        what: the tables in messages, such as `table lake.db.t`.
    """
    if not write.sent and not write.ended:
        # The connection broke before the commit, which can be retried.
        return refused()
    if write.error is None:
        return applied() if write.rows == 1 else refused()
    if write.is_transient:
        error = CommitConflictError(
            f"{what} was not changed, because the catalog's database is too busy or other "
            f"commits were running: {database.reason(write.error)}"
        )
        return _failed(database, write, error)
    return _failed(database, write, database.failure(f"refused to change {what}", write.error))


def _failed(database: Database, write: Write, error: IcebergError) -> Swap:
    reason, cause = database.reason(write.error), database.cause(write.error)
    if not write.sent:
        return refused(error, cause)
    return uncertain(error, pending=not write.ended, reason=reason, cause=cause)
