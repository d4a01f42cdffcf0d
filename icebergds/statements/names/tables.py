"""Loads the table that a name refers to, with the version or metadata table that it selects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.api.table import Table
from icebergds.errors import (
    InvalidOptionError,
    InvalidStatementError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.options.selections import selection_of
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.suggestions import did_you_mean

_KINDS = {kind.value: kind for kind in MetadataTable}
# A metadata table in Java, a read option here.
_CHANGES = "changes"
_CHANGE_FEED = "read-change-feed"


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table, and the version, changes or metadata table that a name selects.

    Attributes:
        name: of the table, without the part that selects.
        options: read options: the branch, tag, snapshot, time or changes that the name ends with.
        metadata_table: the metadata table that the name ends with.
    """

    name: CatalogName
    table: Table
    options: Mapping[str, str] = field(default_factory=dict)
    metadata_table: MetadataTable | None = None

    @property
    def has_other_rows(self) -> bool:
        """Whether its rows are not those of the table."""
        return self.metadata_table is not None or _CHANGE_FEED in self.options

    @property
    def branch(self) -> str | None:
        """The branch that the name ends with."""
        return self.options.get("branch")


def find_table(scope: NameScope, name: CatalogName) -> NamedTable:
    """The table of a name, or the one that the last part of the name selects from.

    A table of the whole name comes first: `t.files` may be the table `files` in a namespace `t`.

    Raises:
        NoSuchTableError: there is no such table.
    """
    catalog = scope.catalog(name.catalog)
    selected = _selected(name.parts[-1]) if len(name.parts) > 1 else None
    shorter = CatalogName(name.catalog, name.parts[:-1])
    try:
        return NamedTable(name, catalog.load_table(name.parts))
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        if selected is None:
            near = did_you_mean(name.parts[-1], _KINDS, closeness=0.75)
            if near and len(shorter.parts) > 1 and catalog.table_exists(shorter.parts):
                raise NoSuchTableError(
                    f"table {shorter} has no metadata table {name.parts[-1]}; {near}"
                ) from None
            raise _not_found(name, error) from None
        whole = error
    options, kind = selected
    try:
        table = catalog.load_table(shorter.parts)
    except (NoSuchTableError, NoSuchNamespaceError, InvalidOptionError):
        # Some catalogs have no tables with a name of one part.
        raise _not_found(name, whole) from None
    return NamedTable(shorter, table, options, kind)


def find_table_to_write(scope: NameScope, name: CatalogName) -> NamedTable:
    """The table, and the branch, that a statement writes to.

    Raises:
        NoSuchTableError: there is no such table.
        InvalidStatementError: the name selects something that cannot be written to.
    """
    found = find_table(scope, name)
    if found.metadata_table is not None:
        raise InvalidStatementError(f"{name}: metadata tables cannot be written")
    if found.options.keys() - {"branch"}:
        raise InvalidStatementError(
            f"{name}: only the table and its branches can be written, not tags, snapshots, times "
            "or changes"
        )
    return found


def _selected(last: str) -> tuple[dict[str, str], MetadataTable | None] | None:
    kind = _KINDS.get(last.lower())
    if kind is not None:
        return {}, kind
    if last.lower() == _CHANGES:
        return {_CHANGE_FEED: "true"}, None
    selected = selection_of(last)
    return None if selected is None else (dict([selected]), None)


def _not_found(name: CatalogName, error: Exception) -> NoSuchTableError:
    if isinstance(error, NoSuchTableError):
        return error
    return NoSuchTableError(f"table {name} does not exist: {error}")
