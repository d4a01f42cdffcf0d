"""Tells in errors of the storage that a statement has committed nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icebergds.errors import StorageError


@contextmanager
def nothing_committed(table: str) -> Iterator[None]:
    """Adds to a StorageError of the block that nothing was committed.

    The block commits last, or logs what fails afterwards; a commit whose outcome is not known
    raises CommitStateUnknownError.

    Args:
        table: the table's name in messages.
    """
    try:
        yield
    except StorageError as error:
        error.add_outcome(f"nothing was committed to table {table}")
        raise
