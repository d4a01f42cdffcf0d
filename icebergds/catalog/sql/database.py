"""Runs transactions in a catalog's database and reports their outcome if they fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Select
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from icebergds.catalog.sql.secrets import shown_url, without_secrets
from icebergds.errors import CommitStateUnknownError, IcebergError


@dataclass(frozen=True, slots=True)
class Write:
    """The outcome of a transaction.

    Attributes:
        rows: how many rows its last statement changed; 0 if it failed.
        error: why it failed.
        ended: whether it has certainly ended. If the database's answer was lost, it may have been
            committed or may still be.
    """

    rows: int
    error: Exception | None = None
    ended: bool = True

    @property
    def is_duplicate(self) -> bool:
        """Whether it failed because there is a row with the same key."""
        return self.ended and isinstance(self.error, IntegrityError)

    @property
    def is_transient(self) -> bool:
        """Whether the failure may be transient: locks, deadlocks, serialisation."""
        return self.ended and isinstance(self.error, OperationalError)


@dataclass(frozen=True, slots=True)
class Database:
    """The database of a catalog."""

    catalog: str
    engine: Engine = field(repr=False)

    def read(self, statement: Select[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises IcebergError if the database fails."""
        try:
            with self.engine.connect() as connection:
                return [tuple(row) for row in connection.execute(statement)]
        except SQLAlchemyError as error:
            raise self.failure("cannot be read", error) from self.cause(error)

    def write(self, *statements: Executable) -> Write:
        """Executes statements in one transaction and commits it.

        Raises:
            IcebergError: there is no connection, so nothing was executed.
        """
        try:
            connection = self.engine.connect()
        except SQLAlchemyError as error:
            raise self.failure("cannot be reached", error) from self.cause(error)
        with connection:
            try:
                rows = 0
                for statement in statements:
                    rows = connection.execute(statement).rowcount
                connection.commit()
            except Exception as error:
                return Write(0, error, ended=_is_rolled_back(connection))
        return Write(rows)

    def require(self, write: Write, what: str) -> int:
        """How many rows a transaction changed.

        Raises:
            IcebergError: it failed.
            CommitStateUnknownError: it failed but may have been committed.
        """
        if write.error is None:
            return write.rows
        if write.ended:
            cause = self.cause(write.error)
            raise self.failure(f"refused to {what}", write.error) from cause
        raise CommitStateUnknownError(
            f"catalog {self.catalog}: the connection to its database was lost during the attempt "
            f"to {what}; it is unknown whether that succeeded: {self.reason(write.error)}"
        ) from self.cause(write.error)

    def failure(self, what: str, error: Exception) -> IcebergError:
        """The error for what the database cannot do; raise it from `cause(error)`."""
        where = shown_url(self.engine.url)
        return IcebergError(
            f"catalog {self.catalog}: its database {where} {what}: {self.reason(error)}"
        )

    def reason(self, error: Exception | None) -> str:
        """The driver's message, without the statement, its values and secrets of the URL."""
        return without_secrets(str(getattr(error, "orig", None) or error).strip(), self.engine.url)

    def cause(self, error: Exception | None) -> Exception | None:
        """The error, if it may be printed with the traceback; None if it quotes a secret."""
        text = str(error)
        return error if without_secrets(text, self.engine.url) == text else None


def _is_rolled_back(connection: Connection) -> bool:
    """Whether the database confirms that a failed transaction is rolled back."""
    if connection.invalidated or connection.closed:
        return False
    try:
        connection.rollback()
    except Exception:
        return False
    return not connection.invalidated
