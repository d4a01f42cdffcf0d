"""Loads tables by location or name (`load_table`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.naming import known_catalogs, named_catalog, table_name_parts
from icebergds.errors import NoSuchTableError
from icebergds.io.storage_options import storage_properties_of
from icebergds.operations.options.arguments import mapping_argument, path_argument, text_argument

_LOG = logging.getLogger(__name__)


def load_table(
    path: str | os.PathLike[str],
    *,
    catalog: str | None = None,
    properties: Mapping[str, str] | None = None,
    location_map: Mapping[str, str] | None = None,
) -> Table:
    """Loads a table by its location, a metadata file, or its name.

    Args:
        path: a location; a metadata file; the table's name with that of a configured catalog first,
            such as `lake.db.events` (`Table.name`), or without it in the default catalog; or with
            `catalog`, an identifier such as `db.events`. Write `./lake.db.events` for a directory
            of this name.
        catalog: the name of a catalog; `path` is then an identifier in it.
        properties: of the catalog (`type`, `warehouse`) and the storage (`s3.endpoint`).
        location_map: maps prefixes of locations to their replacements.

    Raises:
        InvalidOptionError: an unknown property, or an argument of the wrong type.
        NoSuchTableError: the table does not exist.

    >>> load_table("lake.db.events")  # doctest: +SKIP
    >>> load_table("db.events", catalog="lake", properties={"warehouse": "s3://bucket/warehouse"})
    ... # doctest: +SKIP
    """
    path = path_argument("path", path)
    catalog = text_argument("catalog", catalog)
    names = table_name_parts(path) if catalog is None else ()
    if names:
        catalog, path = named_catalog(path)
    given = {
        key.removeprefix("catalog."): value
        for key, value in mapping_argument("properties", properties).items()
    }
    storage = storage_properties_of(given)
    rest = {key: value for key, value in given.items() if key not in storage}
    locations = mapping_argument("location_map", location_map)
    address = TableAddress(path, catalog, rest, storage, locations)
    try:
        state, operations = address.open()
    except NoSuchTableError as error:
        if catalog is None and names:
            raise NoSuchTableError(
                f"{error}; as a name, it begins with no configured catalog ({known_catalogs(path)})"
            ) from None
        raise
    _LOG.info("table %s: loaded, at snapshot %s", state.name, state.metadata.current_snapshot_id)
    return Table(address, state, operations)
