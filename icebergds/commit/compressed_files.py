"""Keeps many new files in little memory."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from icebergds.commit.selection import Mask
from icebergds.spec.manifest import DataFile

_AT_A_TIME = 1024


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
