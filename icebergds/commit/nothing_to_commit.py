"""Ends a commit that has nothing to do (`NothingToCommitError`)."""

from __future__ import annotations

from icebergds.commit.operations import TableState


class NothingToCommitError(Exception):
    """Raised by an action whose table needs no change; the caller of the commit catches it.

    Attributes:
        state: the table that needs none.
    """

    def __init__(self, state: TableState) -> None:
        super().__init__(f"table {state.name}: there is nothing to commit")
        self.state = state
