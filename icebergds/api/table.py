"""Loads a table (`load_table`), and changes it at once (`Table`) or together (`Transaction`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from icebergds.api.table_evolution import TableEvolution
from icebergds.api.table_imports import TableImports
from icebergds.api.table_maintenance import TableMaintenance
from icebergds.api.table_reads import TableReads
from icebergds.api.table_statistics import TableStatistics
from icebergds.api.table_writes import TableWrites
from icebergds.catalog.address import address_of
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.catalog.naming import known_catalogs, table_name_parts
from icebergds.commit.staging import StagedOperations
from icebergds.commit.transaction import commit_staged
from icebergds.display import counted
from icebergds.errors import InvalidOptionError, NoSuchTableError
from icebergds.operations.options.arguments import mapping_argument, path_argument, text_argument
from icebergds.operations.outcomes import nothing_committed

_LOG = logging.getLogger(__name__)


def load_table(
    path: str | os.PathLike[str],
    *,
    catalog: str | None = None,
    properties: Mapping[str, str] | None = None,
    location_map: Mapping[str, str] | None = None,
) -> Table:
    """Loads a table by its location, a metadata file, or its name.

    Args:
        path: a location; a metadata file; the table's name with that of a configured catalog first,
            such as `lake.db.events` (`Table.name`), or without it in the default catalog; or with
            `catalog`, an identifier such as `db.events`. Write `./lake.db.events` for a directory
            of this name.
        catalog: the name of a catalog; `path` is then an identifier in it.
        properties: of the catalog (`type`, `warehouse`) and the storage (`s3.endpoint`).
        location_map: maps prefixes of locations to their replacements.

    Raises:
        InvalidOptionError: an unknown property, or an argument of the wrong type.
        NoSuchTableError: the table does not exist.

    Examples:
        >>> load_table("lake.db.events")  # doctest: +SKIP
        >>> load_table(  # doctest: +SKIP
        ...     "db.events", catalog="lake", properties={"warehouse": "s3://bucket/warehouse"}
        ... )
    """
    path = path_argument("path", path)
    catalog = text_argument("catalog", catalog)
    given = mapping_argument("properties", properties)
    locations = mapping_argument("location_map", location_map)
    address = address_of(path, catalog, given, locations)
    try:
        state, operations = address.open()
    except NoSuchTableError as error:
        if address.catalog is None and table_name_parts(path):
            raise NoSuchTableError(
                f"{error}; as a name, it begins with no configured catalog ({known_catalogs(path)})"
            ) from None
        raise
    _LOG.info("table %s: loaded, at snapshot %s", state.name, state.metadata.current_snapshot_id)
    return Table(address, state, operations)


class Table(
    TableReads, TableWrites, TableEvolution, TableImports, TableMaintenance, TableStatistics
):
    """The state of a table when it was last loaded, refreshed or changed through this object.

    Reads see that state. Writes start from the table's current state and update this object.
    """

    __slots__ = ()

    def transaction(self) -> Transaction:
        """Begins several changes that are committed together: see `Transaction`."""
        return Transaction(self)


class StagedTable(Table):
    """A table with uncommitted changes; each change sees those before it."""

    __slots__ = ("_staged",)

    def __init__(self, found: LoadedTable) -> None:
        """Starts from a table that was just loaded."""
        staged = StagedOperations(found.operations, found.state)
        super().__init__(found.address, found.state, staged)
        self._staged: StagedOperations | None = staged

    def __reduce__(self) -> NoReturn:
        raise InvalidOptionError(
            f"table {self.name}: a transaction cannot be sent to other processes; use it where it "
            "was begun"
        )

    def _current(self) -> Any:
        if self._staged is None:
            raise self._is_over()
        return super()._current()

    def _ended(self) -> StagedOperations:
        """Ends the changes, and returns them."""
        staged, self._staged = self._staged, None
        if staged is None:
            raise self._is_over()
        return staged

    def _is_over(self) -> InvalidOptionError:
        return InvalidOptionError(
            f"table {self.name}: this transaction has ended; begin another one"
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidOptionError(
            f"table {self.name}: maintenance and further transactions are not possible inside of a "
            "transaction; commit it first"
        )

    transaction = _refuse
    maintain = rewrite_data_files = rewrite_position_delete_files = _refuse
    convert_equality_deletes = remove_dangling_deletes = rewrite_manifests = _refuse
    expire_snapshots = remove_orphan_files = _refuse
    compute_table_stats = compute_partition_stats = _refuse


class Transaction(StagedTable):
    """A table whose changes are committed together.

        with table.transaction() as tx:
            tx.update_schema().add_column("country", "string").commit()
            tx.append(df)
            tx.delete("day < date'2020-01-01'")

    Each change sees those before it, and so do reads of this object; nobody else sees any until all
    are committed, at the end of the block or by `commit_transaction`. If the block raises, nothing
    is committed, and files that were written are deleted. If another commit comes first, the
    changes are repeated on the table's new state; but if changed rows depend on a branch that
    somebody else has moved, ValidationError is raised.

    Maintenance runs outside of transactions.
    """

    __slots__ = ("_outer",)

    def __init__(self, outer: Table) -> None:
        """Begins a transaction on the table's current state."""
        super().__init__(outer._current())
        self._outer = outer

    def commit_transaction(self) -> Table:
        """Commits all changes, and returns the table, which then has them.

        Raises:
            InvalidOptionError: the transaction has ended.
            ValidationError: another commit changed what a change was computed from.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            IcebergError: a change does not fit the table as another commit has left it.
        """
        staged = self._ended()
        with nothing_committed(self.name):
            self._outer._state = self._state = commit_staged(staged)
        return self._outer

    def abandon(self) -> None:
        """Ends the transaction without a commit, and deletes the files of its changes."""
        staged = self._ended()
        self._state = staged.base
        staged.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._staged is None:
            return
        if kind is None:
            self.commit_transaction()
        else:
            self.abandon()

    def __del__(self) -> None:
        staged = getattr(self, "_staged", None)
        if staged is not None and staged.steps:
            _LOG.warning(
                "table %s: a transaction was neither committed nor abandoned, and lost %s; use "
                "`with table.transaction() as tx:`, or call its commit_transaction()",
                staged.name,
                counted(len(staged.steps), "change"),
            )
