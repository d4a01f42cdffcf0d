"""Tells tasks which data files are live, in 16 bytes a file."""

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


@dataclass(frozen=True, slots=True, eq=False)
class LiveFiles:
    """Live data files: 64-bit hashes of their paths, and their data sequence numbers.

    A path that is not live may have the hash of one that is: then its deletes are kept, and still
    apply to no file.

    Attributes:
        seed: of the hashes.
        hashes: ascending and distinct.
        numbers: the data sequence number of each file; the lowest of files with the same hash.
    """

    seed: int
    hashes: Hashes
    numbers: Numbers

    @classmethod
    def of(cls, seed: int, hashes: Hashes, numbers: Numbers) -> LiveFiles:
        """The files with some results of `hash_paths` with this seed, in any order."""
        order = np.lexsort((numbers, hashes))
        hashes, numbers = hashes[order], numbers[order]
        first = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
        return cls(seed, hashes[first], numbers[first])

    def named(self, paths: pa.StringArray, data_sequence_number: int) -> Mask:
        """Which of some paths are live files that position deletes with this number apply to."""
        if not len(self.hashes):
            return np.zeros(len(paths), np.bool_)
        wanted = hash_paths(paths, self.seed)
        found = self.hashes.searchsorted(wanted).clip(max=len(self.hashes) - 1)
        mask: Mask = (self.hashes[found] == wanted) & (self.numbers[found] <= data_sequence_number)
        return mask


def hash_paths(paths: pa.StringArray, seed: int) -> Hashes:
    """The hashes of paths, for `LiveFiles`."""
    return hash_columns([encode_column(paths, DELETE_FILE_PATH)], len(paths), seed)
