"""Decodes manifest entries into columns, as stored.

The entries of a block follow each other without a delimiter, but to decode them column by column
their offsets must be known. Every entry has a file format, one of a few words, so each occurrence
of such a word after its length is a candidate for the offset of that field. From the candidates,
entries are decoded to their ends, and from the ends the next entries up to their file formats. If
every entry ends where the next one begins, every file format is at a candidate, the first entry
begins with its block and the last one ends with it, then these are the entries that one decodes
from front to back. Blocks for which this fails are decoded entry by entry, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import methodcaller

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
    StatsIds,
    StoredColumns,
    columns_of_records,
    concat_columns,
    is_statistics,
    wanted_stats,
)

# Fewer entries than this are faster to decode one by one.
FEW_ENTRIES = 32
# Blocks are decoded together up to this size. Arrays of smaller chunks are new memory in each step,
# those of larger ones leave the CPU's caches.
_CHUNK_BYTES = 6 << 20
# A mask of more bytes would be new memory each time.
_SEARCHED_BYTES = 128 << 10

_FORMATS = ("parquet", "PARQUET", "puffin", "PUFFIN", "avro", "AVRO", "orc", "ORC")

# If there are more candidates than this for each entry, or if arrays after a candidate have more
# elements, following the chain of entries does not pay.
_MAX_CANDIDATES = 8
_MAX_COLUMNS = 2_000

_Block = tuple[int, bytes | memoryview]


def decode_entries(
    container: AvroContainer,
    layout: ManifestLayout,
    stats_ids: StatsIds,
    few_entries: int,
) -> StoredColumns[pa.Array]:
    """Decodes all entries of a manifest.

    Args:
        stats_ids: columns whose statistics are read; None for all.
        few_entries: manifests with fewer entries are decoded entry by entry.

    Raises:
        CorruptFileError: an entry cannot be decoded, or the entries do not fill their blocks.
    """
    decoder = _Decoder(layout, stats_ids, container.what)
    if not layout.is_flat or container.record_count < max(few_entries, 1):
        return decoder.by_entry([block for chunk in _chunks(container) for block in chunk])
    return concat_columns(
        [columns for chunk in _chunks(container) for columns in decoder.decode(chunk)]
    )


def decode_together(
    containers: Sequence[AvroContainer], layout: ManifestLayout, stats_ids: StatsIds
) -> list[StoredColumns[pa.Array]]:
    """Decodes all entries of small manifests at once; one result for each manifest.

    Args:
        containers: with entries of the same layout, which is flat.

    Raises:
        CorruptFileError: as `decode_entries`, but it may name another manifest.
    """
    decoder = _Decoder(layout, stats_ids, containers[0].what)
    parts = [columns for chunk in _chunks(*containers) for columns in decoder.decode(chunk)]
    columns = concat_columns(parts)
    counts = [container.record_count for container in containers]
    starts = accumulate(counts, initial=0)
    return [
        columns.map(methodcaller("slice", start, count))
        for start, count in zip(starts, counts, strict=False)
    ]


def _chunks(*containers: AvroContainer) -> Iterator[list[_Block]]:
    chunk: list[_Block] = []
    size = 0
    for block in chain.from_iterable(map(_plain_blocks, containers)):
        chunk.append(block)
        size += len(block[1])
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _plain_blocks(container: AvroContainer) -> Iterator[_Block]:
    """The blocks that have entries."""
    for count, plain in container.decompressed():
        if count > len(plain) or (plain and not count):
            raise CorruptFileError(
                f"{container.what}: a block of {len(plain)} bytes cannot hold {count} entries"
            )
        if count:
            yield count, plain


@dataclass(frozen=True, slots=True)
class _Decoder:
    """Decodes blocks of one manifest."""

    layout: ManifestLayout
    stats_ids: StatsIds
    what: str

    def decode(self, blocks: Sequence[_Block]) -> list[StoredColumns[pa.Array]]:
        """Decodes by column; if that fails, each half by itself, down to single blocks by entry."""
        try:
            columns = self._by_column(blocks)
        except NotVectorisableError:
            return [self.by_entry(blocks)]
        if columns is not None:
            return [columns]
        if len(blocks) == 1:
            return [self.by_entry(blocks)]
        middle = len(blocks) // 2
        return [*self.decode(blocks[:middle]), *self.decode(blocks[middle:])]

    def by_entry(self, blocks: Sequence[_Block]) -> StoredColumns[pa.Array]:
        """Decodes entry by entry."""
        records = [
            record
            for count, plain in blocks
            for record in read_records(count, plain, self.layout.record_schema, self.what)
        ]
        return columns_of_records(records, self.layout, self.stats_ids)

    def _by_column(self, blocks: Sequence[_Block]) -> StoredColumns[pa.Array] | None:
        counts = np.array([count for count, _ in blocks])
        ends = np.cumsum([len(plain) for _, plain in blocks])
        decoder = ColumnDecoder(plain for _, plain in blocks)
        candidates = self._candidates(decoder, ends, counts)
        columns = self._verified(decoder, candidates, ends, counts)
        if columns is None:
            linked = self._chain(decoder, candidates, ends, counts)
            columns = None if linked is None else self._verified(decoder, linked, ends, counts)
        return None if columns is None else columns.map(lambda c: column_to_arrow(c, decoder.data))

    def _candidates(self, decoder: ColumnDecoder, ends: Int64s, counts: Int64s) -> Int64s:
        """Offsets of whatever looks like the file format of an entry."""
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

    def _verified(
        self, decoder: ColumnDecoder, candidates: Int64s, ends: Int64s, counts: Int64s
    ) -> StoredColumns[Column] | None:
        """Decodes entries with file formats at the candidates; None if these are not all right."""
        if len(candidates) != counts.sum():
            return None
        columns: StoredColumns[Column] = StoredColumns()
        entry_ends = self._read(decoder, self._back(), candidates, columns)
        if (entry_ends[np.cumsum(counts) - 1] != ends).any():
            return None
        entry_begins = np.concatenate(([0], entry_ends[:-1]))
        reached = self._read(decoder, self._front(), entry_begins, columns)
        return columns if (reached == candidates).all() else None

    def _chain(
        self, decoder: ColumnDecoder, candidates: Int64s, ends: Int64s, counts: Int64s
    ) -> Int64s | None:
        """The candidates reached from the start of each block, entry by entry; None if it fails."""
        if not 0 < len(candidates) <= _MAX_CANDIDATES * counts.sum():
            return None
        decoder = copy(decoder)
        decoder.max_elements = _MAX_COLUMNS
        entry_ends = _skip(decoder, self._back(), candidates)
        begins = np.concatenate(([0], ends[:-1], entry_ends))
        reached = _skip(decoder, self._front(), begins)
        nearest = np.minimum(np.searchsorted(candidates, reached), len(candidates) - 1)
        following = np.where(candidates[nearest] == reached, nearest, -1).tolist()
        linked = []
        for block, count in enumerate(counts.tolist()):
            index = following[block]
            for _ in range(count):
                if index < 0:
                    return None
                linked.append(index)
                index = following[len(counts) + index]
        return candidates[linked]

    def _read(
        self,
        decoder: ColumnDecoder,
        leaves: Sequence[Leaf],
        at: Int64s,
        columns: StoredColumns[Column],
    ) -> Int64s:
        for leaf in leaves:
            if leaf.partition_index is not None:
                columns.partition[leaf.partition_index], at = decoder.read(leaf.node, at)
            elif leaf.field_id is None:
                at = decoder.skip(leaf.node, at)
            elif not is_statistics(leaf) or (wanted := wanted_stats(leaf, self.stats_ids)) is None:
                columns.fields[leaf.field_id], at = decoder.read(leaf.node, at)
            elif not wanted:
                at = decoder.skip(leaf.node, at)
            else:
                found, at = decoder.read_keys(leaf.node, at, wanted)
                columns.stats |= {(leaf.field_id, key): column for key, column in found.items()}
        return at

    def _front(self) -> Sequence[Leaf]:
        """The fields before the file format."""
        return self.layout.leaves[: self.layout.anchor]

    def _back(self) -> Sequence[Leaf]:
        """The file format and the fields after it."""
        return self.layout.leaves[self.layout.anchor :]


def _skip(decoder: ColumnDecoder, leaves: Sequence[Leaf], at: Int64s) -> Int64s:
    for leaf in leaves:
        at = decoder.skip(leaf.node, at)
    return at


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A file format as stored: its length and its name, in at most eight bytes.

    `rare_at` is the index of the byte that is least likely in other data.
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
    parts = [
        np.flatnonzero(decoder.bytes[start : min(start + _SEARCHED_BYTES, decoder.size)] == rare)
        + (start - pattern.rare_at)
        for start in range(0, decoder.size, _SEARCHED_BYTES)
    ]
    hits = np.concatenate(parts)
    hits = hits[hits >= 0]
    found: Int64s = hits[(decoder.words[hits] & pattern.mask) == pattern.word]
    return found
