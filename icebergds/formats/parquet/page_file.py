"""Builds Parquet files from a few pages of one column."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pyarrow as pa

from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.page_index import PageIndex, PageIndexError
from icebergds.formats.parquet.thrift import Struct, value_of, values_of

_MAGIC = b"PAR1"
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
# The field that holds the header of each type of data page; its field 1 is the number of values.
_HEADER_FIELDS = {_DATA_PAGE: 5, _DATA_PAGE_V2: 8}
_ARROW_SCHEMA = b"ARROW:schema"


def chunk_file(
    index: PageIndex,
    group: int,
    leaf: int,
    field: pa.Field,
    dictionary: bytes | None,
    pages: Sequence[bytes],
    num_rows: Sequence[int],
) -> pa.Buffer:
    """Builds a file with some pages of one leaf column as its only row group.

    Args:
        group: the row group of the pages.
        leaf: ordinal of the leaf column.
        field: the column as Arrow should read it; it says what Parquet's types do not.
        dictionary: the dictionary page, if there is one.
        pages: encoded data pages with their headers.
        num_rows: the expected number of rows of each page; values are not repeated.

    Raises:
        PageIndexError, ThriftError: a page is not what the page index says.
    """
    if dictionary is not None:
        _header(dictionary, (_DICTIONARY_PAGE,))
    for page, count in zip(pages, num_rows, strict=True):
        header = _header(page, tuple(_HEADER_FIELDS))
        details = value_of(header, _HEADER_FIELDS[header[1][1]], thrift.STRUCT)
        found = value_of(details, 1, thrift.I32)
        if found != count:
            raise PageIndexError(f"a page has {found} values, but the index says {count}")
    head = [dictionary] if dictionary is not None else []
    first_page = len(_MAGIC) + sum(map(len, head))
    size = sum(map(len, (*head, *pages)))
    footer = _footer(index, group, leaf, field, first_page, size, sum(num_rows))
    tail = (footer, len(footer).to_bytes(4, "little"), _MAGIC)
    return pa.py_buffer(b"".join((_MAGIC, *head, *pages, *tail)))


def _header(page: bytes, kinds: Sequence[int]) -> Struct:
    """The header of a page, whose type and size are checked."""
    header, size = thrift.decode_struct(page)
    if value_of(header, 1, thrift.I32) not in kinds:
        raise PageIndexError(f"a page is of type {header[1][1]}, expected one of {kinds}")
    if size + value_of(header, 3, thrift.I32) != len(page):
        raise PageIndexError(f"a page does not have the {len(page)} bytes that the index says")
    return header


def _footer(
    index: PageIndex,
    group: int,
    leaf: int,
    field: pa.Field,
    first_page: int,
    size: int,
    num_rows: int,
) -> bytes:
    old = value_of(index.chunk(group, leaf), 3, thrift.STRUCT)
    # Type, encodings, path and codec are kept; statistics and all other fields no longer hold.
    column: Struct = {field_id: old[field_id] for field_id in (1, 2, 3, 4)}
    column[5] = (thrift.I64, num_rows)
    column[6] = column[7] = (thrift.I64, size)
    column[9] = (thrift.I64, first_page)
    if first_page > len(_MAGIC):
        column[11] = (thrift.I64, len(_MAGIC))
    chunk: Struct = {2: (thrift.I64, 0), 3: (thrift.STRUCT, column)}
    row_group: Struct = {
        1: _structs([chunk]),
        2: (thrift.I64, size),
        3: (thrift.I64, num_rows),
    }
    # Arrow decodes by the version and the writer.
    footer: Struct = {at: index.footer[at] for at in (1, 6) if at in index.footer}
    footer[2] = _structs(_path(values_of(index.footer, 2, thrift.STRUCT), leaf))
    footer[3] = (thrift.I64, num_rows)
    footer[4] = _structs([row_group])
    arrow_schema = _arrow_schema(index.footer, field)
    if arrow_schema is not None:
        footer[5] = _structs([arrow_schema])
    return thrift.encode_struct(footer)


def _structs(values: list[Struct]) -> tuple[int, thrift.Sequence]:
    return thrift.LIST, thrift.Sequence(thrift.STRUCT, values)


def _path(elements: Sequence[Struct], leaf: int) -> list[Struct]:
    """The schema elements from the root to a leaf, as if it were the only one."""
    path: list[tuple[Struct, int]] = []
    for element in elements:
        # With each element of the path: how many of its children are still to come.
        while path and not path[-1][1]:
            path.pop()
        if path:
            path[-1] = (path[-1][0], path[-1][1] - 1)
        num_children = element.get(5, (thrift.I32, 0))[1]
        if num_children:
            path.append((element, num_children))
        elif leaf:
            leaf -= 1
        else:
            # Without their annotations groups are plain structs.
            groups = [
                {at: above[at] for at in (3, 4, 9) if at in above} | {5: (thrift.I32, 1)}
                for above, _ in path
            ]
            return [*groups, element]
    raise PageIndexError("the schema has fewer leaf columns than the row group")


def _arrow_schema(footer: Struct, field: pa.Field) -> Struct | None:
    """The Arrow schema of a column as file metadata, if the original file has one."""
    entries = values_of(footer, 5, thrift.STRUCT) if 5 in footer else []
    if all(value_of(entry, 1, thrift.BINARY) != _ARROW_SCHEMA for entry in entries):
        return None
    schema = base64.b64encode(pa.schema([field]).serialize())
    return {1: (thrift.BINARY, _ARROW_SCHEMA), 2: (thrift.BINARY, schema)}
