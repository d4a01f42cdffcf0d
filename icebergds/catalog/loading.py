"""From a catalog's name and properties to the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from icebergds.catalog.base import Catalog
from icebergds.catalog.filesystem import file_system_catalog
from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO

_FACTORIES: dict[str, Callable[[str, Mapping[str, str], FileIO], Catalog]] = {
    "filesystem": file_system_catalog,
    # The name that Java Iceberg has for the same layout.
    "hadoop": file_system_catalog,
}


def load_catalog(
    name: str,
    properties: Mapping[str, str],
    *,
    location_map: Mapping[str, str] | None = None,
) -> Catalog:
    """A catalog by its properties.

    Args:
        name: how messages name the catalog.
        properties: `type` (`filesystem` by default), what the type asks for (`warehouse`), and
            properties of the storage (`s3.endpoint` and the like).
        location_map: prefixes of locations and what stands in for them.

    Raises:
        InvalidOptionError: an unknown type, or a property that the type needs is missing.
    """
    kind = properties.get("type", "filesystem").lower()
    factory = _FACTORIES.get(kind)
    if factory is None:
        near = get_close_matches(kind, _FACTORIES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidOptionError(
            f"catalog {name}: unknown type {kind!r}, expected one of "
            f"{', '.join(sorted(_FACTORIES))}{hint}"
        )
    return factory(name, properties, FileIO(properties, location_map or {}))
