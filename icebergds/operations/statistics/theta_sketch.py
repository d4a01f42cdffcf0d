"""Builds, merges and serialises Theta sketches (Puffin spec: `apache-datasketches-theta-v1`).

A Theta sketch estimates the number of distinct values from their smallest hashes. The specification
asks for the Alpha family with its default size and seed, in the compact form.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from icebergds.formats.deletes.key_hash import distinct_hashes

UInt64s = npt.NDArray[np.uint64]

NOMINAL_ENTRIES = 4096
"""About how many hashes a sketch keeps: the default of the library that the spec refers to."""

HASH_SEED = 9001
_MAX_THETA = 2**63 - 1
_ALPHA = NOMINAL_ENTRIES / (NOMINAL_ENTRIES + 1)
_AT_A_TIME = 4096
_NO_HASHES = np.empty(0, np.uint64)

_SERIAL_VERSION, _COMPACT_FAMILY = 3, 3
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 2, 4, 8, 16, 32
_FIRST_LONG = struct.Struct("<BBBBBBH")
_COUNT_AND_P = struct.Struct("<If")
_THETA = struct.Struct("<Q")
# The hash of the seed, by which readers refuse sketches of other hashes. Empty sketches have none.
_SEED_HASH = 0x93CC


@dataclass(frozen=True, slots=True, eq=False)
class ThetaSketch:
    """A compact sketch.

    Attributes:
        theta: every value whose hash is below it is in the sketch; 2**63 - 1 for all values.
        hashes: hashes of 63 bits, ascending, all below theta.
    """

    theta: int = _MAX_THETA
    hashes: UInt64s = field(default_factory=lambda: _NO_HASHES)

    @property
    def estimate(self) -> float:
        """The number of distinct values; exact as long as no value was left out."""
        return len(self.hashes) * (float(_MAX_THETA) / float(self.theta))

    def to_bytes(self) -> bytes:
        """The compact serialised form, with ordered hashes."""
        count, is_exact = len(self.hashes), self.theta == _MAX_THETA
        flags = _READ_ONLY | _COMPACT | _ORDERED
        if is_exact and not count:
            return _first_long(1, flags | _EMPTY, 0)
        hashes = self.hashes.astype("<u8").tobytes()
        if is_exact and count == 1:
            return _first_long(1, flags | _SINGLE, _SEED_HASH) + hashes
        out = _first_long(2 if is_exact else 3, flags, _SEED_HASH) + _COUNT_AND_P.pack(count, 1.0)
        return out + (b"" if is_exact else _THETA.pack(self.theta)) + hashes


class AlphaSketch:
    """Adds hashes to a sketch of the Alpha family, which depends on their order."""

    def __init__(self) -> None:
        self._theta = _MAX_THETA
        # Hashes that theta has passed meanwhile stay: few, as ever fewer hashes are below it.
        self._accepted: set[int] = set()

    def update(self, hashes: UInt64s) -> None:
        """Adds hashes of values, which may be repeated; costs time only for those below theta."""
        for start in range(0, len(hashes), _AT_A_TIME):
            part = hashes[start : start + _AT_A_TIME]
            self._accept(part[part < np.uint64(self._theta)].tolist())

    def compact(self) -> ThetaSketch:
        """The sketch as it is now."""
        hashes = np.sort(np.fromiter(self._accepted, np.uint64, len(self._accepted)))
        return ThetaSketch(self._theta, _below(hashes, self._theta))

    def _accept(self, hashes: list[int]) -> None:
        accepted, theta = self._accepted, self._theta
        for value in hashes:
            # Zero marks free places in hash tables of the library, which rejects it.
            if not 0 < value < theta or value in accepted:
                continue
            accepted.add(value)
            if len(accepted) > NOMINAL_ENTRIES:
                theta = int(theta * _ALPHA)
        self._theta = theta


def merge_sketches(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """The sketch of all values of some sketches, with at most `NOMINAL_ENTRIES` hashes."""
    given = list(sketches)
    theta = min((sketch.theta for sketch in given), default=_MAX_THETA)
    hashes = _below(distinct_hashes(sketch.hashes for sketch in given), theta)
    if len(hashes) > NOMINAL_ENTRIES:
        return ThetaSketch(int(hashes[NOMINAL_ENTRIES]), hashes[:NOMINAL_ENTRIES])
    return ThetaSketch(theta, hashes)


def _below(ascending: UInt64s, theta: int) -> UInt64s:
    return ascending[: np.searchsorted(ascending, np.uint64(theta))]


def _first_long(longs: int, flags: int, seed_hash: int) -> bytes:
    """The first 8 bytes: how many such longs come before the hashes, and what kind of sketch."""
    return _FIRST_LONG.pack(longs, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, seed_hash)
