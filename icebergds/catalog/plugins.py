"""Finds types of catalogs that other packages add.

They do so by entry points of the group `icebergds.catalogs`. An entry point's name is the type; its
object is called with the catalog's name, its properties and its storage, and returns a `Catalog`:

    [project.entry-points."icebergds.catalogs"]
    mine = "my_package.catalog:my_catalog"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from icebergds.catalog.base import Catalog
from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO

CatalogFactory = Callable[[str, Mapping[str, str], FileIO], Catalog]
"""Makes a catalog of its name, its properties and its storage."""
GROUP = "icebergds.catalogs"


def plugged_in_types() -> list[str]:
    """The types that installed packages add, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def plugged_in_factory(name: str, kind: str) -> CatalogFactory | None:
    """What makes catalogs of a type that a package adds; None if none does.

    Args:
        name: the catalog's name in messages.

    Raises:
        InvalidOptionError: packages add it more than once, or its object cannot be imported or
            called.
    """
    points = {point.value: point for point in entry_points(group=GROUP, name=kind)}
    if not points:
        return None
    if len(points) > 1:
        origins = ", ".join(map(_origin, points.values()))
        raise InvalidOptionError(
            f"catalog {name}: its type {kind!r} is added by {origins}; uninstall all of these "
            "packages but one"
        )
    (point,) = points.values()
    try:
        factory = point.load()
    except Exception as error:
        raise InvalidOptionError(
            f"catalog {name}: its type {kind!r} is added by {_origin(point)}, which cannot be "
            f"imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(factory):
        raise InvalidOptionError(
            f"catalog {name}: its type {kind!r} is added by {_origin(point)}, which is not a "
            "function that makes a catalog from its name, its properties and its storage"
        )
    found: CatalogFactory = factory
    return found


def _origin(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"{point.value}{package}"
