"""Proves which delete files apply to no live data file (spec: Scan Planning).

Most are decided in columns, by paths, partitions and sequence numbers. For the others, planning's
own index says whether their bounds meet those of a data file. Data files that are said to have no
rows count too: a wrong count must not cost deletes.

A position delete file is suspected if all data files within its bounds are newer: a compaction may
have given them names between those of the files that it replaced. Its rows must be read to be sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.selection import Mask, read_columns
from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.formats.manifests.side_by_side import MANIFEST_READERS
from icebergds.operations.maintenance.deletes.delete_columns import (
    GLOBAL,
    STATS_IDS,
    DataNumbers,
    DeleteColumns,
    Scopes,
    delete_columns,
)
from icebergds.reporting import advancing, expect
from icebergds.scan.plan.delete_index import DeleteIndex, key_types
from icebergds.spec.manifest import FileContent, ManifestContent, ManifestEntry, ManifestFile

_FILES_AT_A_TIME = 512


@dataclass(frozen=True, slots=True)
class DanglingDeletes:
    """Masks of the live entries of each delete manifest, by the manifest's path.

    Attributes:
        dangling: the delete files that planning attaches to no data file.
        suspected: the position delete files that it attaches only to data files that were added
            later.
    """

    dangling: Mapping[str, Mask]
    suspected: Mapping[str, Mask]


def find_dangling_deletes(base: CommitBase) -> DanglingDeletes:
    """Finds delete files that apply to nothing, from metadata alone.

    Raises:
        MissingFileError, CorruptFileError: a manifest cannot be read.
        InvalidMetadataError: an equality delete file has no key columns.
    """
    manifests = live_manifests(base, ManifestContent.DELETES)
    if not manifests:
        return DanglingDeletes({}, {})
    specs = base.metadata.partition_specs
    global_specs = frozenset(spec.spec_id for spec in specs if spec.is_unpartitioned)
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        scopes = Scopes()
        found = _read(base, manifests, STATS_IDS, pool)
        deletes = delete_columns(found, scopes, global_specs)
        data = DataNumbers(deletes, scopes)
        for columns in _read(base, live_manifests(base, ManifestContent.DATA), (), pool):
            data.add(columns, scopes.of(columns))
        applies, may_apply = data.decide()
        suspected = np.zeros(len(deletes), np.bool_)
        if may_apply.any():
            masks = np.split(may_apply, deletes.bounds[1:-1])
            undecided = _Undecided(base, deletes, may_apply, _entries(base, manifests, masks))
            _attach_by_bounds(base, undecided, scopes, data.has_vector(), pool)
            applies |= undecided.attached
            suspected = undecided.suspected & ~applies
    paths = [manifest.manifest_path for manifest in manifests]
    dangling, left = (
        dict(zip(paths, np.split(mask, deletes.bounds[1:-1]), strict=True))
        for mask in (~applies & ~suspected, suspected)
    )
    return DanglingDeletes(dangling, left)


def is_older(delete: ManifestEntry, file_sequence_number: int) -> bool:
    """Whether position deletes were committed before a data file, so that they hardly name it.

    They still may: a file that was removed can be added again.

    Args:
        file_sequence_number: the number of the data file.
    """
    return (
        delete.data_file.content is FileContent.POSITION_DELETES
        and delete.file_sequence_number < file_sequence_number
    )


def live_manifests(base: CommitBase, content: ManifestContent) -> list[ManifestFile]:
    """The manifests of data files, or of delete files, that have live entries."""
    return [
        manifest
        for manifest in base.manifests_of(content)
        if manifest.added_files_count or manifest.existing_files_count
    ]


def _read(
    base: CommitBase,
    manifests: Sequence[ManifestFile],
    stats_ids: Iterable[int],
    pool: ThreadPoolExecutor,
) -> Iterator[EntryColumns]:
    """The live entries of each manifest, read a few manifests ahead."""
    expect(len(manifests))
    for start in range(0, len(manifests), MANIFEST_READERS):
        some = manifests[start : start + MANIFEST_READERS]
        yield from advancing(
            pool.map(lambda manifest: read_columns(base, manifest, stats_ids), some)
        )


def _entries(
    base: CommitBase, manifests: Sequence[ManifestFile], masks: Sequence[Mask]
) -> list[ManifestEntry]:
    return [
        entry
        for manifest, mask in zip(manifests, masks, strict=True)
        if mask.any()
        for entry in read_columns(base, manifest, None).filter(mask).entries()
    ]


class _Undecided:
    """Deletes of whole partitions, some of which may apply to a data file by their bounds.

    Attributes:
        attached: marks the deletes, among all, that were found to apply.
        suspected: marks the deletes, among all, whose bounds were found to contain newer data
            files.
        equality_ids: ids of all key columns.
    """

    def __init__(
        self,
        base: CommitBase,
        deletes: DeleteColumns,
        may_apply: Mask,
        entries: Sequence[ManifestEntry],
    ) -> None:
        self._base, self._deletes = base, deletes
        self.attached, self.suspected = np.zeros((2, len(deletes)), np.bool_)
        self.equality_ids = frozenset(i for e in entries for i in e.data_file.equality_ids)
        # By identity: the index returns the objects that it was given.
        self._left = {
            id(entry): (at, entry)
            for at, entry in zip(np.flatnonzero(may_apply).tolist(), entries, strict=True)
        }
        self._build()

    def __len__(self) -> int:
        return len(self._left)

    def may_apply(self, columns: EntryColumns, scopes: Int64s, has_vector: Mask) -> Mask:
        """Marks the data files that an undecided delete may apply to, bounds aside."""
        numbers = columns.data_sequence_number
        # Partitions without undecided deletes share the last limit, which is that of none.
        scope = np.minimum(scopes, len(self._equality_limits) - 1)
        mask: Mask = numbers < self._equality_limits[GLOBAL]
        mask |= numbers < self._equality_limits[scope]
        mask |= (numbers <= self._position_limits[scope]) & ~has_vector
        return mask

    def attach(self, entries: Iterable[ManifestEntry], has_vector: Mask) -> None:
        """Looks up the deletes of data files."""
        for entry, is_replaced in zip(entries, has_vector.tolist(), strict=True):
            applied = self._index.deletes_for(entry)
            positions = () if is_replaced else applied.position_deletes
            for delete in (*positions, *applied.equality_deletes):
                at, _ = self._left.get(id(delete), (None, None))
                if at is None:
                    continue
                if is_older(delete, entry.file_sequence_number):
                    self.suspected[at] = True
                else:
                    self.attached[at] = True
                    del self._left[id(delete)]
        if len(self._left) < 0.9 * self._size:
            self._build()

    def _build(self) -> None:
        """Indexes the deletes that are left."""
        self._size = len(self._left)
        metadata = self._base.metadata
        self._index = DeleteIndex(
            [entry for _, entry in self._left.values()],
            metadata.specs_by_id,
            key_types(metadata.schema_history, self.equality_ids),
        )
        deletes = self._deletes
        left = np.array([at for at, _ in self._left.values()], np.int64)
        is_equality = deletes.is_equality[left]
        shape = int(deletes.scope.max()) + 2
        self._equality_limits, self._position_limits = np.full((2, shape), -1)
        for limits, chosen in (
            (self._equality_limits, left[is_equality]),
            (self._position_limits, left[~is_equality]),
        ):
            np.maximum.at(limits, deletes.scope[chosen], deletes.number[chosen])


def _attach_by_bounds(
    base: CommitBase,
    undecided: _Undecided,
    scopes: Scopes,
    has_vector: Mask,
    pool: ThreadPoolExecutor,
) -> None:
    """Looks through the data files, in the order of `has_vector`, until all deletes are decided."""
    start = 0
    manifests = live_manifests(base, ManifestContent.DATA)
    for columns in _read(base, manifests, undecided.equality_ids, pool):
        own = has_vector[start : start + len(columns)]
        start += len(columns)
        scope = scopes.of(columns)
        left = np.arange(len(columns))
        while len(undecided):
            left = left[undecided.may_apply(columns, scope, own)[left]]
            some, left = left[:_FILES_AT_A_TIME], left[_FILES_AT_A_TIME:]
            if not len(some):
                break
            undecided.attach(columns.take(some).entries(), own[some])
        if not len(undecided):
            return
