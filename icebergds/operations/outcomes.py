"""Adds "nothing was committed" to the storage errors of statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icebergds.errors import StorageError

_NOTHING = "nothing was committed"


@contextmanager
def nothing_committed(table: str, *, merges_schema: bool = False) -> Iterator[None]:
    """Adds to a StorageError of the block that nothing was committed.

    The block commits last, or logs what fails afterwards; a commit whose outcome is not known
    raises CommitStateUnknownError.

    Args:
        table: the table's name in messages.
        merges_schema: whether the block adds columns to the table, in an earlier commit.
    """
    try:
        yield
    except StorageError as error:
        # The commit may have said so already, and have named the table by its location.
        if not any(outcome.startswith(_NOTHING) for outcome in error.outcomes):
            error.add_outcome(f"{_NOTHING} to table {table}")
        if merges_schema:
            error.add_outcome("columns that 'merge-schema' may have added before are kept")
        raise
