"""Commits to several tables in one transaction of the catalog's database."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.table_operations import PointerTableOperations, PreparedCommit
from icebergds.catalog.sql.pointer import swap_outcome
from icebergds.catalog.sql.tables import TableRows
from icebergds.commit.operations import TableCommit, TableState
from icebergds.errors import CommitConflictError, IcebergError


def commit_tables(
    rows: TableRows, commits: Sequence[tuple[PointerTableOperations, TableCommit]]
) -> list[TableState]:
    """Commits to all tables or to none.

    Args:
        rows: of the catalog's tables.
        commits: each with the operations of its table.

    Returns:
        The tables after the commit, in their order.

    Raises:
        CommitConflictError: another commit to one of the tables came first.
        NoSuchTableError: one of the tables does not exist.
        CommitStateUnknownError: it is unknown whether they were committed.
        StorageError: the database failed, or a metadata file was not written.
    """
    prepared: list[tuple[PointerTableOperations, Identifier, PreparedCommit]] = []
    states = [each.base for _, each in commits]
    try:
        places = []
        for place, (operations, each) in enumerate(commits):
            new = operations.prepare(each.base, each.requirements, each.updates)
            if new is not None:
                prepared.append((operations, each.identifier, new))
                places.append(place)
        if prepared:
            _swap(rows, prepared)
    except IcebergError as error:
        if not error.outcome_unknown:
            for operations, _, new in prepared:
                operations.discard(new)
        raise
    for place, (operations, _, new) in zip(places, prepared, strict=True):
        states[place] = operations.finish(new)
    return states


def _swap(
    rows: TableRows, prepared: Sequence[tuple[PointerTableOperations, Identifier, PreparedCommit]]
) -> None:
    # In one order, so that two transactions do not wait for each other.
    ordered = sorted(prepared, key=lambda each: each[1])
    what = "tables " + ", ".join(operations.name for operations, _, _ in ordered)
    write = rows.swap(
        *((identifier, new.base.metadata_location, new.location) for _, identifier, new in ordered)
    )
    swap = swap_outcome(rows.database, write, what)
    # The database applies all or none, so that one table tells of all.
    operations, _, new = ordered[0]
    if operations.was_applied(new, swap):
        return
    if swap.error is not None and not swap.pending:
        raise swap.error from swap.cause
    raise CommitConflictError(f"{what}: another commit to one of them came first") from swap.cause
