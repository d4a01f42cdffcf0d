"""Loads a catalog by its name and properties.

Its type is one of this package, imported only when such a catalog is loaded, or one that another
package adds with an entry point in the group `icebergds.catalogs`. An entry point's name is the
type; its object is called with the catalog's name, properties and storage, and returns a `Catalog`:

    [project.entry-points."icebergds.catalogs"]
    mine = "my_package.catalog:my_catalog"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from icebergds.catalog.base import Catalog
from icebergds.catalog.common_properties import (
    WITH_LOCATIONS,
    check_warehouse,
    type_by_class,
    without_ignored,
)
from icebergds.catalog.config import catalog_properties, configured_catalogs, is_configured
from icebergds.encryption.kms import load_kms
from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.io.kept_reads import recent_reads
from icebergds.io.known_properties import warn_of_names
from icebergds.io.storage_options import STORAGE_OPTIONS, is_of_storage, storage_properties_of
from icebergds.suggestions import did_you_mean


def load_catalog(
    name: str,
    properties: Mapping[str, str],
    *,
    location_map: Mapping[str, str] | None = None,
) -> Catalog:
    """Loads a catalog from its properties and those in the environment and `.pyiceberg.yaml`.

    Args:
        name: the catalog's name; an SQL catalog has only the tables under its name.
        properties: `type` (by default inferred from `uri`, and filesystem without one), properties
            of that type, properties of the storage (`s3.endpoint` and the like), and
            `encryption.kms-type` or `encryption.kms-impl` with what these need.
        location_map: maps prefixes of locations to their replacements.

    Raises:
        InvalidOptionError: the catalog is not configured, its type is unknown, or a property that
            the type requires is missing, its warehouse is not a location, or its key service is not
            one.
        UnsupportedFeatureError: a property of Java Iceberg or PyIceberg is not supported.
    """
    properties = catalog_properties(name, properties)
    if "" in properties:
        raise InvalidOptionError(
            f"catalog {name}: a property without a name is set; write its name after the "
            f"catalog's, such as spark.icebergpy.catalog.{name}.uri or "
            f"spark.icebergpy.catalog.{name}.warehouse"
        )
    if by_class := type_by_class(name, properties):
        properties["type"] = by_class
    kind = _type(name, properties)
    factory = _OWN_TYPES.get(kind) or _plugged_in_factory(name, kind)
    if factory is None:
        known = sorted({*_OWN_TYPES, *_plugged_in_types()})
        near = did_you_mean(kind, known)
        hint = f"; {near}" if near else ""
        raise InvalidOptionError(
            f"catalog {name}: unknown type {kind!r}, expected one of {', '.join(known)}{hint}"
        )
    if kind in _OWN_TYPES:
        properties = without_ignored(name, properties)
        check_warehouse(name, kind, properties)
    # FileIO is sent to executors, so it must not contain the catalog's uri and password.
    storage = storage_properties_of(properties)
    warn_of_names(storage)
    own = {key: value for key, value in properties.items() if key not in STORAGE_OPTIONS}
    recent = recent_reads({**properties, "": name})
    # A server must not choose it: the user's properties alone do.
    kms = load_kms(properties, f"catalog {name}")
    return factory(name, own, FileIO(storage, location_map or {}, recent=recent, key_service=kms))


def has_warehouse_location(name: str, properties: Mapping[str, str]) -> bool:
    """Whether the warehouse of a catalog is a location; catalogs with servers have names instead.

    Args:
        properties: all properties of the catalog.

    Raises:
        InvalidOptionError: its type cannot be determined from the properties.
    """
    return (type_by_class(name, properties) or _type(name, properties)) in WITH_LOCATIONS


_CatalogFactory = Callable[[str, Mapping[str, str], FileIO], Catalog]
"""Creates a catalog from its name, properties and storage."""
_GROUP = "icebergds.catalogs"


def _plugged_in_types() -> list[str]:
    """The types that installed packages add, sorted."""
    return sorted({point.name for point in entry_points(group=_GROUP)})


def _plugged_in_factory(name: str, kind: str) -> _CatalogFactory | None:
    """The factory for a type that a package adds; None if there is none.

    Args:
        name: the catalog's name in messages.

    Raises:
        InvalidOptionError: packages add it more than once, or its object cannot be imported or
            called.
    """
    points = {point.value: point for point in entry_points(group=_GROUP, name=kind)}
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
    found: _CatalogFactory = factory
    return found


def _origin(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"{point.value}{package}"


@dataclass(frozen=True, slots=True)
class _OwnType:
    """A catalog type of this package; called as a `_CatalogFactory`.

    Attributes:
        factory: creates a catalog, as `module:function` in this package.
        needs: the module of another package that it requires; empty if none.
        install: what to install for it.
    """

    factory: str
    needs: str = ""
    install: str = ""

    def __call__(self, name: str, properties: Mapping[str, str], io: FileIO) -> Catalog:
        """Creates a catalog. Raises InvalidOptionError if a required package is not installed."""
        if self.needs and find_spec(self.needs) is None:
            raise InvalidOptionError(
                f"catalog {name} needs the package {self.needs}: pip install {self.install}"
            )
        module, _, function = self.factory.partition(":")
        factory: _CatalogFactory = getattr(import_module(f"icebergds.catalog.{module}"), function)
        return factory(name, properties, io)


_FILESYSTEM = _OwnType("filesystem.catalog:file_system_catalog")
_SQL = _OwnType(
    "sql.catalog:sql_catalog",
    "sqlalchemy",
    "'icebergds[sql]', or 'icebergds[sql-postgres]' for PostgreSQL, 'icebergds[sql-mysql]' for "
    "MariaDB and MySQL",
)

_OWN_TYPES: Mapping[str, _OwnType] = {
    "filesystem": _FILESYSTEM,
    # Java Iceberg's names for the same types.
    "hadoop": _FILESYSTEM,
    "sql": _SQL,
    "jdbc": _SQL,
    "rest": _OwnType("rest.catalog:rest_catalog", "requests", "'icebergds[rest]'"),
    "hive": _OwnType("hive.catalog:hive_catalog", "thrift", "'icebergds[hive]'"),
    "glue": _OwnType("glue.catalog:glue_catalog", "botocore", "'icebergds[glue]'"),
    "dynamodb": _OwnType("dynamodb.catalog:dynamodb_catalog", "botocore", "'icebergds[dynamodb]'"),
    "s3tables": _OwnType("s3tables.catalog:s3tables_catalog", "botocore", "'icebergds[s3tables]'"),
}
"""The types, by the property `type`."""

_TYPES_BY_SCHEME: Mapping[str, str] = {
    "postgresql": "sql",
    "postgres": "sql",
    "mysql": "sql",
    "mariadb": "sql",
    "sqlite": "sql",
    "jdbc": "sql",
    "thrift": "hive",
    "http": "rest",
    "https": "rest",
}
"""The type of a catalog without `type`, by the scheme of its `uri`."""


def _type(name: str, properties: Mapping[str, str]) -> str:
    if not any(properties.get(key) for key in _NEEDED):
        raise _incomplete(name, properties) or _not_configured(name)
    return (properties.get("type") or _infer_type(name, properties)).lower()


def _incomplete(name: str, properties: Mapping[str, str]) -> InvalidOptionError | None:
    """The error for a catalog with properties that are not sufficient; None if it has none."""
    others = sorted(key for key in properties if key not in _NEEDED and not is_of_storage(key))
    if not others and not is_configured(name):
        return None
    found = f"; its properties are {', '.join(map(_with_nearest, others))}" if others else ""
    return InvalidOptionError(
        f"catalog {name} is configured, but has no warehouse, uri or type{found}; set its "
        f"warehouse, such as spark.icebergpy.catalog.{name}.warehouse in a registered session, or "
        "option('catalog.warehouse', '<directory>'); catalogs other than of directories have a uri"
    )


def _with_nearest(key: str) -> str:
    near = did_you_mean(key, _NEEDED, shown=repr)
    return f"{key!r} ({near})" if near else repr(key)


def _not_configured(name: str) -> InvalidOptionError:
    known = configured_catalogs()
    near = did_you_mean(name, known)
    others = f"configured are {', '.join(known)}" if known else "no catalog is"
    return InvalidOptionError(
        f"catalog {name} is not configured ({others}){'; ' + near if near else ''}; give its "
        f"properties, such as load_catalog({name!r}, warehouse='<directory>') or "
        f"option('catalog.warehouse', '<directory>'), or configure it for all: "
        f"spark.icebergpy.catalog.{name}.warehouse in a registered session, {_variable(name)}, or "
        ".pyiceberg.yaml; catalogs other than of directories have a uri"
    )


def _variable(catalog: str) -> str:
    """A variable for a catalog's warehouse; with another name if variables cannot have this one."""
    named = catalog.lower().replace("_", "-")
    variable = f"PYICEBERG_CATALOG__{named.replace('-', '_').upper()}__WAREHOUSE"
    renamed = "" if named == catalog.lower() else f" (for a catalog called {named}, as _ means -)"
    return f"the environment variable {variable}{renamed}"


_NEEDED = ("type", "uri", "warehouse")


def _infer_type(name: str, properties: Mapping[str, str]) -> str:
    """The type of a catalog without the property `type`."""
    uri = properties.get("uri")
    if not uri:
        return "filesystem"
    # The uri is not shown, nor its beginning if that is not a scheme: it may contain a password.
    if ":" not in uri:
        raise InvalidOptionError(
            f"catalog {name}: its uri has no scheme; expected one such as "
            "postgresql+psycopg://host/database or sqlite:////path/to/catalog.db"
        )
    # A scheme such as postgresql+psycopg: includes the driver.
    scheme = uri.partition(":")[0].partition("+")[0].lower()
    kind = _TYPES_BY_SCHEME.get(scheme)
    if kind is None:
        shown = f" {scheme!r}" if "://" in uri else ""
        begin = (
            "" if "://" in uri else "begin it with https:// if it is that of a REST catalog, or "
        )
        raise InvalidOptionError(
            f"catalog {name}: its type cannot be inferred from the scheme{shown} of its uri; "
            f"{begin}set option('catalog.type', ...) to one of {', '.join(sorted(_OWN_TYPES))}"
        )
    return kind
