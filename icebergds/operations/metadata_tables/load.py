"""Finds out whether a load names a metadata table, and loads the table it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError, NoSuchTableError
from icebergds.expr.names import quote_name, split_name
from icebergds.operations.metadata_tables.kinds import MetadataTable, metadata_table_of
from icebergds.operations.options.selections import with_selection
from icebergds.operations.options.values import address_of, is_of_address
from icebergds.operations.read.options import (
    METADATA_TABLE,
    ReadOptions,
    parse_load_options,
    refuse_stream_options,
)
from icebergds.suggestions import did_you_mean

_NAMES = tuple(kind.value for kind in MetadataTable)


@dataclass(frozen=True, slots=True)
class MetadataTableLoad:
    """A metadata table that a load names, with the state of its table.

    Attributes:
        options: the options of the read.
        given: the same as text, by names in lower case.
    """

    kind: MetadataTable
    state: TableState
    options: ReadOptions
    given: Mapping[str, str]


def open_metadata_table(options: Mapping[str, str]) -> MetadataTableLoad | None:
    """The metadata table that the options of a load name; None if they name a table.

    It is named by the option `metadata-table`, by a location such as `/path/of/table#files`, or by
    a catalog's identifier such as `db.events.files` or `db.events#files`, unless there is a table
    of that name.

    Raises:
        IcebergError: an option is malformed, or the table cannot be loaded.
    """
    given = {name.lower(): value for name, value in options.items()}
    path, catalog = given.get("path", ""), given.get("catalog")
    chosen = given.pop(METADATA_TABLE, None)
    if chosen is not None:
        kind = metadata_table_of(chosen)
        _, mark, name = path.rpartition("#")
        if mark and _is_kind(name) and not _is_table(given, path):
            raise InvalidOptionError(
                f"both option {METADATA_TABLE!r} = {chosen!r} and {path} name a metadata table; "
                "give one of them"
            )
        return _opened(given, path, kind)
    named = _named_by_location(path)
    if catalog is not None and not (named and _is_kind(named[1])):
        named = _named_by_identifier(path)
    if named is None:
        return None
    table, name = named
    if _is_kind(name):
        if _is_table(given, path):
            return None
        try:
            return _opened(given, table, metadata_table_of(name))
        except NoSuchTableError as error:
            shown = path if catalog is None else f"{catalog}.{path}"
            raise NoSuchTableError(
                f"table {shown} does not exist, and is no metadata table either: {error}"
            ) from None
    is_meant = did_you_mean(name, _NAMES) and not _is_table(given, path) and _is_table(given, table)
    # Raises an error that says which metadata table may be meant.
    return _opened(given, table, metadata_table_of(name)) if is_meant else None


def _named_by_location(path: str) -> tuple[str, str] | None:
    table, mark, name = path.rpartition("#")
    return (table, name) if mark else None


def _named_by_identifier(path: str) -> tuple[str, str] | None:
    try:
        *table, name = split_name(path)
    except InvalidFilterError:
        return None
    return (quote_name(table), name) if table else None


def _is_kind(name: str) -> bool:
    return name.lower() in _NAMES


def _is_table(given: Mapping[str, str], path: str) -> bool:
    try:
        address_of(given, path).load()
    except (NoSuchTableError, InvalidOptionError):
        # Or the names before the last one are not those of a namespace.
        return False
    return True


def _opened(given: Mapping[str, str], path: str, kind: MetadataTable) -> MetadataTableLoad:
    refuse_stream_options(given)
    if not path:
        raise InvalidOptionError(f"no table is named, whose metadata table {kind} is to be read")
    # The name of the table may end with a branch or snapshot, whose metadata is read then.
    selected = with_selection({**given, "path": path})
    address, options = parse_load_options(selected)
    of_read = {name: value for name, value in selected.items() if not is_of_address(name)}
    return MetadataTableLoad(kind, address.load(), options, of_read)
