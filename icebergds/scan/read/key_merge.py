"""Equality keys while they are gathered: hashes, columns and sequence numbers, merged by key."""

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
    """Some keys, each with the sequence number that deleted it.

    Attributes:
        hashes: of every key; where there are no columns, the hash stands for exactly one key.
        columns: the keys' values.
        codes: index into `numbers` of every key; None if all are `numbers[0]`.
        numbers: sequence numbers, ascending.
    """

    hashes: Hashes
    columns: tuple[KeyColumn, ...]
    codes: Payload | None
    numbers: tuple[int, ...]

    def take(self, rows: Rows) -> Keys:
        return Keys(
            self.hashes[rows],
            tuple(take_rows(column, rows) for column in self.columns),
            None if self.codes is None else self.codes[rows],
            self.numbers,
        )


NO_KEYS = Keys(np.empty(0, dtype=np.uint64), (), None, ())


def concat_keys(parts: Sequence[Keys]) -> Keys:
    """All keys of all parts; repeated ones stay."""
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
    """The keys with codes into `numbers`, which contain theirs."""
    if len(numbers) < 2:
        return replace(keys, codes=None, numbers=numbers)
    # One value more than needed, so that tables can set one apart.
    code_type = np.min_scalar_type(len(numbers))
    codes = np.searchsorted(numbers, keys.numbers).astype(code_type)
    if keys.codes is not None:
        codes = codes[keys.codes]
    elif keys.hashes.size:
        codes = np.full(len(keys.hashes), codes[0])
    return replace(keys, codes=codes, numbers=numbers)


def repeats(known: Keys, others: Keys) -> bool:
    """Whether most of the others are known keys, as far as some of them tell; as for `absorb`."""
    some = others.hashes[:_SAMPLE]
    return 2 * int(np.count_nonzero(known.hashes[_places(known, some)] == some)) > len(some)


def absorb(known: Keys, parts: Sequence[Keys]) -> tuple[Keys, list[Keys]]:
    """Keys with the numbers that others have for them, and those of the others that are new.

    Args:
        known: without columns, as `distinct_keys` gives them.
        parts: without columns, each of one number.
    """
    numbers = tuple(sorted({*known.numbers, *(part.numbers[0] for part in parts)}))
    known = recode(known, numbers)
    others = []
    for part in parts:
        hashes = np.sort(part.hashes)
        places = _places(known, hashes)
        is_known = known.hashes[places] == hashes
        if known.codes is not None:
            found = places[is_known]
            code = known.codes.dtype.type(numbers.index(part.numbers[0]))
            known.codes[found] = np.maximum(known.codes[found], code)
        others.append(replace(part, hashes=hashes[~is_known]))
    return known, others


def distinct_keys(keys: Keys) -> Keys:
    """Each key once, with its greatest sequence number. Takes `keys` over.

    Keys without columns come out in the order of their hashes. Different keys with columns that
    share a hash may stay repeated.
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
    # The first key of every hash stays; the others are compared with it.
    leaders = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))][~first]
    others = order[~first]
    stays = np.ones(len(order), dtype=np.bool_)
    for start in range(0, len(others), _COMPARED_AT_ONCE):
        some = slice(start, start + _COMPARED_AT_ONCE)
        same = equal_rows(keys.columns, others[some], keys.columns, leaders[some])
        stays[others[some][same]] = False
        if keys.codes is not None:
            np.maximum.at(keys.codes, leaders[some][same], keys.codes[others[some][same]])
    return keys.take(np.flatnonzero(stays))


def _places(known: Keys, hashes: Hashes) -> Rows:
    """Where hashes are among ordered ones, if they are."""
    places = np.searchsorted(known.hashes, hashes)
    # Behind the last one there is none to compare with.
    places[places == len(known.hashes)] = 0
    return places


def _starts(ordered: Hashes) -> Mask:
    """Where a value differs from the one before."""
    starts = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts
