"""Points to the metadata file of a table by its row in the database (`SqlPointer`)."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import Pointer, Swap, applied, refused, uncertain
from icebergds.catalog.sql.database import Write
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
        if write.is_duplicate:
            return refused(AlreadyExistsError(f"{self.what} already exists, as a table or view"))
        return self._outcome(write, "create")

    def swap(self, base: Pointer, location: str, metadata: object) -> Swap:
        assert base.metadata_location is not None, "a commit is based on a metadata file"
        write = self.rows.swap(self.identifier, base.metadata_location, location)
        if not write.sent and not write.ended:
            # The connection broke before the commit, which can be tried again.
            return refused()
        return self._outcome(write, "change")

    def _outcome(self, write: Write, verb: str) -> Swap:
        if write.error is None:
            return applied() if write.rows == 1 else refused()
        database = self.rows.database
        reason, cause = database.reason(write.error), database.cause(write.error)
        error: IcebergError = database.failure(f"refused to {verb} {self.what}", write.error)
        if verb == "change" and write.is_transient:
            error = CommitConflictError(
                f"{self.what} was not changed, because the catalog's database is too busy or other "
                f"commits were running: {reason}"
            )
        if not write.sent:
            return refused(error, cause)
        return uncertain(error, pending=not write.ended, reason=reason, cause=cause)
