"""Proves which delete files apply to no live data file (spec: Scan Planning).

Most are decided in columns, by paths, partitions and sequence numbers. For the others, planning's
own index says whether their bounds meet those of a data file. Data files that are said to have no
rows count too: a wrong count must not cost deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.selection import Mask, read_columns
from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.formats.manifests.reader import MANIFEST_READERS
from icebergds.operations.maintenance.deletes.delete_columns import (
    GLOBAL,
    STATS_IDS,
    DataNumbers,
    DeleteColumns,
    Scopes,
    delete_columns,
)
from icebergds.scan.plan.delete_index import DeleteIndex, key_types
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestFile

_FILES_AT_A_TIME = 512


def dangling_deletes(base: CommitBase) -> dict[str, Mask]:
    """Marks the delete files that planning attaches to no data file.

    Returns:
        A mask of the live entries of each delete manifest, by the manifest's path.

    Raises:
        MissingFileError, CorruptFileError: a manifest cannot be read.
        InvalidMetadataError: an equality delete file has no key columns.
    """
    manifests = _live(base, ManifestContent.DELETES)
    if not manifests:
        return {}
    specs = base.metadata.partition_specs
    global_specs = frozenset(spec.spec_id for spec in specs if spec.is_unpartitioned)
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        scopes = Scopes()
        found = _read(base, manifests, STATS_IDS, pool)
        deletes = delete_columns(found, scopes, global_specs)
        data = DataNumbers(deletes, scopes)
        for columns in _read(base, _live(base, ManifestContent.DATA), (), pool):
            data.add(columns, scopes.of(columns))
        applies, may_apply = data.decide()
        if may_apply.any():
            masks = np.split(may_apply, deletes.bounds[1:-1])
            undecided = _Undecided(base, deletes, may_apply, _entries(base, manifests, masks))
            _attach_by_bounds(base, undecided, scopes, data.has_vector(), pool)
            applies |= undecided.attached
    masks = np.split(~applies, deletes.bounds[1:-1])
    return {m.manifest_path: mask for m, mask in zip(manifests, masks, strict=True)}


def _live(base: CommitBase, content: ManifestContent) -> list[ManifestFile]:
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
    for start in range(0, len(manifests), MANIFEST_READERS):
        some = manifests[start : start + MANIFEST_READERS]
        yield from pool.map(lambda manifest: read_columns(base, manifest, stats_ids), some)


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
        attached: those of all deletes that were found to apply.
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
        self.attached = np.zeros(len(deletes), np.bool_)
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
        """Marks the data files that an undecided delete may apply to, but for its bounds."""
        numbers = columns.data_sequence_number
        # Partitions without undecided deletes share the last limit, which is that of none.
        scope = np.minimum(scopes, len(self._equality_limits) - 1)
        mask: Mask = numbers < self._equality_limits[GLOBAL]
        mask |= numbers < self._equality_limits[scope]
        mask |= (numbers <= self._position_limits[scope]) & ~has_vector
        return mask

    def attach(self, entries: Iterable[ManifestEntry], has_vector: Mask) -> None:
        """Looks for deletes of data files."""
        for entry, is_replaced in zip(entries, has_vector.tolist(), strict=True):
            applied = self._index.deletes_for(entry)
            positions = () if is_replaced else applied.position_deletes
            for found in (positions, applied.equality_deletes):
                for delete in found:
                    at, _ = self._left.pop(id(delete), (None, None))
                    if at is not None:
                        self.attached[at] = True
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
    """Looks in the data files, in the order of `has_vector`, until all deletes are decided."""
    start = 0
    manifests = _live(base, ManifestContent.DATA)
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
