"""Reads the deleted positions of many data files, from all their delete files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.deletion_vector import read_deletion_vector
from icebergds.formats.deletes.position_deletes import read_position_deletes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.wrong_counts import Recorded
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.spec.manifest import DataFile

_Read: TypeAlias = Callable[[], Mapping[str, PositionSet]]


def read_existing_deletes(
    io: FileIO, deletes: Mapping[str, Iterable[DataFile]]
) -> dict[str, PositionSet]:
    """Reads the deleted positions of data files; each delete file is read once.

    Several are read side by side if they are remote.

    Args:
        io: the storage of the files.
        deletes: position delete files and deletion vectors, by the path of the data file.

    Raises:
        CorruptFileError, MissingFileError: a file cannot be read.
        InvalidMetadataError: the entry of a deletion vector lacks its offset or length.
    """
    reads: list[_Read] = []
    shared: dict[str, tuple[DataFile, set[str]]] = {}
    for path, files in deletes.items():
        for file in files:
            if file.is_deletion_vector:
                reads.append(partial(_read_vector, io, path, file))
            else:
                shared.setdefault(file.file_path, (file, set()))[1].add(path)
    reads += [partial(_read_positions, io, file, paths) for file, paths in shared.values()]
    found: dict[str, list[PositionSet]] = defaultdict(list)
    with ThreadPoolExecutor(readers_of(io, deletes)) as pool:
        for by_path in pool.map(_run, reads):
            for path, positions in by_path.items():
                found[path].append(positions)
    return {path: PositionSet.union(sets) for path, sets in found.items()}


def read_vector_of(io: FileIO, file: DataFile) -> PositionSet:
    """The positions of a deletion vector, by its manifest entry.

    Raises:
        CorruptFileError, MissingFileError: it cannot be read.
        InvalidMetadataError: the entry lacks its offset or length.
    """
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise InvalidMetadataError(
            f"deletion vector in {file.file_path}: its manifest entry must have content_offset "
            "and content_size_in_bytes"
        )
    return read_deletion_vector(
        io,
        file.file_path,
        file.content_offset,
        file.content_size_in_bytes,
        file.record_count,
        key_metadata=file.key_metadata,
    )


def _run(read: _Read) -> Mapping[str, PositionSet]:
    return read()


def _read_positions(io: FileIO, file: DataFile, paths: set[str]) -> Mapping[str, PositionSet]:
    recorded = Recorded(file.record_count, file.file_size_in_bytes)
    return read_position_deletes(
        io,
        file.file_path,
        file.file_format,
        paths=paths,
        recorded=recorded,
        key_metadata=file.key_metadata,
    )


def _read_vector(io: FileIO, path: str, file: DataFile) -> Mapping[str, PositionSet]:
    return {path: read_vector_of(io, file)}
