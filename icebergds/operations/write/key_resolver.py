"""Finds the rows with some keys in one snapshot of a table after the other (`KeyResolver`).

Each attempt to commit a change by key looks up the rows of the snapshot that it builds on, and
reads only the data files that no attempt before it has read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import CommitBase, commit_base
from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.selection import Mask
from icebergds.display import counted, size_text
from icebergds.errors import ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.deletes.key_hash import Hashes, distinct_hashes, new_seed
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.operations.runner import Runner, ThreadRunner, weight_of_files
from icebergds.operations.write.cleanup import delete_files, delete_files_of_write
from icebergds.operations.write.conversion_tasks import ConversionPlan, write_converted
from icebergds.operations.write.key_search import (
    bytes_of_keys,
    bytes_to_read,
    filter_of_keys,
    have_any_length,
)
from icebergds.operations.write.table_settings import delete_settings
from icebergds.reporting import stage
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import NewDeletes
from icebergds.scan.plan.packed_files import PackedFiles, plan_packed_files
from icebergds.scan.plan.partition_filters import PartitionFilters
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read.deleted_keys import KeyHashing, read_deleted_by_key
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import UPSERT_RESOLVE_LIMIT_BYTES
from icebergds.write.changes.keyed_delta import ReplacedRows
from icebergds.write.locations import LocationProvider

_LIMIT = 256_000_000
_LIMIT_WITHOUT_SESSION = 16_000_000
# So much is read in this process before a job of Spark has begun.
_BYTES_IN_PROCESS = 16_000_000
_NO_KEYS = np.empty(0, np.uint64)
_NO_IDS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The rows of a snapshot that have the keys.

    Attributes:
        deletes: position deletes or deletion vectors of these rows.
        replaced: the deletes whose positions are in these, too.
        rows: how many rows they delete.
        keys: hashes of the keys that some rows have; None if they are not known.
    """

    deletes: tuple[DataFile, ...]
    replaced: tuple[DataFile, ...]
    rows: int
    keys: Hashes | None


class KeyResolver:
    """Finds the rows with the keys of a change, in one snapshot after the other.

    Args:
        table: as the change was prepared on.
        keys: equality delete files, none of which is in the table.
        spec: their partition spec, which the table may lack.
        write_id: part of the names of new files.
        data_location: the directory of new files.
        runner: runs tasks if there is much to read; None reads in this process.
        hashing: how keys are hashed, and whether the ids of rows are needed.
    """

    def __init__(
        self,
        table: LoadedTable,
        keys: Sequence[DataFile],
        spec: PartitionSpec,
        *,
        write_id: str,
        data_location: str,
        runner: Runner | None,
        hashing: KeyHashing | None = None,
    ) -> None:
        self._table, self._keys, self._spec = table, tuple(keys), spec
        self._write_id, self._data_location, self._runner = write_id, data_location, runner
        self._hashing = hashing or KeyHashing(self._keys[0].equality_ids, new_seed())
        self._compared: dict[str, _Compared] = {}
        # What position deletes delete is not found again: if one is gone, its data file is
        # compared again. New vectors have the rows of older ones.
        self._before: dict[str, frozenset[FileKey]] = {}
        # Steps of a transaction that are repeated give their files other ids of rows.
        self._first_row_ids: dict[str, int | None] = {}
        self._written: list[DataFile] = []
        self._rounds = 0
        self._planned: _Planned | None = None
        self._replaced_in: _Planned | None = None
        # Of the keys in the types of a schema, by its id.
        self._filters: dict[int, Expr] = {}

    @property
    def table(self) -> str:
        """The table's name."""
        return self._table.name

    @property
    def default_limit(self) -> int:
        """Up to how many bytes are read to find rows, if neither an option nor the table says."""
        return _LIMIT_WITHOUT_SESSION if self._runner is None else _LIMIT

    def limit(self, chosen: int | None) -> int | None:
        """The same as chosen, or as the table says."""
        return chosen or UPSERT_RESOLVE_LIMIT_BYTES.of(self._table.metadata.properties)

    def cost(self, branch: str, limit: int) -> tuple[int, str]:
        """What finding the rows in the table, as it was loaded, would read.

        Args:
            limit: nothing more is found out beyond it.

        Returns:
            The bytes to read, and what they are in words.
        """
        base = commit_base(self._table.state, branch)
        metadata, plan = base.metadata, self._read_plan(base)
        by_partition = TRUE if _spec_for(self._spec, base).is_unpartitioned else self._filter(base)
        filters = PartitionFilters(metadata.specs_by_id, plan.table_schema, by_partition)
        of_manifests = sum(m.manifest_length for m in base.manifests if filters.might_match(m))
        if of_manifests > limit:
            return of_manifests, f"{size_text(of_manifests)} of manifests"
        planned = self._plan(base)
        many = min(limit, _BYTES_IN_PROCESS)
        found = of_manifests + self._bytes_to_read(base, planned, many, limit)
        of_files = counted(len(planned.files), "data file")
        return found, f"{size_text(found)} of manifests and the keys of {of_files}"

    def replaced(self, branch: str) -> ReplacedRows:
        """The rows of the table, as it was loaded; errors are those of `resolve`.

        Without the rows of data files from which other equality deletes may have deleted them
        already: a row that is gone must not come back under its id.
        """
        base = commit_base(self._table.state, branch)
        planned = self._replaced_in = self._plan(base)
        self._compare(base, planned, base.metadata.format_version >= 3)
        return ReplacedRows.of(
            *_by_key(self._compared[path] for path in planned.own if path not in planned.others)
        )

    def resolve(self, base: CommitBase) -> Resolved:
        """Finds the rows in the snapshot that a commit builds on, and writes their deletes.

        Raises:
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.
            ValidationError: a data file with such keys is listed twice, so that it cannot have
                position deletes.
        """
        planned = self._plan(base)
        has_vectors = base.metadata.format_version >= 3
        self._compare(base, planned, has_vectors)
        found = {path: self._compared[path] for path in planned.own}
        hit = {path for path, one in found.items() if one.rows}
        # A later vector of a data file is of a later attempt.
        new = {_place(file): file for file in self._written if only_data_path(file) in {None, *hit}}
        own = (delete for path in hit for delete in planned.own[path]) if has_vectors else ()
        hashes = [one.keys for one in found.values() if one.keys is not None]
        # With position delete files, rows that others have deleted since are counted, too.
        is_same = all(self._before[path] == planned.before[path] for path in found)
        is_known = not planned.others and len(hashes) == len(found) and is_same
        return Resolved(
            tuple(new.values()),
            tuple(own),
            sum(one.rows for one in found.values()),
            distinct_hashes(hashes) if is_known else None,
        )

    def has_rows(self, base: CommitBase, row_ids: npt.NDArray[np.int64]) -> bool:
        """Whether the snapshot, which was resolved, certainly has rows with these ids.

        Others may have added equality deletes since, which delete some of them.
        """
        planned = self._plan(base)
        if planned is self._replaced_in:
            # They were found there.
            return True
        in_files = {path: _by_key([self._compared[path]])[1] for path in planned.own}
        known = [ids for path, ids in in_files.items() if path not in planned.others]
        doubtful = row_ids[~np.isin(row_ids, np.concatenate([_NO_IDS, *known]))]
        if not len(doubtful):
            return True
        paths = {p for p in planned.others if np.isin(in_files.get(p, _NO_IDS), doubtful).any()}
        gone = self._deleted_by_others(base, planned, paths)
        if gone is None:
            return False
        there = np.concatenate([_NO_IDS, *(in_files[path] for path in paths)])
        return bool((np.isin(doubtful, there) & ~np.isin(doubtful, gone)).all())

    def _deleted_by_others(
        self, base: CommitBase, planned: _Planned, paths: AbstractSet[str]
    ) -> npt.NDArray[np.int64] | None:
        """The ids of rows that equality deletes of others delete; None if they are not known."""
        mask = np.array([path in paths for path in planned.files.entries.paths.to_pylist()])
        files = replace(planned.files, deletes=planned.other_deletes).filter(mask)
        metadata, schema = base.metadata, base.metadata.schema()
        splits, ids = SplitOptions.of(metadata.properties), [_NO_IDS]
        for group in pack_files(files, metadata, schema, splits, whole=True):
            if any(d.equality_ids != self._keys[0].equality_ids for d in group.equality_deletes):
                return None
            for found in read_deleted_by_key(self._read_plan(base), group, self._hashing):
                if found.row_ids is None:
                    return None
                ids.append(found.row_ids)
        return np.concatenate(ids)

    def clean_up(self, kept: Iterable[DataFile]) -> None:
        """Deletes the files that no commit needs any longer. Never raises.

        Args:
            kept: the committed ones.
        """
        paths = {file.file_path for file in kept}
        files = [file for file in (*self._keys, *self._written) if file.file_path not in paths]
        if files:
            delete_files(self._table.io, files)

    def _filter(self, base: CommitBase) -> Expr:
        """Selects at least the rows with the keys, bound to the table's schema."""
        schema = base.metadata.schema()
        if schema.schema_id not in self._filters:
            entries = [ManifestEntry(ManifestEntryStatus.ADDED, 0, 1, 1, key) for key in self._keys]
            self._filters[schema.schema_id] = filter_of_keys(self._read_plan(base), entries)
        return self._filters[schema.schema_id]

    def _read_plan(self, base: CommitBase) -> ReadPlan:
        metadata = base.metadata
        return ReadPlan(
            self._table.io,
            Schema(()),
            metadata.schema(),
            metadata.specs_by_id,
            name_mapping=table_name_mapping(metadata),
        )

    def _bytes_to_read(
        self,
        base: CommitBase,
        planned: _Planned,
        many: int = _BYTES_IN_PROCESS,
        limit: int | None = None,
    ) -> int:
        """How many bytes of keys are read of planned data files, if none of them was read yet.

        Args:
            many: what may be more is found out exactly.
            limit: what is roughly more need not be.
        """
        if planned.nbytes is None:
            ids, plan = self._keys[0].equality_ids, self._read_plan(base)
            planned.nbytes = bytes_of_keys(planned.files, ids, plan.table_schema)
            # Such values may take more, but all of them no more than their files.
            has_any_length = have_any_length(ids, plan.table_schema)
            most = planned.files.nbytes if has_any_length else planned.nbytes
            is_rough = has_any_length and (limit is None or planned.nbytes <= limit)
            if most > many and (is_rough or self._filter(base) != TRUE):
                planned.nbytes = bytes_to_read(plan, planned.files, ids, self._filter(base))
        return planned.nbytes

    def _plan(self, base: CommitBase) -> _Planned:
        parent, metadata = base.parent, base.metadata
        if parent is None:
            return _Planned(None, PackedFiles.of(()), {}, {}, frozenset())
        # Attempts of a transaction's earlier step have the same id.
        if self._planned is not None and self._planned.manifest_list == parent.manifest_list:
            return self._planned
        spec = _spec_for(self._spec, base)
        keys = self._keys
        if spec != self._spec:
            keys = tuple(replace(key, spec_id=spec.spec_id, partition=()) for key in keys)
        number = base.sequence_number
        pending = tuple(
            ManifestEntry(ManifestEntryStatus.ADDED, 0, number, number, key) for key in keys
        )
        ours = {id(entry) for entry in pending}

        def have_keys(files: PackedFiles) -> Mask:
            mask: Mask = (
                files.by_deletes(lambda d: sum(id(e) in ours for e in d.equality_deletes)) > 0
            )
            return mask

        files = plan_packed_files(
            # What was read stays, but a newer snapshot's list has a key that came with it.
            self._table.io.with_list_keys(base.io.list_keys),
            metadata,
            parent,
            metadata.schema(),
            self._filter(base),
            chosen=have_keys,
            more_deletes=NewDeletes(pending, spec),
            # Then the deletes do not apply to other partitions either.
            by_partition=not spec.is_unpartitioned,
        )
        self._planned = _planned(parent.manifest_list, files, ours, base.name)
        return self._planned

    def _compare(self, base: CommitBase, planned: _Planned, has_vectors: bool) -> None:
        """Compares the data files that were not, or have got another deletion vector since."""
        paths, before = planned.files.entries.paths.to_pylist(), planned.before
        row_ids = dict(zip(paths, planned.files.entries.first_row_id.to_pylist(), strict=True))
        is_known = [
            (known := self._before.get(path)) is not None
            and (known == before[path] if has_vectors else known <= before[path])
            and self._first_row_ids[path] == row_ids[path]
            for path in paths
        ]
        files = planned.files.filter(~np.array(is_known, np.bool_))
        if not len(files):
            return
        io, metadata, schema = self._table.io, base.metadata, base.metadata.schema()
        splits = SplitOptions.of(metadata.properties).evened(files.entries.file_size_in_bytes)
        groups = list(pack_files(files, metadata, schema, splits, whole=True))
        locations = LocationProvider.of(metadata.location, metadata.properties)
        operation_id = f"{self._write_id}-{self._rounds}"
        self._rounds += 1
        plan = ConversionPlan(
            self._read_plan(base),
            locations,
            operation_id,
            delete_settings(metadata),
            self._hashing,
            self._filter(base),
        )
        discard = partial(delete_files_of_write, io, self._data_location, operation_id)
        nbytes = bytes_of_keys(files, self._keys[0].equality_ids, schema)
        is_small = min(nbytes, self._bytes_to_read(base, planned)) <= _BYTES_IN_PROCESS
        with stage("find rows by key", len(files), files.nbytes, weight_of_files):
            runner = ThreadRunner() if is_small or self._runner is None else self._runner
            results = runner.run(partial(write_converted, plan), groups, discard)
        for group, result in zip(groups, results, strict=True):
            self._written += result.deletes
            compared = map(_Compared, result.rows, result.keys, result.row_ids)
            paths = (task.file_path for task in group.tasks)
            for path, one in zip(paths, compared, strict=True):
                self._compared[path] = one
                self._before[path] = before[path]
                self._first_row_ids[path] = row_ids[path]


@dataclass(slots=True)
class _Planned:
    """The data files of a snapshot that may have the keys.

    Attributes:
        manifest_list: of the snapshot.
        files: with only the new ones among their equality deletes.
        own: their position deletes that apply to no other file, by path.
        before: the identities of all their position deletes, by path.
        others: those to which other equality deletes apply, which may delete the same rows.
        nbytes: how many bytes of their keys are to be read; None if it is not known yet.
        other_deletes: these deletes, in the places of those of `files`.
    """

    manifest_list: str | None
    files: PackedFiles
    own: Mapping[str, Sequence[DataFile]]
    before: Mapping[str, frozenset[FileKey]]
    others: AbstractSet[str]
    nbytes: int | None = None
    other_deletes: tuple[AppliedDeletes, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compared:
    """A data file whose rows were compared with the keys.

    Attributes:
        rows: how many of its rows have one of the keys.
        keys: the hashes of their keys; None if they are not known.
        row_ids: their ids, in the same order; None if they are not known.
    """

    rows: int
    keys: Hashes | None
    row_ids: npt.NDArray[np.int64] | None


def _spec_for(spec: PartitionSpec, base: CommitBase) -> PartitionSpec:
    """The partition spec with which keys apply to all data files that may have them."""
    specs = base.metadata.specs_by_id
    # The table may lack the spec, or have another one under its id.
    if specs.get(spec.spec_id) == spec and (
        spec.is_unpartitioned
        or all(
            manifest.partition_spec_id == spec.spec_id
            for manifest in base.manifests_of(ManifestContent.DATA)
            if manifest.added_files_count or manifest.existing_files_count
        )
    ):
        return spec
    # Keys in a partition apply to no data file of another spec, which others may have added.
    return PartitionSpec(max(specs) + 1)


def _planned(
    manifest_list: str | None, files: PackedFiles, ours: AbstractSet[int], name: str
) -> _Planned:
    # Many files share one tuple of deletes.
    kept: dict[int, tuple[ManifestEntry, ...]] = {}
    of_keys = [deletes.equality_deletes for deletes in files.deletes]
    for keys in of_keys:
        kept[id(keys)] = tuple(entry for entry in keys if id(entry) in ours)
    paths = files.entries.paths.to_pylist()
    if len(set(paths)) < len(paths):
        path = Counter(paths).most_common(1)[0][0]
        raise ValidationError(
            f"table {name} lists data file {path} more than once, so that its rows cannot be "
            "deleted by position; set write.upsert.mode to equality-deletes"
        )
    by_position = [[e.data_file for e in deletes.position_deletes] for deletes in files.deletes]
    has_others = [len(kept[id(keys)]) < len(keys) for keys in of_keys]
    own = [[f for f in of_file if only_data_path(f) is not None] for of_file in by_position]
    before = [frozenset(map(file_key, of_file)) for of_file in by_position]
    return _Planned(
        manifest_list,
        replace(
            files,
            deletes=tuple(
                replace(deletes, equality_deletes=kept[id(deletes.equality_deletes)])
                for deletes in files.deletes
            ),
        ),
        {path: own[at] for path, at in zip(paths, files.delete_numbers, strict=True)},
        {path: before[at] for path, at in zip(paths, files.delete_numbers, strict=True)},
        {path for path, at in zip(paths, files.delete_numbers, strict=True) if has_others[at]},
        other_deletes=tuple(
            replace(
                deletes,
                equality_deletes=tuple(e for e in deletes.equality_deletes if id(e) not in ours),
            )
            for deletes in files.deletes
        ),
    )


def _by_key(found: Iterable[_Compared]) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """The hashes of keys and the ids of rows, as far as both are known."""
    known = [(each.keys, each.row_ids) for each in found]
    both = [(keys, ids) for keys, ids in known if keys is not None and ids is not None]
    hashes, row_ids = zip(*both, strict=True) if both else ((), ())
    return np.concatenate([_NO_KEYS, *hashes]), np.concatenate([_NO_IDS, *row_ids])


def _place(file: DataFile) -> str:
    """What the deletes of a later attempt replace: those of the same data file."""
    return (file.is_deletion_vector and file.referenced_data_file) or file.file_path
