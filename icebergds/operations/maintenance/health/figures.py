"""Measures what a full read of a branch costs, from a plan of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.operations import TableState
from icebergds.commit.retention import Expiry, ExpiryRequest, choose_expired
from icebergds.errors import MissingFileError, StorageError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.operations.maintenance.deletes.dangling_deletes import is_older
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup, delete_count
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.spec.manifest import FileContent, ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import GC_ENABLED, MANIFEST_TARGET_SIZE_BYTES


@dataclass(frozen=True, slots=True)
class DataFileHealth:
    """The data files of a branch that have rows; sizes are in bytes.

    Attributes:
        rows: before deletes.
        target_size: the size of new files, as `rewrite_data_files` chooses it.
        small, large: how many are below 75 % and above 180 % of it.
        to_rewrite, to_rewrite_bytes: the files that `rewrite_data_files()` would replace.
        other_specs: ids of the partition specs in use, without the current one.
        in_other_specs: how many files have these.
        unsorted: how many were not written in the table's sort order; None if it has none.
        unsorted_bytes: their size.
    """

    count: int = 0
    rows: int = 0
    size_in_bytes: int = 0
    target_size: int = 0
    small: int = 0
    large: int = 0
    to_rewrite: int = 0
    to_rewrite_bytes: int = 0
    other_specs: tuple[int, ...] = ()
    in_other_specs: int = 0
    unsorted: int | None = None
    unsorted_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteHealth:
    """The delete files of a branch.

    Attributes:
        position_delete_files: without deletion vectors.
        size_in_bytes: the size of all of them.
        dangling: how many apply to no data file, or were written before all data files that they
            may apply to.
        mean_per_data_file, most_per_data_file: how many apply to a data file.
        deleted_rows: rows that are deleted by position; position delete files may count some twice.
        deleted_share: their share of all rows, from 0 to 1.
        data_files_with_keys: data files that equality deletes may apply to.
        equality_keys: keys in the equality delete files that may apply.
        overhead_bytes: about how many bytes a full read reads for nothing: rows that are deleted by
            position, and the delete files that apply.
    """

    position_delete_files: int = 0
    deletion_vectors: int = 0
    equality_delete_files: int = 0
    size_in_bytes: int = 0
    dangling: int = 0
    mean_per_data_file: float = 0.0
    most_per_data_file: int = 0
    deleted_rows: int = 0
    deleted_share: float = 0.0
    data_files_with_keys: int = 0
    equality_keys: int = 0
    overhead_bytes: int = 0

    @property
    def count(self) -> int:
        """The number of delete files and deletion vectors."""
        return self.position_delete_files + self.deletion_vectors + self.equality_delete_files


@dataclass(frozen=True, slots=True)
class ManifestHealth:
    """The manifests of a branch; sizes are in bytes.

    Attributes:
        of_deletes: how many of them list delete files.
        target_size: `commit.manifest.target-size-bytes`.
    """

    count: int = 0
    of_deletes: int = 0
    size_in_bytes: int = 0
    target_size: int = 0

    @property
    def mean_size(self) -> float:
        """The mean size of a manifest; 0 if there is none."""
        return self.size_in_bytes / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class MetadataHealth:
    """The snapshots of the table, of all branches, and the metadata file that lists them.

    Attributes:
        oldest_age_ms: the age of the oldest snapshot, in milliseconds; None if there is none.
        expirable_snapshots: how many `expire_snapshots()` would remove.
        expirable_refs: how many branches and tags it would remove; none if `gc.enabled` is false.
        metadata_bytes: the size of the metadata file; None if the storage does not report it.
    """

    snapshots: int = 0
    oldest_age_ms: int | None = None
    expirable_snapshots: int = 0
    expirable_refs: int = 0
    metadata_bytes: int | None = None


def measure_files(
    files: PackedFiles,
    groups: Sequence[FileGroup],
    options: RewriteOptions,
    metadata: TableMetadata,
) -> DataFileHealth:
    """Measures data files.

    Args:
        groups: the files that are worth a rewrite.
    """
    entries, order = files.entries, metadata.sort_order()
    sizes, specs = entries.file_size_in_bytes, entries.spec_ids
    in_others = specs != metadata.default_spec_id
    orders = np.array([kind.sort_order_id == order.order_id for kind in entries.kinds], np.bool_)
    unsorted = ~orders[entries.kind_numbers]
    return DataFileHealth(
        count=len(files),
        rows=_row_count(files),
        size_in_bytes=files.nbytes,
        target_size=options.target_file_size,
        small=int((sizes < options.min_file_size).sum()),
        large=int((sizes > options.max_file_size).sum()),
        to_rewrite=sum(len(group.files) for group in groups),
        to_rewrite_bytes=sum(group.nbytes for group in groups),
        other_specs=tuple(np.unique(specs[in_others]).tolist()),
        in_other_specs=int(in_others.sum()),
        unsorted=int(unsorted.sum()) if order.fields else None,
        unsorted_bytes=int(sizes[unsorted].sum()) if order.fields else None,
    )


def measure_deletes(
    files: PackedFiles,
    live: Sequence[ManifestEntry],
    dangling: int,
    suspected: Mapping[FileKey, ManifestEntry],
) -> DeleteHealth:
    """Measures delete files.

    Args:
        files: the data files, with the deletes that apply to them.
        live: all delete files.
        dangling: how many of them apply to no data file.
        suspected: the delete files that hardly do (`suspected_deletes`), without the dangling ones.
    """
    positions, keys = position_deletes(files), equality_deletes(files)
    kinds = [_kind(entry) for entry in live]
    per_file = files.by_deletes(delete_count)
    rows = _row_count(files)
    deleted = _rows(entry for key, entry in positions.items() if key not in suspected)
    return DeleteHealth(
        position_delete_files=kinds.count("positions"),
        deletion_vectors=kinds.count("vector"),
        equality_delete_files=kinds.count("keys"),
        size_in_bytes=nbytes(live),
        dangling=dangling + len(suspected),
        mean_per_data_file=int(per_file.sum()) / len(files) if files else 0.0,
        most_per_data_file=int(per_file.max(initial=0)),
        deleted_rows=deleted,
        deleted_share=min(deleted / rows, 1.0) if rows else 0.0,
        data_files_with_keys=len(with_equality_deletes(files)),
        equality_keys=_rows(keys.values()),
        overhead_bytes=_deleted_bytes(files, suspected)
        + nbytes(positions.values())
        + nbytes(keys.values()),
    )


def measure_manifests(manifests: Sequence[ManifestFile], metadata: TableMetadata) -> ManifestHealth:
    """Measures the manifests of a snapshot."""
    return ManifestHealth(
        count=len(manifests),
        of_deletes=sum(m.content is ManifestContent.DELETES for m in manifests),
        size_in_bytes=sum(m.manifest_length for m in manifests),
        target_size=MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties),
    )


def expirable(state: TableState, request: ExpiryRequest) -> Expiry:
    """What `expire_snapshots()` would remove: nothing if `gc.enabled` is false.

    Args:
        request: what may expire, and the current time.

    Raises:
        InvalidOptionError: a property `history.expire.*` or `gc.enabled` is malformed.
    """
    if not GC_ENABLED.of(state.metadata.properties):
        return Expiry((), ())
    return choose_expired(request, state.metadata, state.name)


def measure_metadata(state: TableState, expiry: Expiry, now_ms: int) -> MetadataHealth:
    """Measures the snapshots and the metadata file of a table.

    Args:
        expiry: what may expire.
        now_ms: the current time.
    """
    times = [snapshot.timestamp_ms for snapshot in state.metadata.snapshots]
    return MetadataHealth(
        snapshots=len(times),
        oldest_age_ms=max(now_ms - min(times), 0) if times else None,
        expirable_snapshots=len(expiry.snapshot_ids),
        expirable_refs=len(expiry.refs),
        metadata_bytes=_metadata_size(state),
    )


def with_position_deletes(files: PackedFiles, least: int = 1) -> PackedFiles:
    """The data files to which at least so many position delete files or vectors apply."""
    return files.filter(files.by_deletes(lambda found: len(found.position_deletes)) >= least)


def with_equality_deletes(files: PackedFiles) -> PackedFiles:
    """The data files to which equality deletes may apply."""
    return files.filter(files.by_deletes(lambda found: len(found.equality_deletes)) > 0)


def position_deletes(files: PackedFiles) -> dict[FileKey, ManifestEntry]:
    """The position delete files and deletion vectors that apply to some data files."""
    return _distinct(deletes.position_deletes for deletes in files.applied())


def equality_deletes(files: PackedFiles) -> dict[FileKey, ManifestEntry]:
    """The equality delete files that may apply to some data files."""
    return _distinct(deletes.equality_deletes for deletes in files.applied())


def suspected_deletes(files: PackedFiles) -> dict[FileKey, ManifestEntry]:
    """Position deletes that, by bounds alone, may apply to data files, all of which are newer."""
    pairs = np.unique(np.stack([files.delete_numbers, files.entries.file_sequence_number]), axis=1)
    found, applied = dict[FileKey, ManifestEntry](), set[FileKey]()
    for number, file_sequence_number in pairs.T.tolist():
        for delete in files.deletes[number].position_deletes:
            file = delete.data_file
            if file.is_deletion_vector or only_data_path(file) is not None:
                continue
            if is_older(delete, file_sequence_number):
                found[file_key(file)] = delete
            else:
                applied.add(file_key(file))
    return {key: delete for key, delete in found.items() if key not in applied}


def nbytes(deletes: Iterable[ManifestEntry]) -> int:
    """How many bytes of delete files are read; of deletion vectors, only their part of the file."""
    return sum(entry.data_file.stored_size for entry in deletes)


def _distinct(deletes: Iterable[tuple[ManifestEntry, ...]]) -> dict[FileKey, ManifestEntry]:
    # Many files share one tuple of deletes.
    groups = {id(group): group for group in deletes}
    return {file_key(entry.data_file): entry for group in groups.values() for entry in group}


def _kind(entry: ManifestEntry) -> str:
    if entry.data_file.content is FileContent.EQUALITY_DELETES:
        return "keys"
    return "vector" if entry.data_file.is_deletion_vector else "positions"


def _rows(entries: Iterable[ManifestEntry]) -> int:
    return sum(max(entry.data_file.record_count, 0) for entry in entries)


def _row_count(files: PackedFiles) -> int:
    """The rows of data files, before deletes; a negative count is unknown."""
    return int(np.maximum(files.entries.record_count, 0).sum())


def _deleted_bytes(files: PackedFiles, suspected: Mapping[FileKey, ManifestEntry]) -> int:
    """About how many bytes of data files are of rows that are deleted by position."""
    exact, rows, size = 0.0, _row_count(files), files.nbytes
    shared = dict[FileKey, int]()
    for file in with_position_deletes(files):
        data_file = file.entry.data_file
        count = max(data_file.record_count, 0)
        own = 0
        for entry in file.deletes.position_deletes:
            deleted = max(entry.data_file.record_count, 0)
            if only_data_path(entry.data_file) is not None:
                own += deleted
            elif (key := file_key(entry.data_file)) not in suspected:
                shared[key] = deleted
        if own and count:
            exact += data_file.file_size_in_bytes * min(own / count, 1.0)
    # It is not known which files the rows of other delete files are in.
    mean = size / rows if rows else 0.0
    return min(round(exact + sum(shared.values()) * mean), size)


def _metadata_size(state: TableState) -> int | None:
    try:
        return state.io.size(state.metadata_location) if state.metadata_location else None
    except (MissingFileError, StorageError):
        # A catalog that serves the metadata need not let everyone see its file.
        return None
