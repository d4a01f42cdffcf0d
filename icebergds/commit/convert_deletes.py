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
from icebergds.commit.compared_files import ComparedFiles, CompressedFiles
from icebergds.commit.conversion_progress import ConversionProgress
from icebergds.commit.file_selection import FileKey, file_key, require_removed, these_files
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.selection import Mask, read_columns
from icebergds.commit.validation import history_since
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.packed_entries import Int64s, PathIndex
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from icebergds.spec.snapshot import CONVERSION_PROGRESS, CONVERT_EQUALITY_DELETES, OWN_OPERATION

_Read = TypeVar("_Read")
_ENTRIES_AT_A_TIME = 256
# Size of the manifests to read at a time: their columns take many times as much memory.
_BYTES_AT_A_TIME = 16 << 20
_NONE = np.empty(0, np.int64)


class ConversionOutdatedError(ValidationError):
    """Concurrent commits changed files that were converted: they must be planned again."""


class NothingToConvertError(ValidationError):
    """No equality delete file can be removed."""


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedUnit:
    """Data files, and new deletes of their rows.

    A position delete file may apply to several data files, which are then committed together or not
    at all. Each file with deleted rows has its own deletion vector, so this does not concern
    vectors.

    Attributes:
        files: data files whose rows were compared with the keys of all their equality deletes.
        rows: how many rows of each file the new deletes delete.
        deletes: position delete files, or vectors; those of other data files are not used.
        has_vectors: whether deletes are vectors.
    """

    files: ComparedFiles
    rows: Int64s
    deletes: CompressedFiles
    has_vectors: bool


@dataclass(frozen=True, slots=True)
class ConversionBase:
    """What a conversion was planned from.

    Attributes:
        snapshot_id: the branch's snapshot.
        format_version: the table's format version.
        targets: the equality deletes to convert.
        applying: finds those of the targets that may apply to a data file.
        position_delete_paths: all position delete files of the snapshot.
        before: what earlier conversions in parts have compared.
    """

    snapshot_id: int
    format_version: int
    targets: Sequence[ManifestEntry]
    applying: Callable[[ManifestEntry], Iterable[ManifestEntry]]
    position_delete_paths: frozenset[str]
    before: ConversionProgress | None = None

    def open(self, columns: EntryColumns) -> Iterator[FileKey]:
        """Yields the targets with which data files are still to be compared."""
        parts = [(columns, -1)]
        if (before := self.before) is not None:
            is_covered = before.covers(
                columns.data_sequence_number, columns.file_sequence_number, columns.file_path
            )
            parts = [
                (columns.filter(~is_covered), -1),
                (columns.filter(is_covered), before.deletes),
            ]
        newest = max((target.file_sequence_number for target in self.targets), default=-1)
        for part, known in parts:
            for entry in _few_at_a_time(part) if newest > known else ():
                for delete in self.applying(entry):
                    if delete.file_sequence_number > known:
                        yield file_key(delete.data_file)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What an attempt commits.

    Attributes:
        added: the new deletes.
        removed: how many equality delete files are removed.
        remaining: how many equality delete files the branch still has.
        rows: how many rows the new deletes delete.
    """

    added: CompressedFiles
    removed: int
    remaining: int
    rows: int


@dataclass(slots=True)
class ConvertDeletes:
    """Adds position deletes, and removes the equality deletes that no data file needs any longer.

    An equality delete file is removed if every live data file of the branch to which it may apply
    has been compared with it. New deletes that do not help to remove one are not added, except by a
    conversion in parts: it adds those of the data files that it has compared, and records how far
    it has come, while the equality deletes stay until the other data files were compared, too.

    The snapshot's operation is `overwrite`, although no row changes: writers of this and of other
    libraries that replace data files or delete rows look for new position deletes in `overwrite`
    and `delete` snapshots, and not in `replace` snapshots. A compaction that began before this
    commit would otherwise lose the new deletes, with the equality deletes gone. The upserts that
    left the equality deletes are `overwrite` snapshots too, so streaming readers of other libraries
    already skip such a commit. This library's change readers recognise the commit by its own
    operation in the summary.

    The commit fails with a ValidationError if the snapshot that was planned is not in the branch's
    history, or if the table's format version has changed.

    Invariants (docs/commit-model.md): NoRowResurrected, unless all data files were compared and the
    operation is `overwrite`; OneVector, unless the vectors are those that were read.

    Attributes:
        strict: raise ConversionOutdatedError if concurrent commits left something to convert.
        progress: how far a conversion in parts has come; None if all data files were compared.
        outcome: what the last attempt commits, or that there is nothing to commit.
    """

    base: ConversionBase
    units: Sequence[ConvertedUnit]
    strict: bool
    progress: ConversionProgress | None = None
    outcome: Conversion | None = None
    _used: Mask | None = field(default=None, init=False)

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Proves what can be removed, and writes the manifests.

        Raises:
            ConversionOutdatedError: some files must be planned again.
            NothingToConvertError: there is nothing to commit.
            ValidationError: the branch was changed in a way that needs a new plan.
        """
        self._check_base(base)
        files = _Converted(self.units, self.base.format_version)
        deletes = self._live_deletes(work, base, files)
        data = self._live_data(work, base, files)
        # Whether the new deletes delete exactly what the equality deletes do.
        is_hit = (files.rows > 0) & ~data.is_gone
        is_valid = ~files.with_unit(is_hit & (data.is_changed | files.are_outdated(deletes)))
        outdated = files.keys_of(is_hit & ~is_valid) & deletes.keys
        needed = (data.needed & deletes.keys) | outdated
        # In parts, data files are left on purpose.
        left = outdated if self.progress is not None else needed
        if self.strict and left and _head_of(base) != self.base.snapshot_id:
            raise _outdated(base)
        progress = None if outdated else self.progress
        removed = [
            entry.data_file
            for entry in self.base.targets
            if (key := file_key(entry.data_file)) in deletes.keys and key not in needed
        ]
        if not removed and progress is None:
            self.outcome = Conversion(CompressedFiles.of(()), 0, deletes.equality_deletes, 0)
            raise NothingToConvertError(
                f"table {base.name}: no equality delete file of branch {base.branch!r} can be "
                "removed"
            )
        helps = is_hit
        if progress is None:
            helps = is_hit & files.have_keys_of(frozenset(map(file_key, removed)))
        is_useful = files.with_unit(helps) & is_valid
        is_used = is_hit & is_useful
        new = files.new_deletes(is_useful, data.is_gone)
        # All attempts share the manifests of the added files.
        if self._used is not None and not np.array_equal(self._used, new):
            raise _outdated(base)
        self._used = new
        added = files.deletes.filter(new)
        gone = [*removed, *(d for d in files.replaced(is_used) if file_key(d) in deletes.keys)]
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
            int(files.rows[is_used].sum()),
        )
        changes = {**merged.changes, OWN_OPERATION: CONVERT_EQUALITY_DELETES}
        if progress is not None:
            changes[CONVERSION_PROGRESS] = progress.text()
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

    def _live_deletes(self, work: Workspace, base: CommitBase, files: _Converted) -> _LiveDeletes:
        targets = [entry.data_file for entry in self.base.targets]
        hit = files.rows > 0
        wanted = {file.file_path for file in (*targets, *files.replaced(hit))}
        known = pa.array(self.base.position_delete_paths, pa.string())

        def read(manifest: ManifestFile) -> _LiveDeletes:
            columns = read_columns(base, manifest, frozenset())
            return _deletes_in(columns, pa.array(wanted, pa.string()), files.index, known)

        parts = _of_manifests(work, base, ManifestContent.DELETES, read)
        return _LiveDeletes(
            frozenset[FileKey]().union(*(part.keys for part in parts)),
            {number: key for part in parts for number, key in part.vectors.items()},
            sum(part.equality_deletes for part in parts),
            any(part.has_new_files for part in parts),
        )

    def _live_data(self, work: Workspace, base: CommitBase, files: _Converted) -> _LiveData:
        newest = max((entry.data_sequence_number for entry in self.base.targets), default=0)
        ids = frozenset(i for e in self.base.targets for i in e.data_file.equality_ids)

        def read(manifest: ManifestFile) -> tuple[Int64s, Int64s, frozenset[FileKey]]:
            columns = read_columns(base, manifest, ids)
            at = files.index.find(columns.file_path)
            is_converted = at >= 0
            listed = at[is_converted]
            numbers = files.data_sequence_number[listed]
            is_same = columns.data_sequence_number[is_converted] == numbers
            is_converted[is_converted] = is_same
            # An equality delete applies to strictly older data; files without rows need none.
            is_older = columns.data_sequence_number < newest
            rest = columns.filter(~is_converted & is_older & (columns.record_count != 0))
            return listed, listed[is_same], frozenset(self.base.open(rest))

        count = len(files.rows)
        listed, converted = np.zeros(count, np.int64), np.zeros(count, np.int64)
        needed = frozenset[FileKey]()
        for found, same, more in _of_manifests(work, base, ManifestContent.DATA, read):
            np.add.at(listed, found, 1)
            np.add.at(converted, same, 1)
            needed |= more
        # Position deletes apply to every file of a path, equality deletes only to older ones.
        return _LiveData(listed == 0, (listed != 1) | (converted != 1), needed)


class _Converted:
    """The numbered files of all units.

    Attributes:
        rows: how many rows of each file the new deletes delete.
        index: finds files by their paths.
        deletes: the new deletes of all units.
    """

    def __init__(self, units: Sequence[ConvertedUnit], format_version: int) -> None:
        self._has_vectors = format_version >= 3
        self._files = ComparedFiles.concat([unit.files for unit in units])
        self._units = np.repeat(np.arange(len(units)), [len(unit.files) for unit in units])
        self._delete_units = np.repeat(np.arange(len(units)), [len(unit.deletes) for unit in units])
        self.rows = np.concatenate([_NONE, *(unit.rows for unit in units)])
        self.index = self._files.entries.index()
        self.data_sequence_number = self._files.entries.data_sequence_number
        self.deletes = CompressedFiles.concat(unit.deletes for unit in units)

    def with_unit(self, mask: Mask) -> Mask:
        """Marks the files that must be committed together with some of the marked files."""
        return mask if self._has_vectors else np.isin(self._units, self._units[mask])

    def keys_of(self, mask: Mask) -> frozenset[FileKey]:
        """All equality deletes of the marked files."""
        return self._files.filter(mask).keys()

    def have_keys_of(self, keys: frozenset[FileKey]) -> Mask:
        """Marks the files with at least one of some equality deletes."""
        return self._files.having(lambda deletes: not keys.isdisjoint(deletes.keys))

    def are_outdated(self, live: _LiveDeletes) -> Mask:
        """Marks the files whose deletes are not those that they were compared with."""
        mask = self._files.having(lambda deletes: not deletes.keys <= live.keys)
        if not self._has_vectors:
            return mask
        if live.has_new_files:
            return np.ones_like(mask)
        # A new vector holds the deletes that were known when it was written.
        for number in np.flatnonzero(self.rows > 0).tolist():
            mask[number] |= live.vectors.get(number) != self._files.deletes_of(number).vector
        return mask

    def new_deletes(self, mask: Mask, is_gone: Mask) -> Mask:
        """Marks the deletes of the marked files, unless they apply only to files that are gone."""
        at = self.index.find_all(only_data_path(delete) for delete in self.deletes)
        has_file: Mask = at >= 0
        is_live: Mask = ~(has_file & is_gone[at])
        if not self._has_vectors:
            is_used: Mask = np.isin(self._delete_units, self._units[mask])
            return is_used & is_live
        used: Mask = has_file & is_live & mask[at] & (self._units[at] == self._delete_units)
        assert used.sum() == (mask & ~is_gone).sum(), "each file with deleted rows has a vector"
        return used

    def replaced(self, mask: Mask) -> Iterator[DataFile]:
        """The deletes of the marked files that new vectors replace."""
        if not self._has_vectors:
            return
        found = self._files.filter(mask & self._files.having(lambda deletes: bool(deletes.own)))
        for number, entry in enumerate(found.entries):
            path, own = entry.data_file.file_path, found.deletes_of(number).own
            yield from (delete for delete in own if only_data_path(delete) == path)


@dataclass(frozen=True, slots=True)
class _LiveDeletes:
    """Live deletes of the base.

    Attributes:
        keys: the live ones among the targets and the deletes to replace.
        vectors: the deletion vectors of converted data files, by their numbers.
        equality_deletes: how many equality delete files there are.
        has_new_files: whether there are position delete files that the plan did not know.
    """

    keys: frozenset[FileKey]
    vectors: dict[int, FileKey]
    equality_deletes: int
    has_new_files: bool


@dataclass(frozen=True, slots=True)
class _LiveData:
    """Live data files of the base.

    Attributes:
        is_gone: marks the converted data files that are not listed.
        is_changed: marks those that are not listed exactly once with the sequence number that they
            had.
        needed: the targets that may apply to other data files.
    """

    is_gone: Mask
    is_changed: Mask
    needed: frozenset[FileKey]


def _few_at_a_time(columns: EntryColumns) -> Iterator[ManifestEntry]:
    """Yields the entries, few of them in memory at a time: their metrics are large."""
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
    with ThreadPoolExecutor(manifest_readers(base.io, live, _BYTES_AT_A_TIME)) as pool:
        return list(pool.map(once, live))


def _deletes_in(
    columns: EntryColumns, wanted: pa.Array, index: PathIndex, known: pa.Array
) -> _LiveDeletes:
    found = columns.filter(pc.is_in(columns.file_path, wanted))
    is_vector = columns.is_vector
    vectors = columns.filter(is_vector)
    numbers = index.find(vectors.referenced_data_file)
    by_position = pa.array(columns.content == FileContent.POSITION_DELETES.value)
    is_known = pc.or_(pa.array(is_vector), pc.is_in(columns.file_path, known))
    return _LiveDeletes(
        frozenset(_keys(found)),
        dict(zip(numbers[numbers >= 0].tolist(), _keys(vectors.filter(numbers >= 0)), strict=True)),
        int((columns.content == FileContent.EQUALITY_DELETES.value).sum()),
        bool(pc.any(pc.and_not(by_position, is_known)).as_py()),
    )


def _keys(columns: EntryColumns) -> Iterable[FileKey]:
    paths, offsets = columns.file_path.to_pylist(), columns.content_offset.to_pylist()
    return zip(paths, offsets, strict=True)


def _head_of(base: CommitBase) -> int | None:
    return None if base.parent is None else base.parent.snapshot_id


def _outdated(base: CommitBase) -> ConversionOutdatedError:
    return ConversionOutdatedError(
        f"table {base.name}: concurrent commits changed files whose equality deletes are "
        "converted, again and again; repeat the operation when there are fewer"
    )
