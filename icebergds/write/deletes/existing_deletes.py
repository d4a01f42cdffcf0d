"""Reads existing position deletes, to merge them with new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.deletion_vector import read_deletion_vector
from icebergds.formats.deletes.position_deletes import read_position_deletes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.wrong_counts import Recorded
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile


def read_existing_deletes(
    io: FileIO, deletes: Mapping[str, Iterable[DataFile]]
) -> dict[str, PositionSet]:
    """Reads the deleted positions of data files; each delete file is read once.

    Args:
        io: the storage of the files.
        deletes: position delete files and deletion vectors, by the path of the data file.

    Raises:
        CorruptFileError, MissingFileError: a file cannot be read.
        InvalidMetadataError: the entry of a deletion vector lacks its offset or length.
    """
    found: dict[str, list[PositionSet]] = {}
    shared: dict[str, tuple[DataFile, set[str]]] = {}
    for path, files in deletes.items():
        for file in files:
            if file.is_deletion_vector:
                found.setdefault(path, []).append(_read_vector(io, file))
            else:
                shared.setdefault(file.file_path, (file, set()))[1].add(path)
    for file, paths in shared.values():
        recorded = Recorded(file.record_count, file.file_size_in_bytes)
        by_path = read_position_deletes(
            io, file.file_path, file.file_format, paths=paths, recorded=recorded
        )
        for path, positions in by_path.items():
            found.setdefault(path, []).append(positions)
    return {path: PositionSet.union(sets) for path, sets in found.items()}


def _read_vector(io: FileIO, file: DataFile) -> PositionSet:
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise InvalidMetadataError(
            f"deletion vector in {file.file_path}: its manifest entry must have content_offset "
            "and content_size_in_bytes"
        )
    return read_deletion_vector(
        io, file.file_path, file.content_offset, file.content_size_in_bytes, file.record_count
    )
