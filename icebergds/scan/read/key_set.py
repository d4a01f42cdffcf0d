"""Applies equality deletes with a set of deleted keys, probed by batch (spec: Scan Planning).

One set serves all data files of its scope, with the delete files of all commits. It has each key
once, with the highest data sequence number that deleted it. That suffices: a row is deleted
if *any* delete of its key is newer than its data file. So the size of a set depends on the number
of distinct keys, not on the number of commits that deleted them.

Keys are compared by value in all columns; hashes only locate candidates. Null equals null (spec:
Equality Delete Files). Floating point is compared as by Java's `Float.compare`: NaN equals NaN, and
-0.0 is not 0.0.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icebergds.formats.deletes.key_columns import (
    KeyColumn,
    Mask,
    check_key_field,
    encode_column,
    is_one_lane,
)
from icebergds.formats.deletes.key_hash import hash_columns, mix, new_seed, odd_multipliers, widen
from icebergds.scan.read.hash_table import Rows
from icebergds.scan.read.key_index import ExactIndex, HashedIndex
from icebergds.scan.read.key_merge import (
    NO_KEYS,
    Keys,
    are_mostly_known,
    concat_keys,
    distinct_keys,
    recode,
    update_known_keys,
)
from icebergds.spec.types import NestedField

_MIN_MERGED_ROWS = 1 << 20
_NO_ROWS: Rows = np.empty(0, dtype=np.intp)


class EqualityKeySet:
    """An immutable, thread-safe set of deleted keys, built by `EqualityKeySetBuilder`."""

    __slots__ = ("_index", "_numbers", "fields")

    def __init__(
        self,
        fields: tuple[NestedField, ...],
        index: ExactIndex | HashedIndex,
        sequence_numbers: tuple[int, ...],
    ) -> None:
        self.fields = fields
        self._index = index
        self._numbers = sequence_numbers

    def contains(self, columns: Sequence[pa.Array], data_sequence_number: int) -> Mask:
        """Marks the deleted rows of a data file: True for those that `find` finds.

        Args and errors are those of `find`.
        """
        rows = self.find(columns, data_sequence_number)
        deleted = np.zeros(len(columns[0]), dtype=np.bool_)
        deleted[rows] = True
        return deleted

    def find(self, columns: Sequence[pa.Array], data_sequence_number: int) -> Rows:
        """Finds the deleted rows of a data file.

        Args:
            columns: the file's key columns in the order of `fields`, of equal length; for a nested
                field the leaf, null if an enclosing struct is null.
            data_sequence_number: of the data file; only deletes with a higher one apply.

        Returns:
            Indices of the rows, each once, in any order.

        Raises:
            UnsupportedFeatureError: a column does not have the type of its field.
        """
        length = _check_columns(self.fields, columns)
        oldest = bisect_right(self._numbers, data_sequence_number)
        if not length or oldest == len(self._numbers):
            return _NO_ROWS
        rows, codes = self._index.find(_encode(self.fields, columns), length)
        return rows[codes >= oldest] if oldest and codes is not None else rows

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self._index.nbytes

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        names = ", ".join(field.name for field in self.fields)
        return f"EqualityKeySet({names}: {len(self)} keys)"


class EqualityKeySetBuilder:
    """Builds a key set from any number of delete files.

    Duplicates are merged regularly, so memory depends on the number of distinct keys.

    Args:
        fields: the fields of `equality_ids`, of any scalar types, in the order of the columns.

    Raises:
        UnsupportedFeatureError: a field's type cannot be an equality key.
    """

    def __init__(self, fields: Sequence[NestedField]) -> None:
        if not fields:
            raise ValueError("equality deletes need at least one key field")
        for field in fields:
            check_key_field(field)
        self._fields = tuple(fields)
        self._is_exact = len(fields) == 1 and is_one_lane(fields[0])
        self._seed = new_seed()
        self._multiplier = odd_multipliers(self._seed, 0, 1)[0]
        self._merged = NO_KEYS
        self._pending: list[Keys] = []
        self._pending_rows = 0
        self._range: tuple[int, int] | None = None
        self._null_number: int | None = None

    def add(self, columns: Sequence[pa.Array], sequence_number: int) -> None:
        """Adds a batch of a delete file.

        Args:
            columns: the key columns, as in `EqualityKeySet.find`.
            sequence_number: the delete file's data sequence number.

        Raises:
            UnsupportedFeatureError: a column does not have the type of its field.
        """
        length = _check_columns(self._fields, columns)
        if not length:
            return
        encoded = _encode(self._fields, columns)
        if self._is_exact:
            self._add_exact(encoded[0], sequence_number)
        else:
            hashes = hash_columns(encoded, length, self._seed)
            self._append(Keys(hashes, encoded, None, (sequence_number,)))

    @property
    def nbytes(self) -> int:
        """Memory that the keys take now, in bytes; building their set takes more."""
        return sum(keys.nbytes for keys in (self._merged, *self._pending))

    def build(self) -> EqualityKeySet:
        """Builds the set of all added keys; the builder must not be used afterwards."""
        self._merge()
        keys = self._merged
        self._merged = NO_KEYS
        if not self._is_exact:
            index = HashedIndex(keys, self._seed)
            return EqualityKeySet(self._fields, index, keys.numbers)
        numbers = keys.numbers
        null_code = None
        if self._null_number is not None:
            numbers = tuple(sorted({*numbers, self._null_number}))
            null_code = bisect_left(numbers, self._null_number)
            keys = recode(keys, numbers)
        exact = ExactIndex(keys, self._range, self._multiplier, null_code)
        return EqualityKeySet(self._fields, exact, numbers)

    def _add_exact(self, column: KeyColumn, sequence_number: int) -> None:
        lane = column.lanes[0]
        if column.valid is not None:
            lane = lane[column.valid]
            self._null_number = max(sequence_number, self._null_number or sequence_number)
        if lane.size:
            low, high = int(lane.min()), int(lane.max())
            known = self._range or (low, high)
            self._range = min(low, known[0]), max(high, known[1])
            self._append(Keys(mix(widen(lane), self._multiplier), (), None, (sequence_number,)))

    def _append(self, keys: Keys) -> None:
        self._pending.append(keys)
        self._pending_rows += len(keys.hashes)
        # The size doubles between merges, so each key is merged only a few times.
        if self._pending_rows >= max(_MIN_MERGED_ROWS, len(self._merged.hashes)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        merged, pending = self._merged, self._pending
        self._merged, self._pending, self._pending_rows = NO_KEYS, [], 0
        if self._is_exact and merged.hashes.size and are_mostly_known(merged, pending[-1]):
            # Commits delete the same keys repeatedly: this avoids sorting all keys again.
            merged, pending = update_known_keys(merged, pending)
            if not any(part.hashes.size for part in pending):
                self._merged = merged
                return
        keys = concat_keys([merged, *pending])
        del merged, pending
        self._merged = distinct_keys(keys)


def _check_columns(fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> int:
    lengths = {len(column) for column in columns}
    if len(columns) != len(fields) or len(lengths) != 1:
        raise ValueError(
            f"expected {len(fields)} key columns of equal length, got {len(columns)} with lengths "
            f"{sorted(lengths)}"
        )
    return lengths.pop()


def _encode(fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> tuple[KeyColumn, ...]:
    return tuple(
        encode_column(column, field) for column, field in zip(columns, fields, strict=True)
    )
