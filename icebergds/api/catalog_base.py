"""The names and namespaces of a catalog, which its tables and views share (`CatalogBase`)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.api.names import Name, identifier_argument, namespace_argument, without_catalog
from icebergds.catalog import base
from icebergds.catalog.base import Identifier, ServedCatalog
from icebergds.errors import AlreadyExistsError, NoSuchNamespaceError
from icebergds.operations.options.arguments import mapping_argument, set_argument
from icebergds.spec.updates.new_table import NO_PROPERTIES


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """Names of the properties that were removed or updated, or to be removed but not set."""

    removed: list[str]
    updated: list[str]
    missing: list[str]


class CatalogBase:
    """A catalog's name, properties and namespaces."""

    def __init__(
        self,
        catalog: base.Catalog,
        properties: Mapping[str, str],
        location_map: Mapping[str, str],
    ) -> None:
        self._catalog = catalog
        self._properties = dict(properties)
        self._location_map = dict(location_map)

    @property
    def name(self) -> str:
        return self._catalog.name

    @property
    def properties(self) -> Mapping[str, str]:
        """The catalog's properties, including those of the environment and configuration file."""
        return self._properties

    def __repr__(self) -> str:
        return f"Catalog({self.name!r})"

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> None:
        """Creates a namespace.

        Raises:
            AlreadyExistsError: the namespace already exists.
            UnsupportedFeatureError: the catalog does not support namespace properties.
        """
        given = mapping_argument("properties", properties)
        self._catalog.create_namespace(namespace_argument(namespace), given)

    def create_namespace_if_not_exists(
        self, namespace: Name, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> None:
        """Creates a namespace if it does not exist; an existing one keeps its properties."""
        with contextlib.suppress(AlreadyExistsError):
            self.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Name) -> None:
        """Drops an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        parts = namespace_argument(namespace)
        with without_catalog(self.name, parts):
            self._catalog.drop_namespace(parts)

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """Lists the direct children of a namespace, sorted. Raises NoSuchNamespaceError."""
        parts = namespace_argument(namespace)
        with without_catalog(self.name, parts):
            return self._catalog.list_namespaces(parts)

    def namespace_exists(self, namespace: Name) -> bool:
        """Whether the namespace exists."""
        try:
            self._catalog.namespace_properties(namespace_argument(namespace))
        except NoSuchNamespaceError:
            return False
        return True

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Loads the properties of a namespace. Raises NoSuchNamespaceError."""
        parts = namespace_argument(namespace)
        with without_catalog(self.name, parts):
            return self._catalog.namespace_properties(parts)

    def update_namespace_properties(
        self,
        namespace: Name,
        removals: set[str] | None = None,
        updates: Mapping[str, str] = NO_PROPERTIES,
    ) -> PropertiesUpdateSummary:
        """Removes and sets properties of a namespace.

        Raises:
            NoSuchNamespaceError: the namespace does not exist.
            InvalidOptionError: a property is both removed and set.
            UnsupportedFeatureError: the catalog does not support namespace properties.
        """
        parts = namespace_argument(namespace)
        given = mapping_argument("updates", updates)
        wanted = set_argument("removals", removals)
        with without_catalog(self.name, parts):
            before = self._catalog.namespace_properties(parts)
        self._catalog.update_namespace_properties(parts, sorted(wanted), given)
        return PropertiesUpdateSummary(
            removed=sorted(wanted & before.keys()),
            updated=sorted(given),
            missing=sorted(wanted - before.keys()),
        )

    def _identifier(self, name: Name) -> Identifier:
        """The identifier of a table; this catalog's own name before it, as in Spark, is left out.

        Not if the catalog has a namespace of its own name.
        """
        parts = identifier_argument(name)
        if len(parts) > 2 and parts[0] == self.name and not self.namespace_exists(parts[:1]):
            return parts[1:]
        return parts

    def _all_properties(self) -> Mapping[str, str]:
        """The properties, with those of the catalog's server."""
        catalog = self._catalog
        return catalog.properties if isinstance(catalog, ServedCatalog) else self._properties

    def _named(self, identifier: Identifier) -> str:
        return ".".join((self.name, *identifier))
