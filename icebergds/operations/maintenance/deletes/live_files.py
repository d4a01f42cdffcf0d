"""Describes for tasks which data files are live, in 16 bytes per file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.deletes.key_columns import encode_column
from icebergds.formats.deletes.key_hash import Hashes, hash_columns
from icebergds.spec.reserved import DELETE_FILE_PATH

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
"""Higher than the data sequence number of any delete file."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveFiles:
    """Live data files: 64-bit hashes of their paths, and their data sequence numbers.

    A path that is not live may have the hash of one that is: then its deletes are kept, and still
    apply to no file.

    Attributes:
        seed: the seed of the hashes.
        hashes: ascending and distinct.
        numbers: the data sequence number of each file; the lowest of files with the same hash.
        repeated: the hashes of files that are listed with several numbers, ascending.
        highest: the highest number of each of these.
    """

    seed: int
    hashes: Hashes
    numbers: Numbers
    repeated: Hashes
    highest: Numbers

    @classmethod
    def of(cls, seed: int, hashes: Hashes, numbers: Numbers) -> LiveFiles:
        """The files whose paths `hash_paths` hashed with this seed, in any order."""
        order = np.lexsort((numbers, hashes))
        hashes, numbers = hashes[order], numbers[order]
        is_other = hashes[1:] != hashes[:-1]
        first, last = np.append(True, is_other), np.append(is_other, True)
        if not len(hashes):
            first = last = np.empty(0, np.bool_)
        lowest, highest = numbers[first], numbers[last]
        is_repeated = lowest != highest
        hashes = hashes[first]
        return cls(seed, hashes, lowest, hashes[is_repeated], highest[is_repeated])

    def numbers_of(self, paths: pa.StringArray) -> tuple[Numbers, Numbers]:
        """The lowest and the highest data sequence number of some files; `NEVER` if not live."""
        wanted = hash_paths(paths, self.seed)
        lowest = _number_of(self.hashes, self.numbers, wanted)
        if not len(self.repeated):
            return lowest, lowest
        highest = _number_of(self.repeated, self.highest, wanted)
        return lowest, np.where(highest == NEVER, lowest, highest)


def _number_of(hashes: Hashes, numbers: Numbers, wanted: Hashes) -> Numbers:
    """The number of each wanted hash; a higher one than all others if it is not among `hashes`."""
    if not len(hashes):
        return np.full(len(wanted), NEVER)
    found = hashes.searchsorted(wanted).clip(max=len(hashes) - 1)
    return np.where(hashes[found] == wanted, numbers[found], NEVER)


def hash_paths(paths: pa.StringArray, seed: int) -> Hashes:
    """The hashes of paths, for `LiveFiles`."""
    return hash_columns([encode_column(paths, DELETE_FILE_PATH)], len(paths), seed)
