"""Compares the counts, sizes and offsets in the footer of a Parquet file with each other.

Arrow compares them neither with each other nor with pages: it reads as many rows as a row group
states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow.parquet as pq

from icebergds.display import counted
from icebergds.errors import CorruptFileError

# Before the first page.
_MAGIC_BYTES = 4
# After the footer: its length and a magic number.
_TRAILER = 8


def row_count(footer: pq.FileMetaData) -> int:
    """The number of rows in the row groups, which is what is read.

    The footer's own number of rows may be another one.
    """
    return sum(footer.row_group(at).num_rows for at in range(footer.num_row_groups))


def flat_leaves(footer: pq.FileMetaData) -> tuple[int, ...]:
    """The leaf columns outside of lists and maps, which have a value or null for each row."""
    schema = footer.schema
    return tuple(
        at for at in range(footer.num_columns) if not schema.column(at).max_repetition_level
    )


def check_rows(group: pq.RowGroupMetaData, index: int, leaves: Iterable[int], source: str) -> None:
    """Refuses a row group with fewer rows than a column has values: the others would be lost.

    Args:
        leaves: some of `flat_leaves`.
        source: the file, for errors.

    Raises:
        CorruptFileError: the row group has fewer rows.
    """
    for leaf in leaves:
        chunk = group.column(leaf)
        if chunk.num_values > group.num_rows:
            raise CorruptFileError(
                f"{source}: the footer contradicts itself: row group {index} has "
                f"{counted(group.num_rows, 'row')}, but {counted(chunk.num_values, 'value')} of "
                f"column {chunk.path_in_schema!r}; write the file anew from its source"
            )


def check_footer(footer: pq.FileMetaData, size: int, location: str) -> None:
    """Refuses a footer whose counts, sizes and offsets contradict each other.

    Args:
        size: of the file, in bytes.
        location: of the file, for errors.

    Raises:
        CorruptFileError: they do.
    """
    problem = next(_contradictions(footer, size - _TRAILER), None)
    if problem is not None:
        raise CorruptFileError(
            f"{location}: the footer contradicts itself: {problem}; engines would read other rows, "
            "or none. Write the file anew from its source"
        )


def _contradictions(footer: pq.FileMetaData, end: int) -> Iterator[str]:
    """What contradicts itself; `end` is where the pages of the file end."""
    rows = row_count(footer)
    if footer.num_rows != rows:
        yield f"it counts {counted(footer.num_rows, 'row')}, its row groups {counted(rows, 'row')}"
    flat = frozenset(flat_leaves(footer))
    for at in range(footer.num_row_groups):
        group = footer.row_group(at)
        for leaf in range(group.num_columns):
            chunk = group.column(leaf)
            what = f"column {chunk.path_in_schema!r} of row group {at}"
            if leaf in flat and chunk.num_values != group.num_rows:
                yield (
                    f"{what} has {counted(chunk.num_values, 'value')}, but the row group "
                    f"{counted(group.num_rows, 'row')}"
                )
            statistics = chunk.statistics
            if statistics is not None and statistics.has_null_count:
                nulls = statistics.null_count
                if not 0 <= nulls <= chunk.num_values:
                    yield f"{what} has {nulls} nulls among {counted(chunk.num_values, 'value')}"
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                start = chunk.dictionary_page_offset
            length = chunk.total_compressed_size
            if chunk.num_values and (start < _MAGIC_BYTES or length <= 0 or start + length > end):
                yield (
                    f"{what} is said to be the {length} bytes from {start} on, which are not all "
                    f"among the {end} bytes before its end"
                )
