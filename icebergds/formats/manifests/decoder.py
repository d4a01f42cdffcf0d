"""Manifest entries decoded into columns, as stored.

Entries of a block follow each other without a mark between them, but to decode them side by side
their places must be known. Each entry names its file format, one of a few words, so occurrences of
such a word after its length are taken for the places of that field. From there each entry is
decoded to its end, and from each end the next entry up to its format. If every entry ends where the
next begins, the next reaches its format where one was taken to be, the first begins with its block
and the last ends with it, then this is the chain that one reads from front to back. Blocks for
which that fails are decoded entry by entry, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.avro.column_decoder import ColumnDecoder
from icebergds.formats.avro.columns import Column, NotVectorisableError, column_to_arrow
from icebergds.formats.avro.container import AvroContainer
from icebergds.formats.avro.cursors import Int64s
from icebergds.formats.avro.records import read_records
from icebergds.formats.avro.schema import AvroPrimitive
from icebergds.formats.manifests.layout import Leaf, ManifestLayout
from icebergds.formats.manifests.stored_columns import (
    EntryParts,
    StatsIds,
    is_statistics,
    joined,
    parts_of_records,
    wanted_stats,
)

# Fewer entries than this are decoded faster one by one.
FEW_ENTRIES = 32
# Blocks are decoded together up to this size, so that cursors and bytes stay in the caches.
_CHUNK_BYTES = 4096 << 10

_FORMATS = ("parquet", "PARQUET", "puffin", "PUFFIN", "avro", "AVRO", "orc", "ORC")

# Where more places than this for each entry look like formats, or where arrays that start at such a
# place have more elements, following the chain does not pay.
_MAX_PLACES = 8
_MAX_COLUMNS = 2_000

_Block = tuple[int, bytes | memoryview]


def decode_entries(
    container: AvroContainer,
    layout: ManifestLayout,
    stats_ids: StatsIds,
    few_entries: int = FEW_ENTRIES,
) -> EntryParts[pa.Array]:
    """All entries of a manifest.

    Args:
        stats_ids: columns whose statistics are wanted; None for all.
        few_entries: manifests with fewer entries are decoded entry by entry.

    Raises:
        CorruptFileError: entries do not decode, or do not fill their blocks.
    """
    decoder = _Decoder(layout, stats_ids, container.what)
    if not layout.is_flat or container.record_count < max(few_entries, 1):
        return decoder.one_by_one([block for chunk in _chunks(container) for block in chunk])
    return joined([parts for chunk in _chunks(container) for parts in decoder.decode(chunk)])


def _chunks(container: AvroContainer) -> Iterator[list[_Block]]:
    chunk: list[_Block] = []
    size = 0
    for count, plain in container.decompressed():
        if count > len(plain) or (plain and not count):
            raise CorruptFileError(
                f"{container.what}: a block of {len(plain)} bytes cannot hold {count} entries"
            )
        if count:
            chunk.append((count, plain))
        size += len(plain)
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@dataclass(frozen=True, slots=True)
class _Decoder:
    """Decodes blocks of one manifest."""

    layout: ManifestLayout
    stats_ids: StatsIds
    what: str

    def decode(self, blocks: Sequence[_Block]) -> list[EntryParts[pa.Array]]:
        """Side by side; where that fails, half by half, down to single blocks one by one."""
        try:
            parts = self._side_by_side(blocks)
        except NotVectorisableError:
            return [self.one_by_one(blocks)]
        if parts is not None:
            return [parts]
        if len(blocks) == 1:
            return [self.one_by_one(blocks)]
        middle = len(blocks) // 2
        return [*self.decode(blocks[:middle]), *self.decode(blocks[middle:])]

    def one_by_one(self, blocks: Sequence[_Block]) -> EntryParts[pa.Array]:
        """Entry by entry."""
        records = [
            record
            for count, plain in blocks
            for record in read_records(count, plain, self.layout.record_schema, self.what)
        ]
        return parts_of_records(records, self.layout, self.stats_ids)

    def _side_by_side(self, blocks: Sequence[_Block]) -> EntryParts[pa.Array] | None:
        counts = np.array([count for count, _ in blocks])
        ends = np.cumsum([len(plain) for _, plain in blocks])
        decoder = ColumnDecoder(plain for _, plain in blocks)
        places = self._places(decoder, ends, counts)
        parts = self._proved(decoder, places, ends, counts)
        if parts is None:
            chain = self._chain(decoder, places, ends, counts)
            parts = None if chain is None else self._proved(decoder, chain, ends, counts)
        return None if parts is None else parts.map(lambda c: column_to_arrow(c, decoder.data))

    def _places(self, decoder: ColumnDecoder, ends: Int64s, counts: Int64s) -> Int64s:
        """Where something stands that looks like an entry's format."""
        anchor = self._back()[0]
        if anchor.node != AvroPrimitive("string"):
            raise NotVectorisableError(f"a file format of type {anchor.node}")
        firsts = _skip(decoder, self._front(), np.concatenate(([0], ends[:-1])))
        first_words = decoder.words[firsts]
        likely = [p for p in _PATTERNS if ((first_words & p.mask) == p.word).any()]
        found = [_search(decoder, pattern) for pattern in likely]
        if sum(map(len, found)) < counts.sum():
            found += [_search(decoder, p) for p in _PATTERNS if p not in likely]
        return np.sort(np.concatenate(found))

    def _proved(
        self, decoder: ColumnDecoder, places: Int64s, ends: Int64s, counts: Int64s
    ) -> EntryParts[Column] | None:
        """The entries with formats at `places`, or None if that is not how the entries lie."""
        if len(places) != counts.sum():
            return None
        parts: EntryParts[Column] = EntryParts()
        entry_ends = self._read(decoder, self._back(), places, parts)
        if (entry_ends[np.cumsum(counts) - 1] != ends).any():
            return None
        entry_begins = np.concatenate(([0], entry_ends[:-1]))
        reached = self._read(decoder, self._front(), entry_begins, parts)
        return parts if (reached == places).all() else None

    def _chain(
        self, decoder: ColumnDecoder, places: Int64s, ends: Int64s, counts: Int64s
    ) -> Int64s | None:
        """Those of `places` that one comes by from the beginning of each block, or None."""
        if not 0 < len(places) <= _MAX_PLACES * counts.sum():
            return None
        decoder = copy(decoder)
        decoder.max_elements = _MAX_COLUMNS
        entry_ends = _skip(decoder, self._back(), places)
        begins = np.concatenate(([0], ends[:-1], entry_ends))
        reached = _skip(decoder, self._front(), begins)
        nearest = np.minimum(np.searchsorted(places, reached), len(places) - 1)
        next_place = np.where(places[nearest] == reached, nearest, -1).tolist()
        chain = []
        for block, count in enumerate(counts.tolist()):
            place = next_place[block]
            for _ in range(count):
                if place < 0:
                    return None
                chain.append(place)
                place = next_place[len(counts) + place]
        return places[chain]

    def _read(
        self,
        decoder: ColumnDecoder,
        leaves: Sequence[Leaf],
        at: Int64s,
        parts: EntryParts[Column],
    ) -> Int64s:
        for leaf in leaves:
            if leaf.partition_index is not None:
                parts.partition[leaf.partition_index], at = decoder.read(leaf.node, at)
            elif leaf.field_id is None:
                at = decoder.skip(leaf.node, at)
            elif not is_statistics(leaf) or (wanted := wanted_stats(leaf, self.stats_ids)) is None:
                parts.fields[leaf.field_id], at = decoder.read(leaf.node, at)
            elif not wanted:
                at = decoder.skip(leaf.node, at)
            else:
                found, at = decoder.read_keys(leaf.node, at, wanted)
                parts.stats |= {(leaf.field_id, key): column for key, column in found.items()}
        return at

    def _front(self) -> Sequence[Leaf]:
        return self.layout.leaves[: self.layout.anchor]

    def _back(self) -> Sequence[Leaf]:
        """The file format and what follows it."""
        return self.layout.leaves[self.layout.anchor :]


def _skip(decoder: ColumnDecoder, leaves: Sequence[Leaf], at: Int64s) -> Int64s:
    for leaf in leaves:
        at = decoder.skip(leaf.node, at)
    return at


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A file format as stored: its length and its name, in eight bytes or fewer.

    `rare_at` is the index of its byte that other data is least likely to hold.
    """

    stored: bytes
    word: np.uint64
    mask: np.uint64
    rare_at: int


def _pattern(name: str) -> _Pattern:
    stored = bytes([2 * len(name)]) + name.encode()
    mask = (1 << 8 * len(stored)) - 1
    rare_at = next(i for i, c in enumerate(stored) if chr(c) in "QqFfVvCc")
    return _Pattern(stored, np.uint64(int.from_bytes(stored, "little")), np.uint64(mask), rare_at)


_PATTERNS = tuple(_pattern(name) for name in _FORMATS)


def _search(decoder: ColumnDecoder, pattern: _Pattern) -> Int64s:
    rare = pattern.stored[pattern.rare_at]
    hits = np.flatnonzero(decoder.bytes[: decoder.size] == rare) - pattern.rare_at
    hits = hits[hits >= 0]
    found: Int64s = hits[(decoder.words[hits] & pattern.mask) == pattern.word]
    return found
