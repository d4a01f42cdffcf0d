"""Finds the catalog or table that a command names (`Place`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from icebergds.errors import InvalidOptionError

if TYPE_CHECKING:
    from icebergds import Catalog, Table
    from icebergds.catalog.address import TableAddress


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command looks for the tables that it names.

    Attributes:
        catalog: the catalog's name; None for the default one, or the one that a name begins with.
        properties: properties of the catalog and the storage.
        as_json: whether the answer is to be JSON.
    """

    catalog: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    as_json: bool = False

    def load_catalog(self) -> Catalog:
        """The catalog that is named, or else the default one."""
        from icebergds.api.catalog import load_catalog

        return load_catalog(self.catalog, location_map=None, **self.properties)

    def catalog_of(self, name: str) -> tuple[Catalog, str]:
        """The catalog of a name that need not exist yet, and the identifier in it."""
        from icebergds.catalog.naming import named_catalog

        if is_location(name):
            raise InvalidOptionError(
                f"{name} is a location; this needs a name in a catalog, such as db.events"
            )
        if self.names_catalog:
            return self.load_catalog(), name
        catalog, identifier = named_catalog(name)
        return (self._default_for(name) if catalog is None else Place(catalog).load_catalog()), (
            identifier
        )

    def namespace_of(self, name: str) -> tuple[Catalog, str]:
        """The catalog of a namespace, which may begin with a catalog's name, and its name there."""
        from icebergds.catalog.config import is_configured

        first, _, rest = name.partition(".")
        if not self.names_catalog and is_configured(first):
            return Place(first).load_catalog(), rest
        catalog = self.load_catalog() if self.names_catalog else self._default_for(name)
        if first == catalog.name and not catalog.namespace_exists(first):
            return catalog, rest
        return catalog, name

    def load_table(self, name: str) -> Table:
        """A table, by its name or its location."""
        from icebergds.api.table import load_table

        name, catalog, given = self._addressed(name)
        return load_table(name, catalog=catalog, properties=given)

    def address(self, name: str) -> TableAddress:
        """The address of a table, by its name or location; loads faster than a `Table`."""
        from icebergds.catalog.address import address_of

        name, catalog, given = self._addressed(name)
        return address_of(name, catalog, given)

    @property
    def names_catalog(self) -> bool:
        """Whether options name a catalog, or say how to reach one."""
        return self.catalog is not None or bool(self.properties)

    def _addressed(self, name: str) -> tuple[str, str | None, Mapping[str, str]]:
        """A table's name or location, its catalog, and the properties to find it with."""
        from icebergds.catalog.address import properties_at_location
        from icebergds.catalog.config import catalog_properties, default_catalog_name

        if not is_location(name):
            is_catalog = self.catalog is not None or "uri" in self.properties
            if is_catalog or "warehouse" in self.properties:
                catalog = self.catalog or default_catalog_name()
                return self._without_catalog(name, catalog), catalog, self.properties
            return name, None, self.properties
        given = self.properties
        if self.catalog is not None:
            # The catalog's tables are on its storage.
            given = catalog_properties(self.catalog, given)
        return name, None, properties_at_location(given)

    def _default_for(self, name: str) -> Catalog:
        """The default catalog, for a name that begins with none."""
        from icebergds.catalog.config import default_catalog_name, is_configured
        from icebergds.catalog.naming import known_catalogs

        if not is_configured(default_catalog_name()):
            raise InvalidOptionError(
                f"{name} begins with no configured catalog ({known_catalogs(name)})"
            )
        return self.load_catalog()

    def _without_catalog(self, name: str, catalog: str) -> str:
        """A table's name without that of its catalog, with which answers show it."""
        first, _, rest = name.partition(".")
        is_namespace = first != catalog or "." not in rest
        return name if is_namespace or self.load_catalog().namespace_exists(first) else rest


def is_location(name: str) -> bool:
    """Whether this is a table's location or metadata file, not its name."""
    from icebergds.catalog import naming

    return name in (".", "..") or naming.is_location(name)


def properties_of(texts: list[str], option: str = "--property") -> dict[str, str]:
    """Parses properties given as `key=value`.

    Raises:
        InvalidOptionError: one of them is not.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise InvalidOptionError(f"{option} {text!r}: expected KEY=VALUE")
        if pairs.get(key.strip(), value) != value and option != "--property":
            raise InvalidOptionError(f"{option} {key.strip()} is given twice; give it once")
        pairs[key.strip()] = value
    return pairs


def snapshot_id_of(text: str) -> int | None:
    """The id of a snapshot that a text is; None if it can only be the name of a branch or tag."""
    # An id has 64 bits; Python refuses to parse thousands of digits.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def moment(text: str | None) -> timedelta | str | None:
    """An age such as `7d` or `12h ago`, or a time."""
    if text is None:
        return None
    units = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
    age = text.removesuffix("ago").strip()
    number, unit = age[:-1], units.get(age[-1:])
    try:
        return text if unit is None else timedelta(**{unit: float(number)})
    except (ValueError, OverflowError):
        return text
