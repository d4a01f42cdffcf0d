"""Finds the live data files whose position deletes are rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.partition_selection import partitions_of
from icebergds.commit.selection import read_columns
from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.operations.maintenance.deletes.live_files import LiveFiles, Numbers, hash_paths
from icebergds.operations.maintenance.deletes.position_delete_groups import PlannedDeletes
from icebergds.scan.plan.partition_filters import has_live_files
from icebergds.spec.manifest import ManifestContent, ManifestFile, PartitionKey, partition_key

_Found = tuple[Numbers, Hashes, Numbers]
"""For each data file: the number of its partition, the hash of its path, its sequence number."""


def find_delete_targets(
    base: CommitBase, planned: PlannedDeletes, seed: int
) -> Mapping[PartitionKey, LiveFiles]:
    """The live data files of the partitions of the groups.

    Files with a deletion vector are not among them: it holds all of their deletes, and readers
    ignore their position delete files.

    Args:
        seed: the seed of the hashes.

    Raises:
        InvalidMetadataError: a delete file names a data file of another partition, or a data file
            is newer than its deletion vector: by the specification they do not apply, but readers
            differ.
        MissingFileError, CorruptFileError: a manifest cannot be read.
    """
    targets = _Targets(base, planned, seed)
    manifests = [m for m in base.manifests_of(ManifestContent.DATA) if targets.may_be_in(m)]
    with ThreadPoolExecutor(manifest_readers(base.io, manifests)) as pool:
        return targets.by_partition(list(pool.map(targets.read, manifests)))


class _Targets:
    def __init__(self, base: CommitBase, planned: PlannedDeletes, seed: int) -> None:
        self._base = base
        self._planned = planned
        self._seed = seed
        files = [entry.data_file for group in planned.groups for entry in group.files]
        self._scope = partitions_of(base, files)
        self._codes = {key: code for code, key in enumerate(self._scope.keys)}
        self._named = pa.array(list(planned.homes), pa.string())

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """Whether a manifest must be read; all of them if delete files name single data files."""
        if not has_live_files(manifest):
            return False
        return len(self._named) > 0 or self._scope.may_select(manifest)

    def read(self, manifest: ManifestFile) -> _Found:
        columns = read_columns(self._base, manifest, ())
        codes = self._partitions(columns)
        rows = self._without_vectors(columns, np.flatnonzero(codes >= 0))
        paths = columns.file_path.take(pa.array(rows))
        return codes[rows], hash_paths(paths, self._seed), columns.data_sequence_number[rows]

    def by_partition(self, found: list[_Found]) -> dict[PartitionKey, LiveFiles]:
        empty = (np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64))
        codes, hashes, numbers = map(np.concatenate, zip(empty, *found, strict=True))
        order = codes.argsort(kind="stable")
        ends = codes[order].searchsorted(np.arange(len(self._codes)), side="right")
        parts = np.split(order, ends)
        return {
            key: LiveFiles.of(self._seed, hashes[parts[code]], numbers[parts[code]])
            for key, code in self._codes.items()
        }

    def _partitions(self, columns: EntryColumns) -> Numbers:
        """The number of each file's partition, -1 for partitions without a group."""
        spec_id, count = columns.spec_id, len(columns)
        if columns.partition:
            values = partition_tuples(columns.partition_type, columns.partition, count)
            keys = [partition_key(spec_id, value) for value in values]
        else:
            keys = [partition_key(spec_id, ())] * count
        named = pc.is_in(columns.file_path, self._named).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(named).tolist():
            path = columns.file_path[row].as_py()
            if self._planned.homes[path] != keys[row]:
                raise InvalidMetadataError(
                    f"table {self._base.name}: a position delete file of another partition names "
                    f"data file {path}; such deletes do not apply, but some readers apply them. "
                    "Rewrite the data file (or its rows) without it first"
                )
        return np.fromiter((self._codes.get(key, -1) for key in keys), np.int64, count)

    def _without_vectors(
        self, columns: EntryColumns, rows: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.intp]:
        """Keeps the files that have no deletion vector."""
        vectors = self._planned.vectors
        if not len(vectors):
            return rows
        found = pc.index_in(columns.file_path.take(pa.array(rows)), vectors)
        has_vector = found.is_valid().to_numpy(zero_copy_only=False)
        numbers = self._planned.vector_numbers.take(found.drop_null()).to_numpy()
        older = numbers < columns.data_sequence_number[rows[has_vector]]
        if older.any():
            path = columns.file_path[rows[has_vector][older][0]].as_py()
            raise InvalidMetadataError(
                f"table {self._base.name}: the deletion vector of data file {path} is older than "
                "the file, so it does not apply, and a second one is not allowed. Rewrite the data "
                "file first"
            )
        without: npt.NDArray[np.intp] = rows[~has_vector]
        return without
