"""Runs transactions in a catalog's database and reports their outcome if they fail."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import URL, CompoundSelect, Connection, Engine, Executable, Select
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from icebergds.errors import CommitStateUnknownError, StorageError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Write:
    """The outcome of a transaction.

    Attributes:
        rows: how many rows its last statement changed; 0 if it failed.
        error: why it failed.
        ended: whether it has certainly ended. If the database's answer was lost, it may have been
            committed or may still be.
        sent: whether the commit was sent to the database; then an error does not prove that it
            failed.
    """

    rows: int
    error: Exception | None = None
    ended: bool = True
    sent: bool = True

    @property
    def breaks_rule(self) -> bool:
        """Whether it violated a constraint of the tables, mostly because the key exists.

        It may be another constraint, such as that of a column that must not be null.
        """
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

    def read(self, statement: Select[Any] | CompoundSelect[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises StorageError if the database fails."""
        try:
            with self.engine.connect() as connection:
                return [tuple(row) for row in connection.execute(statement)]
        except (SQLAlchemyError, OSError) as error:
            raise self.failure("cannot be read", error) from self.cause(error)

    def write(self, *statements: Executable) -> Write:
        """Executes statements in one transaction and commits it.

        Raises:
            StorageError: there is no connection, so nothing was executed.
        """
        return self._write(statements, each_changes_a_row=False)

    def write_each(self, *statements: Executable) -> Write:
        """Executes statements in one transaction, and commits it if each of them changes one row.

        Otherwise the outcome is that of the statement that does not, and nothing is changed.

        Raises:
            StorageError: there is no connection, so nothing was executed.
        """
        return self._write(statements, each_changes_a_row=True)

    def _write(self, statements: Sequence[Executable], *, each_changes_a_row: bool) -> Write:
        try:
            connection = self.engine.connect()
        except (SQLAlchemyError, OSError) as error:
            raise self.failure("cannot be reached", error) from self.cause(error)
        sent = False
        try:
            rows = 0
            for statement in statements:
                rows = connection.execute(statement).rowcount
                if each_changes_a_row and rows != 1:
                    connection.rollback()
                    return Write(rows)
            sent = True
            connection.commit()
        except Exception as error:
            return Write(0, error, _is_rolled_back(connection), sent)
        finally:
            self._close(connection)
        return Write(rows)

    def _close(self, connection: Connection) -> None:
        try:
            connection.close()
        except Exception as error:
            _LOG.warning(
                "catalog %s: a connection to its database was not closed: %s",
                self.catalog,
                self.reason(error),
            )

    def require(self, write: Write, what: str, is_done: Callable[[], bool] = lambda: False) -> int:
        """How many rows a transaction changed; 1 if it failed but its change is in the database.

        Args:
            what: what it does, such as `drop table db.t`.
            is_done: checks whether the change was made; called if the answer was lost.

        Raises:
            StorageError: it failed.
            CommitStateUnknownError: it failed but may have been committed.
        """
        if write.error is None:
            return write.rows
        if write.sent:
            try:
                if is_done():
                    return 1
            except Exception as error:
                raise self._unknown(what, error) from self.cause(write.error)
            if not write.ended:
                raise self._unknown(what, write.error) from self.cause(write.error)
        raise self.failure(f"refused to {what}", write.error) from self.cause(write.error)

    def _unknown(self, what: str, error: Exception) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"catalog {self.catalog}: its database failed during the attempt to {what}; it is "
            f"unknown whether that succeeded: {self.reason(error)}"
        )

    def failure(self, what: str, error: Exception) -> StorageError:
        """The error for something that the database cannot do; raise it from `cause(error)`."""
        where = shown_url(self.engine.url)
        return StorageError(
            f"catalog {self.catalog}: its database {where} {what}: {self.reason(error)}",
            location=where,
        )

    def reason(self, error: Exception | None) -> str:
        """The driver's message, without the statement, its values and secrets of the URL."""
        return without_secrets(str(getattr(error, "orig", None) or error).strip(), self.engine.url)

    def cause(self, error: Exception | None) -> Exception | None:
        """The error, if it may be printed in a traceback; None if it quotes a secret."""
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


def shown_url(url: URL) -> str:
    """A URL for messages, without user and parameters."""
    shown = URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    return shown.render_as_string()


def without_secrets(text: str, url: URL) -> str:
    """A driver's message with asterisks instead of secrets from the URL."""
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


# Parameters whose values are not secret; drivers' messages may quote them.
_HARMLESS = ("application_name", "charset", "connect_timeout", "sslmode", "timeout")


def _secrets(url: URL) -> Iterator[str]:
    """The password, and the values of parameters that are not known to be harmless."""
    if url.password:
        yield url.password
    for name, value in url.query.items():
        if name not in _HARMLESS:
            yield from filter(None, (value,) if isinstance(value, str) else value)
