"""Manages a catalog's names and namespaces, which tables and views share (`CatalogBase`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.catalog import base
from icebergds.catalog.address import identifier_of
from icebergds.catalog.base import Identifier, ServedCatalog
from icebergds.catalog.metadata_files import is_metadata_file
from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    InvalidOptionError,
    NoSuchNamespaceError,
)
from icebergds.expr.names import quote_name
from icebergds.io.fileio import FileIO
from icebergds.operations.options.arguments import mapping_argument, set_argument, text_argument
from icebergds.spec.updates.new_table import NO_PROPERTIES

Name: TypeAlias = str | Identifier
"""Names a table, view or namespace: `db.events`, or a tuple; a part with a dot is in backticks.

A table's name may begin with that of its catalog (`lake.db.events`), unless the catalog has a
namespace of that name.
"""


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """Names of the properties that were removed, updated, or missing when removal was asked."""

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
        with suppress(AlreadyExistsError):
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
        """The identifier of a table, without this catalog's name in front, which Spark allows.

        The name stays if the catalog has a namespace of the same name.
        """
        parts = identifier_argument(name)
        if len(parts) > 2 and parts[0] == self.name and not self.namespace_exists(parts[:1]):
            return parts[1:]
        return parts

    def _all_properties(self) -> Mapping[str, str]:
        """The properties, including those that the catalog's server sets."""
        catalog = self._catalog
        return catalog.properties if isinstance(catalog, ServedCatalog) else self._properties

    def _named(self, identifier: Identifier) -> str:
        return quote_name((self.name, *identifier))


def identifier_argument(name: Name) -> Identifier:
    """The parts of a name. Raises InvalidOptionError if it is not one."""
    if isinstance(name, str):
        return identifier_of(name)
    if not isinstance(name, Sequence) or not all(isinstance(part, str) for part in name):
        raise InvalidOptionError(
            f"name {name!r} is of type {type(name).__name__}; expected a name such as "
            "'db.events' or ('db', 'events')"
        )
    for part in name:
        text_argument("a part of a name", part)
    return tuple(name)


def namespace_argument(name: Name) -> Identifier:
    """The parts of a namespace's name, none for an empty one. Raises InvalidOptionError."""
    return identifier_argument(name) if name else ()


@contextmanager
def without_catalog(catalog: str, namespace: Identifier) -> Iterator[None]:
    """Adds to NoSuchNamespaceError, in the block, that the name began with the catalog."""
    try:
        yield
    except NoSuchNamespaceError as error:
        if len(namespace) < 2 or namespace[0] != catalog:
            raise
        raise NoSuchNamespaceError(
            f"{error}; namespaces are named without their catalog: {'.'.join(namespace[1:])!r}"
        ) from None


def check_metadata_file(io: FileIO, location: str) -> None:
    """Raises InvalidOptionError if the location of a metadata file is a directory."""
    try:
        is_directory = not is_metadata_file(location) and io.is_directory(location)
    except IcebergError:
        is_directory = False
    if is_directory:
        raise InvalidOptionError(
            f"metadata_location = {location!r} is a directory; expected a metadata file in it, "
            "such as <directory>/metadata/<version>.metadata.json; load_table('<directory>')"
            ".metadata_location is the newest"
        )
