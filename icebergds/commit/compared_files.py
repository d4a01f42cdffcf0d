"""Keeps many files in little memory: new ones compressed, compared ones as columns."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.selection import Mask
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.packed_entries import Int32s, PackedEntries
from icebergds.spec.manifest import DataFile, FileContent, ManifestEntry

_AT_A_TIME = 1024


@dataclass(frozen=True, slots=True)
class ComparedDeletes:
    """The deletes of a data file when its rows were compared with its equality deletes.

    Attributes:
        keys: the identities of the equality deletes.
        own: the position deletes that apply to one data file only.
    """

    keys: frozenset[FileKey]
    own: tuple[DataFile, ...]

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry]) -> ComparedDeletes:
        """The deletes that the entries list."""
        files = [entry.data_file for entry in entries]
        by_key = [file for file in files if file.content is FileContent.EQUALITY_DELETES]
        by_position = (file for file in files if file.content is FileContent.POSITION_DELETES)
        own = tuple(file for file in by_position if only_data_path(file) is not None)
        return cls(frozenset(map(file_key, by_key)), own)

    @property
    def vector(self) -> FileKey | None:
        """The identity of the deletion vector."""
        return next((file_key(file) for file in self.own if file.is_deletion_vector), None)


@dataclass(frozen=True, slots=True, eq=False)
class ComparedFiles:
    """Data files, many of which share the same deletes.

    Attributes:
        numbers: for each of `entries`, the position of its deletes in `deletes`.
        deletes: the deletes of these files, and perhaps of others.
    """

    entries: PackedEntries
    numbers: Int32s
    deletes: tuple[ComparedDeletes, ...]

    @classmethod
    def concat(cls, parts: Sequence[ComparedFiles]) -> ComparedFiles:
        """The files of all parts, in their order."""
        entries = PackedEntries.concat([part.entries for part in parts])
        known: dict[int, tuple[ComparedDeletes, ...]] = {id(p.deletes): p.deletes for p in parts}
        ends = np.cumsum([len(deletes) for deletes in known.values()])
        first = dict(zip(known, [0, *ends.tolist()], strict=False))
        numbers = [part.numbers + np.int32(first[id(part.deletes)]) for part in parts]
        return cls(
            entries,
            np.concatenate([np.empty(0, np.int32), *numbers]),
            tuple(one for deletes in known.values() for one in deletes),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ComparedFiles:
        """Some of the files, by their numbers, in that order."""
        return ComparedFiles(self.entries.take(rows), self.numbers[rows], self.deletes)

    def filter(self, mask: Mask) -> ComparedFiles:
        """The files for which a mask is true."""
        return self.take(np.flatnonzero(mask))

    def having(self, condition: Callable[[ComparedDeletes], bool]) -> Mask:
        """Marks the files for whose deletes a condition holds."""
        numbers, at = np.unique(self.numbers, return_inverse=True)
        return np.array([condition(self.deletes[number]) for number in numbers], np.bool_)[at]

    def keys(self) -> frozenset[FileKey]:
        """The equality deletes of all these files."""
        found = (self.deletes[number].keys for number in np.unique(self.numbers))
        return frozenset[FileKey]().union(*found)

    def deletes_of(self, number: int) -> ComparedDeletes:
        """The deletes of a file."""
        return self.deletes[int(self.numbers[number])]


@dataclass(frozen=True, slots=True, eq=False)
class CompressedFiles:
    """Compressed files; a deletion vector takes about 50 bytes.

    Iterating over them creates their objects, a few at a time.
    """

    _parts: tuple[_Part, ...]

    @classmethod
    def of(cls, files: Iterable[DataFile]) -> CompressedFiles:
        """Compresses files."""
        left = iter(files)
        return cls(tuple(map(_Part.of, iter(lambda: list(islice(left, _AT_A_TIME)), []))))

    @classmethod
    def concat(cls, parts: Iterable[CompressedFiles]) -> CompressedFiles:
        """The files of all parts, in their order."""
        return cls(tuple(part for files in parts for part in files._parts))

    def __len__(self) -> int:
        return sum(part.count for part in self._parts)

    def __iter__(self) -> Iterator[DataFile]:
        for part in self._parts:
            yield from part.files()

    def filter(self, mask: Mask) -> CompressedFiles:
        """The files for which a mask is true."""
        ends = np.cumsum([part.count for part in self._parts])
        chosen = zip(self._parts, np.split(mask, ends), strict=False)
        return CompressedFiles(tuple(part.filter(of_part) for part, of_part in chosen))


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    count: int
    data: bytes

    @classmethod
    def of(cls, files: Sequence[DataFile]) -> _Part:
        # Their paths have much in common.
        return cls(len(files), zlib.compress(pickle.dumps(files, pickle.HIGHEST_PROTOCOL), level=1))

    def files(self) -> Sequence[DataFile]:
        files: Sequence[DataFile] = pickle.loads(zlib.decompress(self.data))
        return files

    def filter(self, mask: Mask) -> _Part:
        if mask.all():
            return self
        return _Part.of([file for file, chosen in zip(self.files(), mask, strict=True) if chosen])
