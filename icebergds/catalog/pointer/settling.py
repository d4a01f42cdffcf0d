"""Finds out whether an attempt to set a pointer was applied.

The names of metadata files are unique, so a pointer never returns to an earlier one. This makes it
possible to find out after an error.
"""

from __future__ import annotations

from collections.abc import Callable

from icebergds.catalog.pointer.pointer import Pointer, Swap
from icebergds.errors import CommitStateUnknownError


def was_applied(
    swap: Swap,
    what: str,
    base: str | None,
    new: str,
    find: Callable[[], Pointer | None],
    logged: Callable[[str], set[str]],
) -> bool:
    """Whether a pointer was set, asking the catalog where its answer does not say.

    Args:
        what: the table or view in messages, such as `table lake.db.t`.
        base: the metadata file that was to be replaced; None for a new entry.
        new: the metadata file that was to replace it.
        find: reads the pointer.
        logged: the earlier metadata files that a metadata file lists.

    Raises:
        CommitStateUnknownError: it is unknown.
    """
    if swap.applied or not swap.uncertain:
        return swap.applied
    try:
        pointer = find()
        if pointer is not None:
            current = pointer.metadata_location
            if new in (current, pointer.previous_metadata_location):
                return True
            earlier = set() if current is None else logged(current)
            if new in earlier:
                return True
            # The log must reach back to the base: what came before the log is unknown.
            if base is not None and current != base and base in earlier:
                return False
    except Exception as error:
        raise _unknown(what, new, error) from swap.cause
    if not swap.pending:
        return False
    raise _unknown(what, new, swap.reason) from swap.cause


def _unknown(what: str, new: str, why: object) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"{what}: it is unknown whether {new} was committed ({why}); check whether it is in the "
        "metadata log before trying again"
    )
