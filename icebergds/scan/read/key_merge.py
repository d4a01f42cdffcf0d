"""Merges equality keys: one entry per key, with the highest sequence number that deleted it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icebergds.formats.deletes.key_columns import (
    KeyColumn,
    Mask,
    Rows,
    concat_columns,
    equal_rows,
    take_rows,
)
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.scan.read.hash_table import Payload

_COMPARED_AT_ONCE = 1 << 18
_SAMPLE = 1 << 10


@dataclass(frozen=True, slots=True)
class Keys:
    """Equality keys, each with the sequence number that deleted it.

    Attributes:
        hashes: one for each key; without columns, a hash identifies its key exactly.
        columns: the keys' values.
        codes: index into `numbers` for each key; None if all are `numbers[0]`.
        numbers: sequence numbers, ascending.
    """

    hashes: Hashes
    columns: tuple[KeyColumn, ...]
    codes: Payload | None
    numbers: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        codes = 0 if self.codes is None else self.codes.nbytes
        return self.hashes.nbytes + codes + sum(column.nbytes for column in self.columns)

    def take(self, rows: Rows) -> Keys:
        return Keys(
            self.hashes[rows],
            tuple(take_rows(column, rows) for column in self.columns),
            None if self.codes is None else self.codes[rows],
            self.numbers,
        )


NO_KEYS = Keys(np.empty(0, dtype=np.uint64), (), None, ())


def concat_keys(parts: Sequence[Keys]) -> Keys:
    """Concatenates keys; duplicates stay."""
    parts = [part for part in parts if part.hashes.size]
    if not parts:
        return NO_KEYS
    numbers = tuple(sorted({number for part in parts for number in part.numbers}))
    codes = None
    if len(numbers) > 1:
        codes = np.concatenate([recode(part, numbers).codes for part in parts])
    columns = tuple(
        concat_columns(column_parts)
        for column_parts in zip(*(part.columns for part in parts), strict=True)
    )
    return Keys(np.concatenate([part.hashes for part in parts]), columns, codes, numbers)


def recode(keys: Keys, numbers: tuple[int, ...]) -> Keys:
    """The keys with codes into `numbers`, which must include all their numbers."""
    if len(numbers) < 2:
        return replace(keys, codes=None, numbers=numbers)
    # The code type has one spare value, which tables reserve.
    code_type = np.min_scalar_type(len(numbers))
    codes = np.searchsorted(numbers, keys.numbers).astype(code_type)
    if keys.codes is not None:
        codes = codes[keys.codes]
    elif keys.hashes.size:
        codes = np.full(len(keys.hashes), codes[0])
    return replace(keys, codes=codes, numbers=numbers)


def are_mostly_known(known: Keys, others: Keys) -> bool:
    """Whether most of a sample of the others are known; arguments as for `update_known_keys`."""
    sample = others.hashes[:_SAMPLE]
    found = known.hashes[_search(known, sample)] == sample
    return 2 * int(np.count_nonzero(found)) > len(sample)


def update_known_keys(known: Keys, parts: Sequence[Keys]) -> tuple[Keys, list[Keys]]:
    """Updates the sequence numbers of known keys; returns them, and the keys that are new.

    Args:
        known: without columns, as returned by `distinct_keys`.
        parts: without columns, each with a single sequence number.
    """
    numbers = tuple(sorted({*known.numbers, *(part.numbers[0] for part in parts)}))
    known = recode(known, numbers)
    others = []
    for part in parts:
        hashes = np.sort(part.hashes)
        indices = _search(known, hashes)
        is_known = known.hashes[indices] == hashes
        if known.codes is not None:
            found = indices[is_known]
            code = known.codes.dtype.type(numbers.index(part.numbers[0]))
            known.codes[found] = np.maximum(known.codes[found], code)
        others.append(replace(part, hashes=hashes[~is_known]))
    return known, others


def distinct_keys(keys: Keys) -> Keys:
    """Removes duplicates; each key keeps its highest sequence number. May modify `keys`.

    Keys without columns are returned in the order of their hashes. Keys with columns may keep
    duplicates if different keys have the same hash.
    """
    if keys.columns:
        return _distinct_by_value(keys)
    if keys.codes is None:
        keys.hashes.sort()
        first = _starts(keys.hashes)
        return keys if first.all() else replace(keys, hashes=keys.hashes[first])
    codes = keys.codes[keys.hashes.argsort()]
    hashes = keys.hashes
    hashes.sort()
    starts = np.flatnonzero(_starts(hashes))
    if len(starts) < len(hashes):
        hashes, codes = hashes[starts], np.maximum.reduceat(codes, starts)
    return replace(keys, hashes=hashes, codes=codes)


def _distinct_by_value(keys: Keys) -> Keys:
    order = keys.hashes.argsort()
    first = _starts(keys.hashes[order])
    if first.all():
        return keys
    # Keeps the first key of each hash, and compares the others with it.
    leaders = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))][~first]
    others = order[~first]
    is_kept = np.ones(len(order), dtype=np.bool_)
    for start in range(0, len(others), _COMPARED_AT_ONCE):
        some = slice(start, start + _COMPARED_AT_ONCE)
        same = equal_rows(keys.columns, others[some], keys.columns, leaders[some])
        is_kept[others[some][same]] = False
        if keys.codes is not None:
            np.maximum.at(keys.codes, leaders[some][same], keys.codes[others[some][same]])
    return keys.take(np.flatnonzero(is_kept))


def _search(known: Keys, hashes: Hashes) -> Rows:
    """The index of each hash among the sorted ones; any valid index if it is not found."""
    indices = np.searchsorted(known.hashes, hashes)
    indices[indices == len(known.hashes)] = 0
    return indices


def _starts(ordered: Hashes) -> Mask:
    """Marks the values that differ from the previous one."""
    starts = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts
