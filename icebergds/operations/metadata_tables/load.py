"""Finds out whether a load names a metadata table, and loads the table it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError, NoSuchTableError
from icebergds.expr.names import quote_name, split_name
from icebergds.operations.metadata_tables.kinds import MetadataTable, metadata_table_of
from icebergds.operations.read.options import (
    METADATA_TABLE,
    ReadOptions,
    parse_load_options,
    refuse_stream_options,
)


@dataclass(frozen=True, slots=True)
class MetadataTableLoad:
    """A metadata table that a load names, with the state of its table."""

    kind: MetadataTable
    state: TableState
    options: ReadOptions


def open_metadata_table(options: Mapping[str, str]) -> MetadataTableLoad | None:
    """The metadata table that the options of a load name; None if they name a table.

    It is named by the option `metadata-table`, by a location such as `/path/of/table#files`, or by
    a catalog's identifier such as `db.events.files`, unless the catalog has a table of that name.

    Raises:
        IcebergError: an option is malformed, or the table cannot be loaded.
    """
    given = {name.lower(): value for name, value in options.items()}
    path, catalog = given.get("path", ""), given.get("catalog")
    chosen = given.pop(METADATA_TABLE, None)
    if chosen is not None:
        return _opened(given, path, metadata_table_of(chosen))
    if catalog is None:
        table, mark, name = path.rpartition("#")
        return _opened(given, table, metadata_table_of(name)) if mark and _is_kind(name) else None
    try:
        parts = split_name(path)
    except InvalidFilterError:
        return None
    if len(parts) < 2 or not _is_kind(parts[-1]) or _is_table(given):
        return None
    try:
        return _opened(given, quote_name(parts[:-1]), metadata_table_of(parts[-1]))
    except NoSuchTableError as error:
        raise NoSuchTableError(
            f"table {catalog}.{path} does not exist, and is no metadata table either: {error}"
        ) from None


def _is_kind(name: str) -> bool:
    return name.lower() in list(MetadataTable)


def _is_table(given: Mapping[str, str]) -> bool:
    address, _ = parse_load_options(given)
    try:
        address.load()
    except NoSuchTableError:
        return False
    return True


def _opened(given: Mapping[str, str], path: str, kind: MetadataTable) -> MetadataTableLoad:
    refuse_stream_options(given)
    if not path:
        raise InvalidOptionError(f"no table is named, whose metadata table {kind} is to be read")
    address, options = parse_load_options({**given, "path": path})
    return MetadataTableLoad(kind, address.load(), options)
