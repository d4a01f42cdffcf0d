"""Replaces equality deletes with position deletes of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.file_selection import FileKey, file_key, require_removed, these_files
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.selection import read_columns
from icebergds.commit.validation import history_since
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.packed_entries import Int64s, PathIndex
from icebergds.formats.manifests.reader import MANIFEST_READERS, EntryColumns
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from icebergds.spec.snapshot import CONVERT_EQUALITY_DELETES, OWN_OPERATION

_Read = TypeVar("_Read")
_ENTRIES_AT_A_TIME = 256


class ConversionOutdatedError(ValidationError):
    """Concurrent commits changed files that were converted: they must be planned again."""


class NothingToConvertError(ValidationError):
    """No equality delete file can be removed."""


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A data file whose rows were compared with the keys of all equality deletes that apply to it.

    Attributes:
        path, data_sequence_number: of the data file.
        equality_deletes: the identities of these equality deletes.
        rows: how many of its rows the new deletes delete.
        vector: the deletion vector that is merged into the new one; None if there was none.
        replaced: the deletes that the new ones replace.
    """

    path: str
    data_sequence_number: int
    equality_deletes: frozenset[FileKey]
    rows: int
    vector: FileKey | None = None
    replaced: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ConvertedUnit:
    """Data files, and new deletes of their rows, which are committed together or not at all."""

    files: tuple[ConvertedFile, ...]
    deletes: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class ConversionBase:
    """What a conversion was planned from.

    Attributes:
        snapshot_id: the branch's snapshot.
        format_version: of the table.
        targets: the equality deletes to convert.
        applying: finds those of the targets that may apply to a data file.
        position_delete_paths: all position delete files of the snapshot.
    """

    snapshot_id: int
    format_version: int
    targets: Sequence[ManifestEntry]
    applying: Callable[[ManifestEntry], Iterable[ManifestEntry]]
    position_delete_paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What an attempt commits.

    Attributes:
        added: the new deletes.
        removed: how many equality delete files are removed.
        remaining: how many equality delete files the branch still has.
        rows: how many rows the new deletes delete.
    """

    added: tuple[DataFile, ...]
    removed: int
    remaining: int
    rows: int


@dataclass(slots=True)
class ConvertDeletes:
    """Adds position deletes, and removes the equality deletes that no data file needs any longer.

    An equality delete file is removed if every live data file of the branch to which it may apply
    has been compared with it. New deletes that do not help to remove one are not added.

    The snapshot's operation is `overwrite`, although no row changes: writers of this and of other
    libraries that replace data files or delete rows look for new position deletes in `overwrite`
    and `delete` snapshots, and not in `replace` snapshots. A compaction that began before this
    commit would otherwise lose the new deletes, with the equality deletes gone. Of the two,
    `overwrite` is what the upserts that left the equality deletes are, so that streaming readers
    of other libraries already skip it. This library's readers of changes know the commit by its
    own operation in the summary.

    The commit fails with a ValidationError if the snapshot that was planned is not in the branch's
    history, or if the table's format version has changed.

    Attributes:
        strict: raise ConversionOutdatedError if concurrent commits left something to convert.
        outcome: what the last attempt commits, or that there is nothing to commit.
    """

    base: ConversionBase
    units: Sequence[ConvertedUnit]
    strict: bool
    outcome: Conversion | None = None
    _added: tuple[FileKey, ...] | None = field(default=None, init=False)

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Proves what can be removed, and writes the manifests.

        Raises:
            ConversionOutdatedError: some files must be planned again.
            NothingToConvertError: there is nothing to commit.
            ValidationError: the branch was changed in a way that a new plan is needed for.
        """
        self._check_base(base)
        deletes = self._live_deletes(work, base)
        data = self._live_data(work, base)
        valid = [unit for unit in self.units if self._is_valid(unit, deletes, data)]
        needed = self._needed(valid, data) & deletes.keys
        if self.strict and needed and _head_of(base) != self.base.snapshot_id:
            raise _outdated(base)
        removed = [
            entry.data_file
            for entry in self.base.targets
            if (key := file_key(entry.data_file)) in deletes.keys and key not in needed
        ]
        if not removed:
            self.outcome = Conversion((), 0, deletes.equality_deletes, 0)
            raise NothingToConvertError(
                f"table {base.name}: no equality delete file of branch {base.branch!r} can be "
                "removed"
            )
        useful = _useful(valid, {file_key(file) for file in removed}, data)
        added = tuple(_still_needed(useful, data))
        # All attempts share the manifests of the added files.
        if self._added is not None and self._added != tuple(map(file_key, added)):
            raise _outdated(base)
        self._added = tuple(map(file_key, added))
        gone = [*removed, *_replaced(useful, deletes, data)]
        merged = merged_manifests(
            work,
            base,
            added=added,
            removed=these_files(base, gone),
            key=("converted", frozenset(map(file_key, gone))),
        )
        require_removed(base, gone, merged.removed)
        converted = sum(f.content is FileContent.EQUALITY_DELETES for f in merged.removed)
        self.outcome = Conversion(
            added,
            converted,
            deletes.equality_deletes - converted,
            sum(file.rows for unit in useful for file in unit.files if file.path not in data.gone),
        )
        changes = {**merged.changes, OWN_OPERATION: CONVERT_EQUALITY_DELETES}
        return NewSnapshot("overwrite", merged.manifests, changes)

    def _check_base(self, base: CommitBase) -> None:
        require_branch(base)
        # Rows may be live in a branch that was rolled back to before their deletes.
        history_since(base, self.base.snapshot_id)
        version = base.metadata.format_version
        if version != self.base.format_version:
            raise ValidationError(
                f"table {base.name} was upgraded to format version {version} while deletes were "
                "converted; repeat the operation"
            )

    def _live_deletes(self, work: Workspace, base: CommitBase) -> _LiveDeletes:
        targets = [entry.data_file for entry in self.base.targets]
        files = [file for unit in self.units for file in unit.files if file.rows]
        replaced = [delete for file in files for delete in file.replaced]
        wanted = pa.array({file.file_path for file in (*targets, *replaced)}, pa.string())
        paths = pa.array({file.path for file in files}, pa.string())
        known = pa.array(self.base.position_delete_paths, pa.string())

        def read(manifest: ManifestFile) -> _LiveDeletes:
            columns = read_columns(base, manifest, frozenset())
            return _deletes_in(columns, wanted, paths, known)

        parts = _of_manifests(work, base, ManifestContent.DELETES, read)
        return _LiveDeletes(
            frozenset[FileKey]().union(*(part.keys for part in parts)),
            {path: key for part in parts for path, key in part.vectors.items()},
            sum(part.equality_deletes for part in parts),
            any(part.has_new_files for part in parts),
        )

    def _live_data(self, work: Workspace, base: CommitBase) -> _LiveData:
        files = [file for unit in self.units for file in unit.files]
        index = PathIndex.of([pa.array([file.path for file in files], pa.string())])
        numbers = np.array([file.data_sequence_number for file in files], np.int64)
        newest = max((entry.data_sequence_number for entry in self.base.targets), default=0)
        ids = frozenset(i for e in self.base.targets for i in e.data_file.equality_ids)

        def read(manifest: ManifestFile) -> tuple[Int64s, Int64s, frozenset[FileKey]]:
            columns = read_columns(base, manifest, ids)
            at = index.find(columns.file_path)
            is_converted = at >= 0
            listed = at[is_converted]
            is_same = columns.data_sequence_number[is_converted] == numbers[listed]
            is_converted[is_converted] = is_same
            # An equality delete applies to strictly older data; files without rows need none.
            is_older = columns.data_sequence_number < newest
            rest = columns.filter(~is_converted & is_older & (columns.record_count != 0))
            needed = {
                file_key(delete.data_file)
                for entry in _few_at_a_time(rest)
                for delete in self.base.applying(entry)
            }
            return listed, listed[is_same], frozenset(needed)

        listed, converted = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
        needed = frozenset[FileKey]()
        for paths, same, more in _of_manifests(work, base, ManifestContent.DATA, read):
            np.add.at(listed, paths, 1)
            np.add.at(converted, same, 1)
            needed |= more
        changed = np.flatnonzero((listed != 1) | (converted != 1))
        return _LiveData(
            frozenset(files[number].path for number in np.flatnonzero(listed == 0)),
            frozenset(files[number].path for number in changed),
            needed,
        )

    def _is_valid(self, unit: ConvertedUnit, deletes: _LiveDeletes, data: _LiveData) -> bool:
        """Whether the unit's new deletes delete exactly what the equality deletes do."""
        return all(
            self._is_current(file, deletes, data)
            for file in unit.files
            if file.rows and file.path not in data.gone
        )

    def _is_current(self, file: ConvertedFile, deletes: _LiveDeletes, data: _LiveData) -> bool:
        # Position deletes apply to every file of a path, equality deletes only to older ones.
        if file.path in data.changed:
            return False
        if not file.equality_deletes <= deletes.keys:
            return False
        if self.base.format_version < 3:
            return True
        # The new vector holds the deletes that were known when it was written.
        return deletes.vectors.get(file.path) == file.vector and not deletes.has_new_files

    def _needed(self, valid: Sequence[ConvertedUnit], data: _LiveData) -> set[FileKey]:
        """The targets that may apply to a live data file that is not converted."""
        needed = set(data.needed)
        kept = {id(unit) for unit in valid}
        for unit in self.units:
            for file in unit.files if id(unit) not in kept else ():
                if file.rows and file.path not in data.gone:
                    needed |= file.equality_deletes
        return needed


@dataclass(frozen=True, slots=True)
class _LiveDeletes:
    """Live deletes of the base.

    Attributes:
        keys: those of the targets and of the deletes to replace that are live.
        vectors: the deletion vectors of converted data files, by their paths.
        equality_deletes: how many equality delete files there are.
        has_new_files: whether there are position delete files that the plan did not know.
    """

    keys: frozenset[FileKey]
    vectors: dict[str, FileKey]
    equality_deletes: int
    has_new_files: bool


@dataclass(frozen=True, slots=True)
class _LiveData:
    """Live data files of the base.

    Attributes:
        gone: the paths of converted data files that are not listed.
        changed: those that are not listed once, with the sequence number that they had.
        needed: the targets that may apply to other data files.
    """

    gone: frozenset[str]
    changed: frozenset[str]
    needed: frozenset[FileKey]


def _few_at_a_time(columns: EntryColumns) -> Iterator[ManifestEntry]:
    """The entries, of which few are in memory: their metrics take much."""
    rows = np.arange(len(columns))
    for start in range(0, len(rows), _ENTRIES_AT_A_TIME):
        yield from columns.take(rows[start : start + _ENTRIES_AT_A_TIME]).entries()


def _of_manifests(
    work: Workspace,
    base: CommitBase,
    content: ManifestContent,
    read: Callable[[ManifestFile], _Read],
) -> list[_Read]:
    """Reads the live manifests, each once for all attempts."""

    def once(manifest: ManifestFile) -> _Read:
        return work.once(("conversion", manifest.manifest_path), lambda: read(manifest))

    manifests = base.manifests_of(content)
    live = [m for m in manifests if m.added_files_count or m.existing_files_count]
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        return list(pool.map(once, live))


def _deletes_in(
    columns: EntryColumns, wanted: pa.Array, paths: pa.Array, known: pa.Array
) -> _LiveDeletes:
    is_vector = pc.equal(columns.file_format, FileFormat.PUFFIN.value)
    found = columns.filter(pc.is_in(columns.file_path, wanted))
    vectors = columns.filter(pc.and_(is_vector, pc.is_in(columns.referenced_data_file, paths)))
    by_position = pa.array(columns.content == FileContent.POSITION_DELETES.value)
    is_known = pc.or_(is_vector, pc.is_in(columns.file_path, known))
    return _LiveDeletes(
        frozenset(_keys(found)),
        dict(zip(vectors.referenced_data_file.to_pylist(), _keys(vectors), strict=True)),
        int((columns.content == FileContent.EQUALITY_DELETES.value).sum()),
        bool(pc.any(pc.and_not(by_position, is_known)).as_py()),
    )


def _keys(columns: EntryColumns) -> Iterable[FileKey]:
    paths, offsets = columns.file_path.to_pylist(), columns.content_offset.to_pylist()
    return zip(paths, offsets, strict=True)


def _useful(
    units: Iterable[ConvertedUnit], removed: set[FileKey], data: _LiveData
) -> list[ConvertedUnit]:
    """The units whose rows a removed equality delete may have deleted."""
    return [
        unit
        for unit in units
        if any(
            file.rows
            and file.path not in data.gone
            and not removed.isdisjoint(file.equality_deletes)
            for file in unit.files
        )
    ]


def _still_needed(units: Iterable[ConvertedUnit], data: _LiveData) -> Iterable[DataFile]:
    """The new deletes without those that only delete rows of data files that are gone."""
    for unit in units:
        for delete in unit.deletes:
            path = only_data_path(delete)
            if path is None or path not in data.gone:
                yield delete


def _replaced(
    units: Iterable[ConvertedUnit], deletes: _LiveDeletes, data: _LiveData
) -> Iterable[DataFile]:
    for unit in units:
        for file in unit.files:
            if file.rows and file.path not in data.gone:
                yield from (d for d in file.replaced if file_key(d) in deletes.keys)


def _head_of(base: CommitBase) -> int | None:
    return None if base.parent is None else base.parent.snapshot_id


def _outdated(base: CommitBase) -> ConversionOutdatedError:
    return ConversionOutdatedError(
        f"table {base.name}: concurrent commits changed files whose equality deletes are "
        "converted, again and again; repeat the operation when there are fewer"
    )
