"""Equality deletes: the keys of deleted rows, probed a batch at a time (spec: Scan Planning).

One set serves every data file of its scope. Delete files of different commits go into it together:
a key is kept once, with the greatest data sequence number that deleted it, and that suffices, since
a row is deleted exactly if *some* delete of its key is newer than its data file. So a set grows
with the number of distinct keys, not with the number of commits that deleted them. Where all keys
have the same number, it is kept once.

Keys are compared by value in every column; hashes only say where to look. Null equals null (spec:
Equality Delete Files). Floating point is compared as Java's `Float.compare` does: NaN equals NaN,
and -0.0 is not 0.0.
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
from icebergds.scan.read.key_index import ExactIndex, HashedIndex
from icebergds.scan.read.key_merge import (
    NO_KEYS,
    Keys,
    absorb,
    concat_keys,
    distinct_keys,
    recode,
    repeats,
)
from icebergds.spec.types import NestedField

_LEAST_MERGED_ROWS = 1 << 20


class EqualityKeySet:
    """An immutable set of deleted keys; any number of threads may probe it.

    Made by `EqualityKeySetBuilder`.
    """

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
        """Which rows of a data file are deleted.

        Args:
            columns: the file's key columns in the order of `fields`, of equal length; of a nested
                field the leaf, null where a struct around it is null.
            data_sequence_number: of the data file; only deletes with a greater one apply.

        Returns:
            True where a row is deleted.

        Raises:
            UnsupportedFeatureError: a column is not of the type of its field.
        """
        length = _check_columns(self.fields, columns)
        deleted = np.zeros(length, dtype=np.bool_)
        oldest = bisect_right(self._numbers, data_sequence_number)
        if length and oldest < len(self._numbers):
            encoded = _encode(self.fields, columns)
            rows, codes = self._index.find(encoded, length)
            if oldest and codes is not None:
                rows = rows[codes >= oldest]
            deleted[rows] = True
        return deleted

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._index.nbytes

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        names = ", ".join(field.name for field in self.fields)
        return f"EqualityKeySet({names}: {len(self)} keys)"


class EqualityKeySetBuilder:
    """Gathers the keys of any number of delete files.

    Repeated keys are merged as they come, so memory follows the number of distinct keys.

    Args:
        fields: the fields of `equality_ids`, any scalar type; their order is that of the columns.

    Raises:
        UnsupportedFeatureError: a field's type has no equality.
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
            columns: the key columns, as in `EqualityKeySet.contains`.
            sequence_number: the delete file's data sequence number.

        Raises:
            UnsupportedFeatureError: a column is not of the type of its field.
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

    def build(self) -> EqualityKeySet:
        """The set of all keys added; ends the use of this builder."""
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
        # Sizes double between merges, so that a row is merged few times.
        if self._pending_rows >= max(_LEAST_MERGED_ROWS, len(self._merged.hashes)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        merged, pending = self._merged, self._pending
        self._merged, self._pending, self._pending_rows = NO_KEYS, [], 0
        if self._is_exact and merged.hashes.size and repeats(merged, pending[-1]):
            # Commits delete the same keys again and again: nothing is to be put in order anew.
            merged, pending = absorb(merged, pending)
            if not any(part.hashes.size for part in pending):
                self._merged = merged
                return
        keys = concat_keys([merged, *pending])
        del merged, pending
        self._merged = distinct_keys(keys)


def _check_columns(fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> int:
    lengths = {len(column) for column in columns}
    if len(columns) != len(fields) or len(lengths) != 1:
        raise ValueError(f"{len(fields)} key columns of one length wanted, got {len(columns)}")
    return lengths.pop()


def _encode(fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> tuple[KeyColumn, ...]:
    return tuple(
        encode_column(column, field) for column, field in zip(columns, fields, strict=True)
    )
