"""Parses the row kinds of change streams, by the names that Flink, Iceberg and Delta use."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.arrays import storage

Kinds = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


class RowKind(IntEnum):
    """The kind of change that a row of a change stream describes."""

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
"""Row kinds by name, in lower case; names are case-insensitive."""


def parse_row_kinds(values: pa.Array, column: str) -> Kinds:
    """Parses the kinds of rows.

    Args:
        values: names of row kinds, as strings or categories.
        column: the name of their column, for messages.

    Raises:
        InvalidDataError: a name is unknown or null.
    """
    encoded = storage(values).cast(pa.string()).dictionary_encode(null_encoding="encode")
    names = encoded.dictionary.to_pylist()
    kinds = np.array([_kind(name, column) for name in names], np.int8)
    found: Kinds = kinds[np.asarray(encoded.indices)]
    return found


def _kind(name: str | None, column: str) -> RowKind:
    kind = None if name is None else ROW_KINDS.get(name.strip().lower())
    if kind is None:
        found = "null" if name is None else repr(name)
        raise InvalidDataError(
            f"row kind column {column!r} holds {found}, expected one of "
            "+I, -U, +U, -D, or insert, update_before, update_after, delete"
        )
    return kind
