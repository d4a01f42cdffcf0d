"""Views of an SQL catalog, in rows of their own type: methods of `SqlCatalog` (`ViewCatalog`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from icebergds.catalog.base import Identifier, nearest_table
from icebergds.catalog.pointer.view_operations import PointerViewOperations
from icebergds.catalog.sql.pointer import SqlPointer
from icebergds.catalog.sql.tables import VIEW, TableRows
from icebergds.catalog.views import ViewState
from icebergds.errors import AlreadyExistsError, NoSuchViewError, UnsupportedFeatureError
from icebergds.spec.views.updates import ViewUpdate

if TYPE_CHECKING:
    from icebergds.catalog.sql.catalog import SqlCatalog


def load_view(self: SqlCatalog, identifier: Identifier) -> ViewState:
    """Implements `ViewCatalog.load_view`."""
    try:
        return _operations(self, identifier).refresh()
    except NoSuchViewError as error:
        near = nearest_table(identifier, _rows(self).names(identifier[:-1]))
        raise NoSuchViewError(f"{error}{near}") from None


def create_view(
    self: SqlCatalog, identifier: Identifier, updates: Sequence[ViewUpdate]
) -> ViewState:
    """Implements `ViewCatalog.create_view`."""
    operations = _operations(self, identifier)
    self._require(identifier[:-1])
    return operations.create(updates)


def commit_view(
    self: SqlCatalog, identifier: Identifier, base: ViewState, updates: Sequence[ViewUpdate]
) -> ViewState:
    """Implements `ViewCatalog.commit_view`."""
    return _operations(self, identifier).commit(base, updates)


def drop_view(self: SqlCatalog, identifier: Identifier) -> None:
    """Implements `ViewCatalog.drop_view`."""
    self._check(identifier)
    rows, name = _rows(self), self._named(identifier)
    while (row := rows.find(identifier)) is not None:
        write = rows.delete(identifier, row.metadata_location)
        # Repeated if there was a commit meanwhile.
        if rows.database.require(write, f"drop view {name}", lambda: rows.find(identifier) is None):
            return
    raise NoSuchViewError(f"view {name} does not exist in its catalog")


def rename_view(self: SqlCatalog, source: Identifier, target: Identifier) -> None:
    """Implements `ViewCatalog.rename_view`."""
    self._check(source)
    self._check(target)
    self._require(target[:-1])
    rows, name = _rows(self), self._named(source)
    exists = AlreadyExistsError(
        f"view {name} cannot be renamed: {self._named(target)} exists, as a table or view"
    )
    if source == target and rows.find(source) is not None:
        raise exists
    write = rows.rename(source, target)
    if write.breaks_rule and rows.has_key(target):
        raise exists
    if not rows.database.require(
        write,
        f"rename view {name}",
        lambda: rows.find(source) is None and rows.find(target) is not None,
    ):
        raise NoSuchViewError(f"view {name} does not exist in its catalog")


def list_views(self: SqlCatalog, namespace: Identifier) -> list[Identifier]:
    """Implements `ViewCatalog.list_views`."""
    self._require(namespace)
    return sorted((*namespace, name) for name in _rows(self).names(namespace))


def new_view_location(self: SqlCatalog, identifier: Identifier) -> str:
    """Implements `ViewCatalog.new_view_location`: where a table of this name would be."""
    return self.new_table_location(identifier)


def _operations(catalog: SqlCatalog, identifier: Identifier) -> PointerViewOperations:
    catalog._check(identifier)
    name = catalog._named(identifier)
    pointer = SqlPointer(_rows(catalog), identifier, f"view {name}")
    return PointerViewOperations(pointer, catalog.io, name)


def _rows(catalog: SqlCatalog) -> TableRows:
    """The rows of views. Raises UnsupportedFeatureError if the layout does not know them."""
    if not catalog.tables.typed:
        raise UnsupportedFeatureError(
            f"catalog {catalog.name} has no views: its database tables are of version 0; set its "
            "property jdbc.schema-version to V1, which adds a column to them"
        )
    return replace(catalog.tables, kind=VIEW)
