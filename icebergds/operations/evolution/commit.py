"""Commits a metadata change; rebuilds it on the latest metadata after a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.errors import (
    AlreadyExistsError,
    InvalidDataError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchSnapshotError,
)

_OF_CHANGE = (
    InvalidOptionError,
    InvalidDataError,
    InvalidMetadataError,
    AlreadyExistsError,
    NoSuchSnapshotError,
)


def commit_update(
    table: LoadedTable,
    produce: Callable[[TableState], Change],
    is_updated: Callable[[TableState], bool],
) -> TableState:
    """Commits the change that `produce` returns; nothing if it has no updates.

    Args:
        is_updated: whether the table has the change.

    Raises:
        InvalidOptionError, InvalidDataError, InvalidMetadataError, AlreadyExistsError,
            NoSuchSnapshotError: the change does not fit the table, which the message names.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the change was committed is not known.
    """

    def named(state: TableState) -> Change:
        # A transaction may call it again after this function has returned.
        with _naming(table.name):
            return produce(state)

    first = named(table.state)
    if not first.updates:
        return table.state
    with _naming(table.name):
        return commit_change(
            table.operations,
            lambda state: first if state is table.state else named(state),
            is_updated,
            table.state,
        )


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Adds the table's name to errors of a change."""
    try:
        yield
    except _OF_CHANGE as error:
        prefix = f"table {name}: "
        if str(error).startswith(prefix):
            raise
        raise type(error)(f"{prefix}{error}") from None
