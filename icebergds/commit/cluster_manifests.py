"""Rewrites manifests into few that each hold files of neighbouring partitions.

Entries are copied as columns and encoded records, without an object for each. If there are many,
their manifests are read twice: first for the order of the entries, then for the entries themselves,
of which only a part is held uncompressed at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.column_manifests import manifest_form
from icebergds.commit.new_manifests import UNASSIGNED, target_manifest_size
from icebergds.commit.partition_summaries import column_summaries
from icebergds.commit.selection import read_columns
from icebergds.commit.workspace import Workspace
from icebergds.formats.avro.container_writer import Block
from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.formats.manifests.reader import MANIFEST_READERS
from icebergds.spec.manifest import ManifestEntryStatus, ManifestFile
from icebergds.spec.types import StructType

_KEPT_BYTES = 64 << 20
"""Manifests of up to this size together are read once, and their entries held uncompressed."""
_BATCH_BYTES = 64 << 20
_SAMPLED_MANIFESTS = 8
_SAMPLED_ENTRIES = 200


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
        manifests: of one partition spec and one kind of content.
        leading: ids of the partition fields to cluster by first; the spec's others follow.

    Raises:
        MissingFileError, CorruptFileError: a manifest cannot be read.
    """
    keep = sum(manifest.manifest_length for manifest in manifests) <= _KEPT_BYTES
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        found = pool.map(lambda manifest: _source(base, manifest, keep), manifests)
        sources = [source for source in found if len(source)]
        groups: dict[StructType, list[_Source]] = {}
        for source in sources:
            # The type of a dropped column's values may be known to some manifests only.
            groups.setdefault(source.partition_type, []).append(source)
        written = [
            manifest
            for group in groups.values()
            for manifest in _Clustering(work, base, group, leading, pool).run()
        ]
    return ClusteredManifests(tuple(written), sum(map(len, sources)))


@dataclass(frozen=True, slots=True)
class _Source:
    """The live entries of a manifest.

    Attributes:
        encoded: None to read the manifest again.
    """

    manifest: ManifestFile
    partition_type: StructType
    partition: tuple[pa.Array, ...]
    data_sequence_number: Int64s
    record_count: Int64s
    encoded: pa.LargeBinaryArray | None

    def __len__(self) -> int:
        return len(self.record_count)


def _source(base: CommitBase, manifest: ManifestFile, keep: bool) -> _Source:
    columns = _live_entries(base, manifest) if keep else read_columns(base, manifest, ())
    return _Source(
        manifest,
        columns.partition_type,
        columns.partition,
        columns.data_sequence_number,
        columns.record_count,
        manifest_form(base, manifest, columns.partition_type).encode(columns) if keep else None,
    )


def _live_entries(base: CommitBase, manifest: ManifestFile) -> EntryColumns:
    """The live entries with all statistics, as files that were there before."""
    columns = read_columns(base, manifest, None)
    return replace(columns, status=np.full(len(columns), ManifestEntryStatus.EXISTING.value))


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
        pool: ThreadPoolExecutor,
    ) -> None:
        self._work, self._base, self._sources, self._pool = work, base, sources, pool
        self._manifest = sources[0].manifest
        self._type = sources[0].partition_type
        self._form = manifest_form(base, self._manifest, self._type)
        self._partition = [
            pa.concat_arrays([source.partition[at] for source in sources])
            for at in range(len(self._type.fields))
        ]
        self._order = self._sorted(leading)
        self._bounds = self._split()

    def run(self) -> list[ManifestFile]:
        """Writes the manifests, in the order of their entries."""
        total = len(self._order)
        ranks = np.empty(total, np.int64)
        ranks[self._order] = np.arange(total)
        targets = [_Target(int(count)) for count in np.diff(self._bounds)]
        written: dict[int, ManifestFile] = {}
        for batch_ranks, encoded in self._batches(ranks):
            order = np.argsort(batch_ranks)
            cuts = np.searchsorted(batch_ranks[order], self._bounds)

            def add(
                number: int,
                order: Int64s = order,
                cuts: Int64s = cuts,
                encoded: pa.LargeBinaryArray = encoded,
            ) -> None:
                target, chosen = targets[number], order[cuts[number] : cuts[number + 1]]
                target.blocks += self._form.blocks(encoded.take(pa.array(chosen)))
                target.missing -= len(chosen)
                if not target.missing:
                    written[number] = self._written(number, target.blocks)
                    target.blocks = []

            list(self._pool.map(add, np.flatnonzero(np.diff(cuts)).tolist()))
        return [written[number] for number in range(len(targets))]

    def _sorted(self, leading: Sequence[int]) -> Int64s:
        """The entries' order by partition; those of one partition stay in the order of the list."""
        ids = [part.field_id for part in self._type.fields]
        positions = [ids.index(field_id) for field_id in leading if field_id in ids]
        positions += [at for at in range(len(ids)) if at not in positions]
        if not positions:
            return np.arange(sum(map(len, self._sources)))
        rows = pa.table(dict(zip(map(str, range(len(ids))), self._partition, strict=True)))
        keys = [(str(at), "ascending") for at in positions]
        order: Int64s = pc.sort_indices(rows, sort_keys=keys).to_numpy().astype(np.int64)
        return order

    def _split(self) -> Int64s:
        """Where the manifests begin and end in the order of the entries."""
        total = len(self._order)
        target = target_manifest_size(self._base.metadata.properties)
        parts = min(total, max(1, ceil(total * self._entry_size() / target)))
        return np.linspace(0, total, parts + 1).astype(np.int64)

    def _entry_size(self) -> float:
        """The mean size of an entry in bytes, compressed, in a sample of all manifests."""
        chosen = np.linspace(0, len(self._sources) - 1, _SAMPLED_MANIFESTS).astype(np.int64)
        samples = [
            self._encoded(self._sources[number])[:_SAMPLED_ENTRIES]
            for number in np.unique(chosen).tolist()
        ]
        sample = pa.concat_arrays(samples)
        return sum(len(stored) for _, stored in self._form.blocks(sample)) / len(sample)

    def _batches(self, ranks: Int64s) -> Iterator[tuple[Int64s, pa.LargeBinaryArray]]:
        """Parts of the entries that take little memory, and the entries' ranks."""
        ends = np.cumsum([len(source) for source in self._sources])
        batch: list[pa.LargeBinaryArray] = []
        start = size = 0
        for end, encoded in zip(ends.tolist(), self._all_encoded(), strict=True):
            batch.append(encoded)
            size += encoded.nbytes
            if size >= _BATCH_BYTES or end == ends[-1]:
                yield ranks[start:end], pa.concat_arrays(batch)
                batch, start, size = [], end, 0

    def _all_encoded(self) -> Iterable[pa.LargeBinaryArray]:
        """The entries of each source, read a few sources ahead."""
        for start in range(0, len(self._sources), MANIFEST_READERS):
            yield from self._pool.map(
                self._encoded, self._sources[start : start + MANIFEST_READERS]
            )

    def _encoded(self, source: _Source) -> pa.LargeBinaryArray:
        if source.encoded is not None:
            return source.encoded
        return self._form.encode(_live_entries(self._base, source.manifest))

    def _written(self, number: int, blocks: Iterable[Block]) -> ManifestFile:
        data = self._form.manifest(blocks)
        entries = self._order[self._bounds[number] : self._bounds[number + 1]]
        positions = pa.array(entries)
        return ManifestFile(
            manifest_path=self._work.write_manifest(self._base.metadata, data),
            manifest_length=len(data),
            partition_spec_id=self._manifest.partition_spec_id,
            content=self._manifest.content,
            sequence_number=UNASSIGNED,
            min_sequence_number=int(self._numbers("data_sequence_number")[entries].min()),
            added_snapshot_id=self._work.snapshot_id,
            added_files_count=0,
            existing_files_count=len(entries),
            deleted_files_count=0,
            added_rows_count=0,
            existing_rows_count=int(self._numbers("record_count")[entries].sum()),
            deleted_rows_count=0,
            partitions=column_summaries(
                self._type, [column.take(positions) for column in self._partition]
            ),
        )

    def _numbers(self, name: str) -> Int64s:
        return np.concatenate([getattr(source, name) for source in self._sources])
