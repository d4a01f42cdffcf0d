"""From a catalog's name and properties to the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from icebergds.catalog.base import Catalog
from icebergds.catalog.config import catalog_properties
from icebergds.catalog.filesystem.catalog import file_system_catalog
from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.suggestions import did_you_mean


def load_catalog(
    name: str,
    properties: Mapping[str, str],
    *,
    location_map: Mapping[str, str] | None = None,
) -> Catalog:
    """A catalog by its properties, and by what the environment and `.pyiceberg.yaml` add to them.

    Args:
        name: the catalog's name; what an SQL catalog has belongs to it.
        properties: `type`, which `uri` or else `warehouse` tells by default, what the type asks
            for, and properties of the storage (`s3.endpoint` and the like).
        location_map: prefixes of locations and what stands in for them.

    Raises:
        InvalidOptionError: an unknown type, or a property that the type needs is missing.
    """
    properties = catalog_properties(name, properties)
    kind = (properties.get("type") or _inferred(name, properties)).lower()
    if kind == "rest":
        raise InvalidOptionError(
            f"catalog {name} is one of type rest, by its type or the scheme of its uri; such "
            f"catalogs cannot be used yet, expected one of {', '.join(sorted(_FACTORIES))}"
        )
    factory = _FACTORIES.get(kind)
    if factory is None:
        near = did_you_mean(kind, _FACTORIES)
        hint = f"; {near}" if near else ""
        raise InvalidOptionError(
            f"catalog {name}: unknown type {kind!r}, expected one of "
            f"{', '.join(sorted(_FACTORIES))}{hint}"
        )
    # Storage goes to executors, so it does not learn the catalog's uri and password.
    storage = {k: v for k, v in properties.items() if "." in k and not k.startswith("jdbc.")}
    return factory(name, properties, FileIO(storage, location_map or {}))


def _sql_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> Catalog:
    """An SQL catalog, whose packages are there only where one is wanted."""
    if find_spec("sqlalchemy") is None:
        raise InvalidOptionError(
            f"catalog {name} is an SQL catalog, which needs SQLAlchemy: pip install "
            "'icebergds[sql]', or 'icebergds[sql-postgres]' for PostgreSQL"
        )
    from icebergds.catalog.sql.catalog import sql_catalog

    return sql_catalog(name, properties, io)


_FACTORIES: dict[str, Callable[[str, Mapping[str, str], FileIO], Catalog]] = {
    "filesystem": file_system_catalog,
    # The names that Java Iceberg has for the same.
    "hadoop": file_system_catalog,
    "sql": _sql_catalog,
    "jdbc": _sql_catalog,
}
_TYPES_BY_SCHEME = {
    "postgresql": "sql",
    "postgres": "sql",
    "sqlite": "sql",
    "jdbc": "sql",
    "http": "rest",
    "https": "rest",
}


def _inferred(name: str, properties: Mapping[str, str]) -> str:
    """The type that is meant where none is given."""
    uri = properties.get("uri")
    if not uri:
        return "filesystem"
    # postgresql+psycopg: names the driver too.
    scheme = uri.partition(":")[0].partition("+")[0].lower()
    kind = _TYPES_BY_SCHEME.get(scheme)
    if kind is None:
        raise InvalidOptionError(
            f"catalog {name}: the scheme {scheme!r} of its uri does not tell its type; set "
            f"option('catalog.type', ...) to one of {', '.join(sorted(_FACTORIES))}"
        )
    return kind
