"""Rewrites manifests into a few that each list files of neighbouring partitions.

Entries are copied as columns and encoded records, without an object for each. If there are many,
their manifests are read twice: first for the order of the entries, then for the entries themselves,
of which only a part is held uncompressed at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.column_manifests import manifest_form
from icebergds.commit.new_manifests import UNASSIGNED, column_summaries
from icebergds.commit.selection import read_together
from icebergds.commit.workspace import Workspace
from icebergds.formats.avro.container_writer import Block
from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.formats.manifests.side_by_side import MANIFEST_READERS
from icebergds.formats.manifests.writer import ManifestForm
from icebergds.reporting import advancing, expect
from icebergds.spec.manifest import ManifestEntryStatus, ManifestFile
from icebergds.spec.table_properties import MANIFEST_TARGET_SIZE_BYTES
from icebergds.spec.types import StructType

_KEPT_BYTES = 64 << 20
"""Manifests of up to this size together are read once, and their entries held uncompressed."""
_BYTES_TOGETHER = 1 << 20
"""Small manifests of up to this size together are decoded as if they were one."""
_BYTES_AT_ONCE = 16 << 20
"""Manifests of up to this size together are decoded in parallel, in ten times the memory."""
_ENTRIES_AT_ONCE = 1 << 13
_BATCH_BYTES = 32 << 20
_WRITERS = 8
_SAMPLED_MANIFESTS = 8
_SAMPLED_ENTRIES = 200

_Bundle: TypeAlias = tuple[ManifestFile, ...]


@dataclass(frozen=True, slots=True)
class ClusteredManifests:
    """New manifests, and how many entries they have."""

    manifests: tuple[ManifestFile, ...]
    entries: int


def cluster_manifests(
    work: Workspace, base: CommitBase, manifests: Sequence[ManifestFile], leading: Sequence[int]
) -> ClusteredManifests:
    """Writes the live entries of manifests to new ones of `commit.manifest.target-size-bytes`.

    Entries keep their snapshot ids, sequence numbers and first row ids.

    Args:
        manifests: manifests of one partition spec and one kind of content.
        leading: ids of the partition fields to cluster by first; the spec's others follow.

    Raises:
        MissingFileError, CorruptFileError: a manifest cannot be read.
    """
    keep = sum(manifest.manifest_length for manifest in manifests) <= _KEPT_BYTES
    bundles = list(_bundles(manifests))
    expect(len(manifests))
    with _readers(bundles) as readers:
        sources = [
            source
            for group in _groups(bundles)
            for found in advancing(
                readers.map(lambda bundle: _sources(base, bundle, keep), bundles[group]),
                map(len, bundles[group]),
            )
            for source in found
        ]
        count = sum(map(len, sources))
        groups: dict[StructType, list[_Source]] = {}
        for source in sources:
            # The type of a dropped column's values may be known to some manifests only.
            groups.setdefault(source.partition_type, []).append(source)
        written = [
            manifest
            for group in groups.values()
            for manifest in _Clustering(work, base, group, leading, readers).run()
        ]
    return ClusteredManifests(tuple(written), count)


def _bundles(manifests: Iterable[ManifestFile]) -> Iterator[_Bundle]:
    """Neighbouring manifests that are decoded together."""
    bundle: _Bundle = ()
    for manifest in manifests:
        if bundle and _size(bundle) + manifest.manifest_length > _BYTES_TOGETHER:
            yield bundle
            bundle = ()
        bundle += (manifest,)
    if bundle:
        yield bundle


def _groups(bundles: Sequence[_Bundle]) -> list[slice]:
    """Neighbouring bundles that are decoded in parallel."""
    groups: list[slice] = []
    start = size = 0
    for number, bundle in enumerate(bundles):
        if number > start and size + _size(bundle) > _BYTES_AT_ONCE:
            groups.append(slice(start, number))
            start, size = number, 0
        size += _size(bundle)
    return [*groups, slice(start, len(bundles))]


def _size(bundle: _Bundle) -> int:
    return sum(manifest.manifest_length for manifest in bundle)


def _readers(bundles: Sequence[_Bundle]) -> ThreadPoolExecutor:
    """Threads to decode manifests; a thread that had a large one keeps some of its memory."""
    most = max(group.stop - group.start for group in _groups(bundles))
    return ThreadPoolExecutor(max(1, min(MANIFEST_READERS, most)))


@dataclass(frozen=True, slots=True)
class _Source:
    """The live entries of manifests whose partition values have one type.

    Attributes:
        encoded: the encoded entries in parts; empty to read the manifests again.
    """

    manifests: _Bundle
    partition_type: StructType
    partition: tuple[pa.Array, ...]
    data_sequence_number: Int64s
    record_count: Int64s
    encoded: list[pa.LargeBinaryArray]

    def __len__(self) -> int:
        return len(self.record_count)


def _sources(base: CommitBase, bundle: _Bundle, keep: bool) -> list[_Source]:
    alike: dict[StructType, list[tuple[ManifestFile, EntryColumns]]] = {}
    read = read_together(base, bundle, None if keep else ())
    for manifest, columns in zip(bundle, read, strict=True):
        if len(columns):
            alike.setdefault(columns.partition_type, []).append((manifest, columns))
    return [
        _source(base, tuple(m for m, _ in found), EntryColumns.concat([c for _, c in found]), keep)
        for found in alike.values()
    ]


def _source(base: CommitBase, bundle: _Bundle, columns: EntryColumns, keep: bool) -> _Source:
    form = manifest_form(base, bundle[0], columns.partition_type)
    return _Source(
        bundle,
        columns.partition_type,
        columns.partition,
        columns.data_sequence_number,
        columns.record_count,
        _encoded(form, columns) if keep else [],
    )


def _encoded(form: ManifestForm, columns: EntryColumns) -> list[pa.LargeBinaryArray]:
    """The encoded entries in parts: encoding a part takes several times its memory."""
    # Rewritten entries are of existing files.
    existing = np.full(len(columns), ManifestEntryStatus.EXISTING.value)
    columns = replace(columns, status=existing)
    if len(columns) <= _ENTRIES_AT_ONCE:
        return [form.encode(columns)]
    rows = np.arange(len(columns))
    return [
        form.encode(columns.take(rows[start : start + _ENTRIES_AT_ONCE]))
        for start in range(0, len(rows), _ENTRIES_AT_ONCE)
    ]


@dataclass(slots=True)
class _Target:
    """A manifest under construction.

    Attributes:
        missing: the number of entries that it does not have yet.
    """

    missing: int
    blocks: list[Block] = field(default_factory=list)


class _Clustering:
    """Rewrites manifests whose partition values have the same type."""

    def __init__(
        self,
        work: Workspace,
        base: CommitBase,
        sources: Sequence[_Source],
        leading: Sequence[int],
        readers: ThreadPoolExecutor,
    ) -> None:
        self._work, self._base, self._sources, self._readers = work, base, sources, readers
        self._manifest = sources[0].manifests[0]
        self._type = sources[0].partition_type
        self._form = manifest_form(base, self._manifest, self._type)
        self._partition = [
            pa.concat_arrays([source.partition[at] for source in sources])
            for at in range(len(self._type.fields))
        ]
        self._numbers = np.concatenate([source.data_sequence_number for source in sources])
        self._rows = np.concatenate([source.record_count for source in sources])
        self._order = self._sorted(leading)
        self._bounds = self._split()

    def run(self) -> list[ManifestFile]:
        """Writes the manifests, in the order of their entries."""
        total = len(self._order)
        ranks = np.empty(total, np.int64)
        ranks[self._order] = np.arange(total)
        targets = [_Target(int(count)) for count in np.diff(self._bounds)]
        written: dict[int, ManifestFile] = {}
        batch: list[pa.LargeBinaryArray] = []
        start = end = size = 0
        for encoded in self._all_encoded():
            batch.append(encoded)
            size += encoded.nbytes
            end += len(encoded)
            if size >= _BATCH_BYTES or end == total:
                self._distribute(batch, ranks[start:end], targets, written)
                start, size = end, 0
        return [written[number] for number in range(len(targets))]

    def _distribute(
        self,
        batch: list[pa.LargeBinaryArray],
        ranks: Int64s,
        targets: Sequence[_Target],
        written: dict[int, ManifestFile],
    ) -> None:
        """Adds entries to their manifests, and writes those that have all of theirs.

        Args:
            batch: emptied, so that the entries are in memory only once.
            ranks: the entries' positions in the overall order.
        """
        encoded = pa.concat_arrays(batch)
        batch.clear()
        order = np.argsort(ranks)
        cuts = np.searchsorted(ranks[order], self._bounds)

        def add(number: int) -> None:
            target, chosen = targets[number], order[cuts[number] : cuts[number + 1]]
            target.blocks += self._form.blocks(encoded.take(pa.array(chosen)))
            target.missing -= len(chosen)
            if not target.missing:
                written[number] = self._written(number, target.blocks)
                target.blocks = []

        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(add, np.flatnonzero(np.diff(cuts)).tolist()))

    def _sorted(self, leading: Sequence[int]) -> Int64s:
        """The order of the entries by partition; within one, they keep the order of the list."""
        ids = [part.field_id for part in self._type.fields]
        positions = [ids.index(field_id) for field_id in leading if field_id in ids]
        positions += [at for at in range(len(ids)) if at not in positions]
        if not positions:
            return np.arange(len(self._rows))
        rows = pa.table(dict(zip(map(str, range(len(ids))), self._partition, strict=True)))
        keys = [(str(at), "ascending") for at in positions]
        order: Int64s = pc.sort_indices(rows, sort_keys=keys).to_numpy().astype(np.int64)
        return order

    def _split(self) -> Int64s:
        """Where the manifests begin and end in the order of the entries."""
        total = len(self._order)
        target = MANIFEST_TARGET_SIZE_BYTES.of(self._base.metadata.properties)
        parts = min(total, max(1, ceil(total * self._entry_size() / target)))
        return np.linspace(0, total, parts + 1).astype(np.int64)

    def _entry_size(self) -> float:
        """The mean size of an entry in bytes, compressed, in a sample of all manifests."""
        chosen = np.linspace(0, len(self._sources) - 1, _SAMPLED_MANIFESTS).astype(np.int64)
        sample = pa.concat_arrays(
            [self._sample(self._sources[number]) for number in np.unique(chosen).tolist()]
        )
        return sum(len(stored) for _, stored in self._form.blocks(sample)) / len(sample)

    def _sample(self, source: _Source) -> pa.LargeBinaryArray:
        if source.encoded:
            return source.encoded[0][:_SAMPLED_ENTRIES]
        (columns,) = read_together(self._base, source.manifests[:1], None)
        sampled = np.arange(min(len(columns), _SAMPLED_ENTRIES))
        return _encoded(self._form, columns.take(sampled))[0]

    def _all_encoded(self) -> Iterator[pa.LargeBinaryArray]:
        """Yields the entries of all sources in parts, and keeps no reference to them."""

        def encoded(source: _Source) -> list[pa.LargeBinaryArray]:
            if source.encoded:
                return source.encoded
            read = read_together(self._base, source.manifests, None)
            return _encoded(self._form, EntryColumns.concat(read))

        for group in _groups([source.manifests for source in self._sources]):
            for parts in self._readers.map(encoded, self._sources[group]):
                while parts:
                    yield parts.pop(0)

    def _written(self, number: int, blocks: Iterable[Block]) -> ManifestFile:
        data = self._form.manifest(blocks)
        entries = self._order[self._bounds[number] : self._bounds[number + 1]]
        positions = pa.array(entries)
        written = self._work.write_manifest(self._base.metadata, data)
        return ManifestFile(
            manifest_path=written.location,
            manifest_length=written.length,
            key_metadata=written.key_metadata,
            partition_spec_id=self._manifest.partition_spec_id,
            content=self._manifest.content,
            sequence_number=UNASSIGNED,
            min_sequence_number=int(self._numbers[entries].min()),
            added_snapshot_id=self._work.snapshot_id,
            added_files_count=0,
            existing_files_count=len(entries),
            deleted_files_count=0,
            added_rows_count=0,
            existing_rows_count=int(self._rows[entries].sum()),
            deleted_rows_count=0,
            partitions=column_summaries(
                self._type, [column.take(positions) for column in self._partition]
            ),
        )
