"""Plans which data files a conversion of equality deletes compares with which of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.compared_files import ComparedDeletes, ComparedFiles
from icebergds.commit.conversion_progress import ConversionProgress, file_names, progress_of
from icebergds.commit.convert_deletes import ConversionBase
from icebergds.commit.file_selection import FileKey, file_key
from icebergds.expr.nodes import Expr
from icebergds.operations.maintenance.listed_paths import ListedPaths
from icebergds.scan.plan.delete_index import AppliedDeletes, DeleteIndex, key_types
from icebergds.scan.plan.live_deletes import live_deletes
from icebergds.scan.plan.packed_files import Mask, PackedFiles, plan_packed_files
from icebergds.spec.manifest import DataFile, FileContent, ManifestEntry
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema


class Found:
    """A plan: the data files to which equality deletes apply that are to be converted.

    Attributes:
        files: the data files, without other equality deletes, and without those that earlier
            conversions in parts have compared them with.
        index: finds them by their paths.
        compared: the files, for the commit.
        part: which of them are compared now.
    """

    def __init__(self, base: ConversionBase, files: PackedFiles, part: Part) -> None:
        self.base = base
        self.files = files
        self.part = part
        self.index = files.entries.index()
        applied = (
            ComparedDeletes.of((*deletes.position_deletes, *deletes.equality_deletes))
            for deletes in files.deletes
        )
        self.compared = ComparedFiles(files.entries, files.delete_numbers, tuple(applied))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one run of a conversion does.

    Attributes:
        chosen: marks the data files to compare.
        progress: what was compared after it; None if all of them are.
        read_bytes: about how many bytes of keys it reads, in data and delete files.
        left_bytes: how many are left for other runs.
    """

    chosen: Mask
    progress: ConversionProgress | None
    read_bytes: int
    left_bytes: int = 0


def plan_conversion(
    table: LoadedTable,
    branch: str,
    row_filter: Expr,
    targets: AbstractSet[FileKey] | None,
    max_bytes: int | None,
) -> Found | None:
    """Plans a conversion from the table's state; None if there is nothing to convert.

    Args:
        row_filter: chooses data files; bound to the table's schema.
        targets: the equality deletes to convert; None for all.
        max_bytes: how many bytes of keys may be read; None for no limit. If all would be more, the
            oldest equality deletes are chosen that take at most half of it, and as many data files
            as can be compared with them.
    """
    metadata, schema = table.metadata, table.metadata.schema()
    snapshot = metadata.head_of(branch)
    if metadata.format_version < 2 or snapshot is None:
        return None
    deletes = live_deletes(table.io, metadata, snapshot)
    chosen = tuple(
        entry
        for entry in deletes
        if entry.data_file.content is FileContent.EQUALITY_DELETES
        and (targets is None or file_key(entry.data_file) in targets)
    )
    if not chosen:
        return None
    # Only files with equality deletes are kept in memory, as tables may have many files.
    listed = ListedPaths()

    def have_keys(files: PackedFiles) -> Mask:
        listed.add_all(files)
        mask: Mask = files.by_deletes(_key_count) > 0
        return mask

    files = plan_packed_files(table.io, metadata, snapshot, schema, row_filter, chosen=have_keys)
    # Position deletes apply to a path: a file that is listed twice cannot be converted.
    once = listed.once_of(files)
    before = progress_of(metadata, snapshot)
    left = _not_compared(_of_targets(once, frozenset(_keys(chosen))), before)
    part = _whole(left, schema)
    if max_bytes is not None and part.read_bytes > max_bytes:
        can_be_partial = len(once) == len(files)
        chosen, left, part = _part(
            left,
            chosen,
            before,
            schema,
            max_bytes if can_be_partial else 0,
            snapshot.sequence_number,
        )
    base = ConversionBase(
        snapshot.snapshot_id,
        metadata.format_version,
        chosen,
        _applying(metadata, chosen),
        frozenset(
            entry.data_file.file_path
            for entry in deletes
            if entry.data_file.content is FileContent.POSITION_DELETES
            and not entry.data_file.is_deletion_vector
        ),
        before,
    )
    return Found(base, left, part)


def key_share(deletes: Iterable[DataFile], schema: Schema) -> float:
    """The share of the key columns of equality deletes in the bytes of data files, about."""
    key_columns = len({i for delete in deletes for i in delete.equality_ids})
    return min(key_columns / max(len(schema.fields), 1), 1.0)


def _part(
    left: PackedFiles,
    deletes: Sequence[ManifestEntry],
    before: ConversionProgress | None,
    schema: Schema,
    max_bytes: int,
    newest: int,
) -> tuple[tuple[ManifestEntry, ...], PackedFiles, Part]:
    """The equality deletes and data files that are converted within a limit.

    Args:
        left: the data files that were not compared with all of their deletes yet.
        newest: the sequence number of the planned snapshot.
    """
    whole = _whole(left, schema)
    for known in _deletes_to_begin_with(left, deletes, before, max_bytes):
        targets = tuple(entry for entry in deletes if entry.file_sequence_number <= known)
        files = _of_targets(left, frozenset(_keys(targets)))
        names, numbers = file_names(files.entries.paths), files.entries.data_sequence_number
        places = np.stack([numbers, _ranks(names).astype(np.int64)], axis=1)
        order = np.lexsort([places[:, 1], places[:, 0]])
        costs = files.entries.file_size_in_bytes * key_share(_distinct(files), schema)
        room = max_bytes - _bytes_of_deletes(files)
        count = int(np.searchsorted(np.cumsum(costs[order]), room, side="right"))
        if count == len(files):
            part = _whole(files, schema)
            return targets, files, replace(part, left_bytes=whole.read_bytes - part.read_bytes)
        # The place of a data file among those of the same name and number is not known.
        places = places[order]
        while count and (places[count] == places[count - 1]).all():
            count -= 1
        if count:
            chosen = np.zeros(len(files), np.bool_)
            chosen[order[:count]] = True
            last = int(order[count - 1])
            progress = ConversionProgress(known, newest, int(numbers[last]), names[last].as_py())
            read = round(costs[chosen].sum()) + _bytes_of_deletes(files)
            return targets, files, Part(chosen, progress, read, whole.read_bytes - read)
    return (), left, Part(np.zeros(len(left), np.bool_), None, 0, whole.read_bytes)


def _deletes_to_begin_with(
    left: PackedFiles,
    deletes: Sequence[ManifestEntry],
    before: ConversionProgress | None,
    max_bytes: int,
) -> Iterable[int]:
    """Yields up to which file sequence number equality deletes are converted, best first."""
    # What was begun goes on, or new equality deletes would begin it again and again.
    if before is not None and any(
        entry.file_sequence_number <= before.deletes
        for applied in left.applied()
        for entry in applied.equality_deletes
    ):
        yield before.deletes
    sizes: dict[int, int] = {}
    for entry in deletes:
        number = entry.file_sequence_number
        sizes[number] = sizes.get(number, 0) + entry.data_file.file_size_in_bytes
    numbers = sorted(sizes)
    fitting = np.cumsum([sizes[number] for number in numbers]) <= max_bytes // 2
    yield numbers[max(int(fitting.sum()) - 1, 0)]


def _whole(files: PackedFiles, schema: Schema) -> Part:
    read = round(files.nbytes * key_share(_distinct(files), schema)) + _bytes_of_deletes(files)
    return Part(np.ones(len(files), np.bool_), None, read)


def _applying(
    metadata: TableMetadata, deletes: Sequence[ManifestEntry]
) -> Callable[[ManifestEntry], Sequence[ManifestEntry]]:
    ids = {i for entry in deletes for i in entry.data_file.equality_ids}
    index = DeleteIndex(deletes, metadata.specs_by_id, key_types(metadata.schema_history, ids))

    def applying(entry: ManifestEntry) -> Sequence[ManifestEntry]:
        return index.deletes_for(entry).equality_deletes

    return applying


def _not_compared(files: PackedFiles, before: ConversionProgress | None) -> PackedFiles:
    """The files, without the equality deletes that they were compared with before."""
    if before is None:
        return files
    entries = files.entries
    is_covered = before.covers(
        entries.data_sequence_number, entries.file_sequence_number, entries.paths
    )
    newer = _with_keys(
        files.filter(is_covered), lambda entry: entry.file_sequence_number > before.deletes
    )
    return PackedFiles.concat([files.filter(~is_covered), newer])


def _of_targets(files: PackedFiles, targets: frozenset[FileKey]) -> PackedFiles:
    """The files, with some of their equality deletes."""
    return _with_keys(files, lambda entry: file_key(entry.data_file) in targets)


def _with_keys(files: PackedFiles, condition: Callable[[ManifestEntry], bool]) -> PackedFiles:
    """The files that have equality deletes of which a condition holds, without the others."""
    # Many files share one tuple of deletes.
    kept: dict[int, tuple[ManifestEntry, ...]] = {}
    applying = []
    for deletes in files.deletes:
        keys = deletes.equality_deletes
        if id(keys) not in kept:
            kept[id(keys)] = tuple(filter(condition, keys))
        applying.append(replace(deletes, equality_deletes=kept[id(keys)]))
    found = replace(files, deletes=tuple(applying))
    return found.filter(found.by_deletes(_key_count) > 0)


def _distinct(files: PackedFiles) -> list[DataFile]:
    """The equality delete files that apply to some of the files."""
    entries = (entry for found in files.applied() for entry in found.equality_deletes)
    return list({file_key(entry.data_file): entry.data_file for entry in entries}.values())


def _bytes_of_deletes(files: PackedFiles) -> int:
    return sum(file.file_size_in_bytes for file in _distinct(files))


def _ranks(names: pa.Array) -> npt.NDArray[np.uint64]:
    """For each name, how many others are less."""
    ranks: npt.NDArray[np.uint64] = pc.rank(names, tiebreaker="min").to_numpy()
    return ranks


def _key_count(deletes: AppliedDeletes) -> int:
    return len(deletes.equality_deletes)


def _keys(entries: Iterable[ManifestEntry]) -> Iterable[FileKey]:
    return (file_key(entry.data_file) for entry in entries)
