"""Points to the metadata file of a table by its row in the database (`SqlPointer`)."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import Pointer, Swap, applied, refused, uncertain
from icebergds.catalog.sql.database import Database, Write
from icebergds.catalog.sql.tables import TableRows
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
        return swap_outcome(self.rows.database, write, self.what)


def swap_outcome(database: Database, write: Write, what: str) -> Swap:
    """The outcome of a transaction that swaps rows.

    Args:
        what: the tables in messages, such as `table lake.db.t`.
    """
    if not write.sent and not write.ended:
        # The connection broke before the commit, which can be tried again.
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
