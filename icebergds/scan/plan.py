"""Plans a scan on the driver: from a snapshot to the shares of tasks (spec: Scan Planning).

Manifests are skipped by their partition summaries, files by their partition and their metrics, both
with the partition spec that their manifest was written with. What is left is joined with the
deletes that apply to it, cut into splits and packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import FALSE, TRUE, Expr
from icebergds.expr.project import project
from icebergds.expr.summary import manifest_might_match
from icebergds.formats.manifest_columns import read_manifest_columns
from icebergds.formats.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.scan.delete_index import AppliedDeletes, DeleteIndex, Scope, key_types, scope_of
from icebergds.scan.prune import matching_entries
from icebergds.scan.read_plan import key_schema
from icebergds.scan.splits import SplitOptions, pack, split_file
from icebergds.scan.tasks import (
    DeleteFileRef,
    EqualityDeleteGroup,
    FileScanTask,
    ScanPartition,
    delete_file_ref,
)
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

# Manifests are fetched side by side: stores answer slowly, and decoding lets go of the lock.
_MANIFEST_READERS = 8


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file that may hold rows of the scan, and the deletes that apply to it."""

    entry: ManifestEntry
    deletes: AppliedDeletes


def plan_scan(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr,
    splits: SplitOptions,
) -> list[ScanPartition]:
    """The shares of a scan's tasks; none where no file can hold a row of it.

    Args:
        snapshot: what to read; None reads nothing.
        schema: the schema that is read.
        row_filter: bound to `schema`.

    Raises:
        MissingFileError: a manifest list or manifest is not there.
        CorruptFileError: a manifest list or manifest is damaged.
        InvalidMetadataError: two deletion vectors for one data file, or an unknown spec.
        UnsupportedFeatureError: files are encrypted.
    """
    files = plan_files(io, metadata, snapshot, schema, row_filter)
    return pack_files(files, metadata, schema, splits)


def pack_files(
    files: Iterable[PlannedFile], metadata: TableMetadata, schema: Schema, splits: SplitOptions
) -> list[ScanPartition]:
    """The shares of the tasks that read these files; arguments and errors as for `plan_scan`."""
    groups = pack(_splits(files, splits.split_size), _Weights(splits).of, splits)
    schemas = [schema, *sorted(metadata.schemas, key=lambda s: s.schema_id, reverse=True)]
    return [_share(group, schemas) for group in groups]


def plan_files(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr = TRUE,
    *,
    stats_of: frozenset[int] = frozenset(),
) -> list[PlannedFile]:
    """The data files of a scan with their deletes; arguments and errors as for `plan_scan`.

    Args:
        stats_of: ids of columns whose statistics the files must hold, beside those of the filter.
    """
    if snapshot is None or row_filter == FALSE:
        return []
    if snapshot.key_id is not None:
        raise UnsupportedFeatureError(
            f"snapshot {snapshot.snapshot_id}: its manifest list is encrypted; encrypted tables "
            "are not read"
        )
    filters = _PartitionFilters(metadata.specs_by_id, schema, row_filter)
    manifests = [m for m in read_snapshot_manifests(io, snapshot) if filters.might_match(m)]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    with ThreadPoolExecutor(_MANIFEST_READERS) as pool:

        def read_deletes(manifest: ManifestFile) -> list[ManifestEntry]:
            columns = read_manifest_columns(
                io, manifest, metadata.specs_by_id, schema, history=metadata.schema_history
            )
            return matching_entries(columns, filters.of(manifest), TRUE)

        delete_entries = [e for found in pool.map(read_deletes, deletes) for e in found]
        equality_ids = frozenset(i for e in delete_entries for i in e.data_file.equality_ids)
        index = DeleteIndex(
            delete_entries,
            metadata.specs_by_id,
            key_types(sorted(metadata.schemas, key=lambda s: s.schema_id), equality_ids),
        )
        stats_ids = field_ids(row_filter) | equality_ids | stats_of

        def read_data(manifest: ManifestFile) -> list[PlannedFile]:
            columns = read_manifest_columns(
                io,
                manifest,
                metadata.specs_by_id,
                schema,
                history=metadata.schema_history,
                stats_ids=stats_ids,
            )
            # Files without rows may not exist: some writers list them and never create them.
            columns = columns.filter(columns.record_count != 0)
            entries = matching_entries(columns, filters.of(manifest), row_filter)
            return [PlannedFile(entry, index.deletes_for(entry)) for entry in entries]

        return [file for found in pool.map(read_data, data) for file in found]


class _PartitionFilters:
    """The filter as each spec's partitions see it; projected once a spec."""

    def __init__(self, specs: Mapping[int, PartitionSpec], schema: Schema, row_filter: Expr):
        self._specs = specs
        self._schema = schema
        self._filters = {
            spec_id: project(row_filter, spec, schema) for spec_id, spec in specs.items()
        }

    def spec(self, manifest: ManifestFile) -> PartitionSpec:
        spec = self._specs.get(manifest.partition_spec_id)
        if spec is None:
            raise InvalidMetadataError(
                f"manifest {manifest.manifest_path} was written with partition spec "
                f"{manifest.partition_spec_id}, which the table's metadata lacks"
            )
        return spec

    def of(self, manifest: ManifestFile) -> Expr:
        return self._filters[self.spec(manifest).spec_id]

    def might_match(self, manifest: ManifestFile) -> bool:
        if manifest.added_files_count == 0 and manifest.existing_files_count == 0:
            return False
        if manifest.key_metadata is not None:
            raise UnsupportedFeatureError(
                f"manifest {manifest.manifest_path} is encrypted; encrypted tables are not read"
            )
        types = partition_type(self.spec(manifest), self._schema)
        return manifest_might_match(self.of(manifest), types, manifest.partitions)


@dataclass(frozen=True, slots=True)
class _Split:
    file: PlannedFile
    start: int
    length: int


def _splits(files: Iterable[PlannedFile], split_size: int) -> Iterator[_Split]:
    for file in files:
        for start, length in split_file(file.entry.data_file, split_size):
            yield _Split(file, start, length)


class _Weights:
    """Bytes that splits make a task read, deletes included."""

    def __init__(self, options: SplitOptions) -> None:
        self._open_cost = options.file_open_cost
        self._bytes: dict[int, int] = {}

    def of(self, split: _Split) -> int:
        """The weight of a split, at least what opening its files costs."""
        positions, keys = split.file.deletes.position_deletes, split.file.deletes.equality_deletes
        to_read = split.length + self._bytes_of(positions) + self._bytes_of(keys)
        return max(to_read, (1 + len(positions) + len(keys)) * self._open_cost)

    def _bytes_of(self, deletes: tuple[ManifestEntry, ...]) -> int:
        # Many files share one tuple of deletes.
        known = self._bytes.get(id(deletes))
        if known is None:
            known = sum(
                entry.data_file.content_size_in_bytes or entry.data_file.file_size_in_bytes
                for entry in deletes
            )
            self._bytes[id(deletes)] = known
        return known


class _DeleteTable:
    """The deletes of a task's share: every file named once, equality deletes by keys and scope."""

    def __init__(self) -> None:
        self.positions: dict[DeleteFileRef, int] = {}
        self._keys: dict[tuple[tuple[int, ...], Scope], tuple[int, dict[DeleteFileRef, None]]] = {}
        self._known: dict[int, tuple[int, ...]] = {}

    def add_positions(self, deletes: tuple[ManifestEntry, ...]) -> tuple[int, ...]:
        """Where the share has these position deletes."""
        return self._once(deletes, self._position_index)

    def add_keys(self, deletes: tuple[ManifestEntry, ...]) -> tuple[int, ...]:
        """Where the share has the groups of these equality deletes."""
        return self._once(deletes, self._group_index)

    def groups(self) -> tuple[EqualityDeleteGroup, ...]:
        return tuple(
            EqualityDeleteGroup(ids, tuple(sorted(refs, key=lambda ref: ref.file_path)))
            for (ids, _), (_, refs) in self._keys.items()
        )

    def _once(
        self, deletes: tuple[ManifestEntry, ...], index_of: Callable[[ManifestEntry], int]
    ) -> tuple[int, ...]:
        # Many files share one tuple of deletes, which is looked at once.
        known = self._known.get(id(deletes))
        if known is None:
            for entry in deletes:
                _refuse_encrypted(entry.data_file)
            known = tuple(dict.fromkeys(map(index_of, deletes)))
            self._known[id(deletes)] = known
        return known

    def _position_index(self, entry: ManifestEntry) -> int:
        ref = delete_file_ref(entry.data_file, entry.data_sequence_number)
        return self.positions.setdefault(ref, len(self.positions))

    def _group_index(self, entry: ManifestEntry) -> int:
        data_file = entry.data_file
        # What files must share for their keys to be one set.
        group = (tuple(sorted(data_file.equality_ids)), scope_of(data_file))
        index, refs = self._keys.setdefault(group, (len(self._keys), {}))
        refs[delete_file_ref(data_file, entry.data_sequence_number)] = None
        return index


def _share(group: Sequence[_Split], schemas: Sequence[Schema]) -> ScanPartition:
    table = _DeleteTable()
    tasks = []
    for split in group:
        data_file = split.file.entry.data_file
        _refuse_encrypted(data_file)
        tasks.append(
            FileScanTask(
                file_path=data_file.file_path,
                file_format=data_file.file_format,
                file_size_in_bytes=data_file.file_size_in_bytes,
                start=split.start,
                length=split.length,
                spec_id=data_file.spec_id,
                partition=data_file.partition,
                data_sequence_number=split.file.entry.data_sequence_number,
                first_row_id=data_file.first_row_id,
                position_deletes=table.add_positions(split.file.deletes.position_deletes),
                equality_deletes=table.add_keys(split.file.deletes.equality_deletes),
            )
        )
    groups = table.groups()
    ids = {field_id for keyed in groups for field_id in keyed.equality_ids}
    return ScanPartition(tuple(tasks), tuple(table.positions), groups, key_schema(schemas, ids))


def _refuse_encrypted(data_file: DataFile) -> None:
    if data_file.key_metadata is not None:
        raise UnsupportedFeatureError(
            f"file {data_file.file_path} is encrypted; encrypted tables are not read"
        )
