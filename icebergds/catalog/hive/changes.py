"""Makes calls that change a Hive Metastore, and determines their outcome after failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icebergds.catalog.hive.calls import Call, MetaError, RemoteError, Unanswerable
from icebergds.catalog.hive.connection import AnswerLost, Connection, Metastore
from icebergds.errors import CommitStateUnknownError


def make_change(
    connection: Connection,
    metastore: Metastore,
    what: str,
    is_done: Callable[[], bool],
    call: Call[None],
    *arguments: Any,
) -> None:
    """Makes a call; checks for its effect if its answer is lost.

    Args:
        what: what the call does, such as `drop table lake.db.t`.
        is_done: checks whether the metastore has the change.

    Raises:
        RemoteError: an error that the call declares, except MetaError.
        StorageError: the metastore cannot be reached, or failed and did nothing.
        CommitStateUnknownError: it failed, but may have made the change or may still make it.
    """
    try:
        connection.tell(call, *arguments)
    except (MetaError, Unanswerable, AnswerLost) as error:
        try:
            if is_done():
                return
        except Exception as other:
            raise _unknown(metastore, what, f"{error}; {other}") from error
        if not is_certain(error):
            raise _unknown(metastore, what, error) from error
        raise metastore.failure(f"failed to {what}", error) from error


def is_modified(error: Exception) -> bool:
    """Whether the table had another metadata file than the call expected."""
    return isinstance(error, MetaError) and "The table has been modified" in str(error)


def is_certain(error: Exception) -> bool:
    """Whether a failed call, if it had no effect yet, will never have one.

    Other errors may come from a database whose answer the metastore lost.
    """
    if isinstance(error, Unanswerable):
        return error.is_unknown_call
    if isinstance(error, MetaError):
        # The latter is about the storage, which a metastore checks first.
        return is_modified(error) or str(error).startswith("Got exception: ")
    return isinstance(error, RemoteError)


def _unknown(metastore: Metastore, what: str, why: object) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"catalog {metastore.catalog}: its Hive Metastore failed during the attempt to {what}; it "
        f"is unknown whether that succeeded: {why}"
    )
