"""Checks properties common to all catalog types: warehouses, and Java's classes and caches.

Java Iceberg and PyIceberg select classes and caches with catalog properties. Properties that cannot
change what is read or written here are removed, which is logged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError

__all__ = ["WITH_LOCATIONS", "check_warehouse", "type_by_class", "without_ignored"]

WITH_LOCATIONS = ("filesystem", "hadoop", "sql", "jdbc", "hive", "glue", "dynamodb")
"""Types of catalogs with a location as the warehouse."""

_LOG = logging.getLogger(__name__)


def without_ignored(catalog: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without those of Java Iceberg and PyIceberg that have no effect here.

    Raises:
        UnsupportedFeatureError: one would have an effect that is not supported.
        InvalidOptionError: `url` is given instead of `uri`.
    """
    if properties.get("url") and not properties.get("uri"):
        raise InvalidOptionError(
            f"catalog {catalog}: it has the property 'url', but no 'uri'; did you mean 'uri'?"
        )
    kept = {}
    for name, value in properties.items():
        if name not in _IGNORED and not name.startswith(_IGNORED_PREFIXES):
            kept[name] = value
            continue
        if value and (why := _refused(name, value)):
            raise UnsupportedFeatureError(
                f"catalog {catalog}: property {name!r} is not supported with its value: {why}"
            )
        _LOG.info("catalog %s: property %r has no effect in icebergds", catalog, name)
    return kept


def type_by_class(catalog: str, properties: Mapping[str, str]) -> str | None:
    """The type of a catalog whose `catalog-impl` is a class of Java Iceberg; None without that.

    Raises:
        InvalidOptionError: the class is unknown and there is no `type`, or it is of another type.
    """
    given = properties.get("catalog-impl")
    kind = _TYPES_BY_CLASS.get(given) if given else None
    other = properties.get("type", "").lower()
    if not given or (kind is None and other):
        return None
    if kind is None:
        raise InvalidOptionError(
            f"catalog {catalog}: catalog-impl is {given!r}, a class of Java that icebergds has no "
            f"type for; set type instead, to one of {', '.join(sorted(_TYPES_BY_CLASS.values()))}"
        )
    if other not in ("", kind, *_SAME_TYPES.get(kind, ())):
        raise InvalidOptionError(
            f"catalog {catalog}: type is {other!r}, but catalog-impl is {given!r}, which is of "
            f"type {kind}; leave one of them out"
        )
    return other or kind


def check_warehouse(catalog: str, kind: str, properties: Mapping[str, str]) -> None:
    """Checks that the warehouse of a catalog with warehouse locations is meant as a location.

    Args:
        kind: the catalog's type.
        properties: `type` is not among them if the type was inferred.

    Raises:
        InvalidOptionError: it is not.
    """
    warehouse = properties.get("warehouse")
    if not warehouse or kind not in WITH_LOCATIONS:
        return
    where = f"catalog {catalog}: its warehouse {warehouse!r}"
    if warehouse.lower().startswith("arn:"):
        raise InvalidOptionError(
            f"{where} is not a location, but a resource of AWS; for a table bucket, set "
            "type = s3tables, and for one behind a REST catalog, its uri"
        )
    if warehouse.startswith("~"):
        raise InvalidOptionError(
            f"{where} begins with ~, which only shells replace; write "
            f"{os.path.expanduser(warehouse)!r}, or './{warehouse}' for a directory of that name"
        )
    is_word = not any(each in warehouse for each in (":", "/", os.sep))
    if is_word and kind == "filesystem" and not properties.get("type"):
        raise InvalidOptionError(
            f"{where} has neither a scheme nor a slash; for a directory, write './{warehouse}' or "
            "set type = filesystem; for the warehouse of a server, set the catalog's uri"
        )


_IGNORED = frozenset(
    {
        "io-impl",
        "py-io-impl",
        "catalog-impl",
        "py-catalog-impl",
        "cache-enabled",
        "clients",
        "client-pool-cache-keys",
        "default-namespace",
        "unique-table-location",
        "downcast-ns-timestamp-to-us-on-write",
    }
)
_IGNORED_PREFIXES = ("cache.", "client.pool.")
# These classes read the same locations and storage properties as we do.
_KNOWN_FILE_IO = ("org.apache.iceberg.", "pyiceberg.io.")

_TYPES_BY_CLASS = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
    "software.amazon.s3tables.iceberg.S3TablesCatalog": "s3tables",
}
_SAME_TYPES = {"jdbc": ("sql",), "hadoop": ("filesystem",)}


def _refused(name: str, value: str) -> str:
    """Why a property cannot be ignored; empty if it can."""
    if name in ("io-impl", "py-io-impl") and not value.startswith(_KNOWN_FILE_IO):
        return (
            f"{value!r} is a class of your own, and files are opened by icebergds; leave it out if "
            "the locations have a scheme of the storages that icebergds opens, or allow theirs by "
            "storage-schemes"
        )
    if name == "py-catalog-impl":
        return "it is a class of PyIceberg; set type, or add a catalog type by an entry point"
    if name == "unique-table-location" and value.strip().lower() == "true":
        return "new tables are at <namespace>/<table>; leave it out, and give tables a location"
    return ""
