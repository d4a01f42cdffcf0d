"""Manages views by name, and loads functions: methods of `Catalog`."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence

from icebergds.api.catalog_base import (
    CatalogBase,
    Name,
    check_metadata_file,
    namespace_argument,
    without_catalog,
)
from icebergds.api.table_definition import Columns, schema_argument
from icebergds.api.view import SUMMARY, View, queries_argument
from icebergds.catalog.base import Identifier
from icebergds.catalog.new_properties import new_view_properties
from icebergds.catalog.views import (
    RegisteringViews,
    functions_of,
    has_functions,
    no_table,
    views_of,
)
from icebergds.errors import (
    MissingFileError,
    NoSuchFunctionError,
    NoSuchNamespaceError,
    NoSuchViewError,
    UnsupportedFeatureError,
)
from icebergds.operations.options.arguments import location_argument, mapping_argument
from icebergds.spec.functions import FunctionMetadata
from icebergds.spec.updates.new_table import NO_PROPERTIES
from icebergds.spec.values.dates import now_ms
from icebergds.spec.views.new_version import new_version_updates, new_view_updates

_LOG = logging.getLogger(__name__)


class CatalogViews(CatalogBase):
    """The views and functions of a catalog, by name."""

    def create_view(
        self,
        identifier: Name,
        schema: Columns,
        sql: str | Mapping[str, str],
        location: str | None = None,
        properties: Mapping[str, str] = NO_PROPERTIES,
        *,
        default_catalog: str | None = None,
        default_namespace: Sequence[str] | None = None,
    ) -> View:
        """Creates a view.

        Args:
            identifier: the view's name, which no table may have.
            schema: its columns, as in `create_table`.
            sql: the query for Spark, or the same query by dialect, such as
                `{"spark": "SELECT ...", "trino": "SELECT ..."}`.
            location: the directory of its metadata; the catalog chooses it by default.
            properties: such as `comment`.
            default_catalog: the catalog of names in the query without one; this catalog by default.
            default_namespace: the namespace of names in the query that are a single identifier; by
                default the view's own namespace.

        Raises:
            AlreadyExistsError: a view or table with this name exists.
            NoSuchNamespaceError: the namespace does not exist.
            InvalidOptionError: there is no query, or the schema cannot be parsed.
            UnsupportedFeatureError: the catalog has no views.
            CommitStateUnknownError: it is not known whether the view was created.
        """
        views, parts = views_of(self._catalog), self._identifier(identifier)
        version = new_version_updates(
            schema_argument(schema),
            queries_argument(sql),
            default_catalog=default_catalog,
            default_namespace=parts[:-1] if default_namespace is None else default_namespace,
            summary=SUMMARY,
            now_ms=now_ms(),
        )
        updates = new_view_updates(
            version,
            view_uuid=str(uuid.uuid4()),
            location=self._catalog.io.absolute(location_argument("location", location))
            if location
            else views.new_view_location(parts),
            properties=new_view_properties(
                self._all_properties(),
                mapping_argument("properties", properties),
            ),
        )
        state = views.create_view(parts, updates)
        _LOG.info("view %s: created at %s", state.name, state.metadata.location)
        return View(parts, state, views)

    def load_view(self, identifier: Name) -> View:
        """Loads the current state of a view.

        Raises:
            NoSuchViewError: there is no such view.
            UnsupportedFeatureError: the catalog has no views.
        """
        views, parts = views_of(self._catalog), self._identifier(identifier)
        with no_table(self._catalog, parts, "load it with load_table"):
            return View(parts, views.load_view(parts), views)

    def view_exists(self, identifier: Name) -> bool:
        """Whether the view exists; raises the error if its metadata cannot be read."""
        try:
            views_of(self._catalog).load_view(self._identifier(identifier))
        except NoSuchViewError:
            return False
        return True

    def list_views(self, namespace: Name) -> list[Identifier]:
        """Lists a namespace's views, sorted.

        Raises NoSuchNamespaceError, UnsupportedFeatureError.
        """
        return views_of(self._catalog).list_views(namespace_argument(namespace))

    def register_view(self, identifier: Name, metadata_location: str) -> View:
        """Registers an existing view in the catalog, by its metadata file.

        Raises:
            AlreadyExistsError: a view or table with this name exists.
            NoSuchNamespaceError: the namespace does not exist.
            MissingFileError: the metadata file does not exist.
            InvalidOptionError: it is a directory.
            UnsupportedFeatureError: the catalog has no views, or its server cannot register them.
            CommitStateUnknownError: it is not known whether the view was registered.
        """
        views, parts = views_of(self._catalog), self._identifier(identifier)
        location = location_argument("metadata_location", metadata_location)
        if not isinstance(views, RegisteringViews):
            raise UnsupportedFeatureError(
                f"catalog {self.name} cannot register views; create the view with create_view"
            )
        check_metadata_file(self._catalog.io, location)
        try:
            state = views.register_view(parts, location)
        except MissingFileError:
            raise MissingFileError(
                f"view {self._named(parts)} cannot be registered: there is no metadata file "
                f"{location}"
            ) from None
        _LOG.info("view %s: registered, at %s", state.name, location)
        return View(parts, state, views)

    def drop_view(self, identifier: Name) -> None:
        """Drops a view; its metadata files stay.

        Raises NoSuchViewError, UnsupportedFeatureError.
        """
        parts = self._identifier(identifier)
        with no_table(self._catalog, parts, "drop it with drop_table"):
            views_of(self._catalog).drop_view(parts)
        _LOG.info("view %s: dropped", self._named(parts))

    def rename_view(self, from_identifier: Name, to_identifier: Name) -> View:
        """Renames a view.

        Raises:
            NoSuchViewError: there is no such view.
            AlreadyExistsError: a view or table of the new name exists.
            NoSuchNamespaceError: the namespace of the new name does not exist.
            UnsupportedFeatureError: the catalog has no views.
        """
        views, target = views_of(self._catalog), self._identifier(to_identifier)
        source = self._identifier(from_identifier)
        with no_table(self._catalog, source, "rename it with rename_table"):
            views.rename_view(source, target)
        return View(target, views.load_view(target), views)

    def list_functions(self, namespace: Name) -> list[Identifier]:
        """Lists a namespace's SQL functions, sorted.

        Raises NoSuchNamespaceError, UnsupportedFeatureError.
        """
        parts = namespace_argument(namespace)
        with without_catalog(self.name, parts):
            return functions_of(self._catalog).list_functions(parts)

    def load_function(self, identifier: Name) -> FunctionMetadata:
        """Loads the current definitions of an SQL function.

        Raises:
            NoSuchFunctionError: there is no such function.
            UnsupportedFeatureError: the catalog has no functions, or this is of a newer format.
        """
        return functions_of(self._catalog).load_function(self._identifier(identifier))

    def function_exists(self, identifier: Name) -> bool:
        """Whether the SQL function exists."""
        try:
            self.load_function(identifier)
        except (NoSuchFunctionError, NoSuchNamespaceError):
            return False
        return True

    def _has_functions(self) -> bool:
        """Whether the catalog's server has functions."""
        return has_functions(self._catalog)
