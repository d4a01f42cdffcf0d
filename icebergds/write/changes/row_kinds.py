"""What the rows of a stream of changes do, in the words of those who write such streams."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import InvalidDataError

Kinds = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


class RowKind(IntEnum):
    """What a row of a stream of changes does."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


ROW_KINDS = {
    "+i": RowKind.INSERT,
    "-u": RowKind.UPDATE_BEFORE,
    "+u": RowKind.UPDATE_AFTER,
    "-d": RowKind.DELETE,
    "i": RowKind.INSERT,
    "ub": RowKind.UPDATE_BEFORE,
    "ua": RowKind.UPDATE_AFTER,
    "d": RowKind.DELETE,
    "insert": RowKind.INSERT,
    "update_before": RowKind.UPDATE_BEFORE,
    "update_after": RowKind.UPDATE_AFTER,
    "delete": RowKind.DELETE,
    "update_preimage": RowKind.UPDATE_BEFORE,
    "update_postimage": RowKind.UPDATE_AFTER,
}
"""The words for row kinds, in lower case; any case is understood."""


def parse_row_kinds(values: pa.Array, column: str) -> Kinds:
    """The kinds of rows.

    Args:
        values: words, as strings.
        column: their column, for messages.

    Raises:
        InvalidDataError: a word is unknown, or null.
    """
    encoded = values.cast(pa.string()).dictionary_encode(null_encoding="encode")
    words = encoded.dictionary.to_pylist()
    kinds = np.array([_kind(word, column) for word in words], np.int8)
    found: Kinds = kinds[np.asarray(encoded.indices)]
    return found


def _kind(word: str | None, column: str) -> RowKind:
    kind = None if word is None else ROW_KINDS.get(word.strip().lower())
    if kind is None:
        found = "null" if word is None else repr(word)
        raise InvalidDataError(
            f"row kind column {column!r} holds {found}, expected one of "
            "+I, -U, +U, -D, or insert, update_before, update_after, delete"
        )
    return kind
