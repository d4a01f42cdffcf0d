"""Collects the position deletes of live data files from many delete files."""

from __future__ import annotations

from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.position_deletes import PositionBatch
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.operations.maintenance.deletes.live_files import LiveFiles, Mask, Numbers

_Codes = npt.NDArray[np.int64]

# Sorted by data file at once: many delete files have few rows of each data file.
_ROWS_AT_ONCE = 1 << 20


class LivePositions:
    """Collects positions from several threads, in about as much memory as their sets."""

    def __init__(self, live: LiveFiles) -> None:
        self._live = live
        self._lock = Lock()
        self._codes: dict[str, int] = {}
        # By code: the data sequence numbers of the data file.
        self._lowest: Numbers = np.empty(0, np.int64)
        self._highest: Numbers = np.empty(0, np.int64)
        self._collected: list[PositionCollector] = []
        self._pending: list[tuple[_Codes, Positions]] = []
        self._pending_count = 0

    def add(self, batch: PositionBatch, data_sequence_number: int) -> None:
        """Takes those rows of a delete file that apply to live data files.

        Raises:
            InvalidMetadataError: they apply to one entry of a data file, but not to another one.
        """
        with self._lock:
            named = self._codes_of(batch.paths)
            is_live = self._lowest[named] <= data_sequence_number
            self._refuse_partly(batch, is_live & (self._highest[named] > data_sequence_number))
            codes, positions = named[batch.codes], batch.positions
            if not is_live.all():
                kept = is_live[batch.codes]
                codes, positions = codes[kept], positions[kept]
            self._pending.append((codes, positions))
            self._pending_count += len(codes)
            if self._pending_count >= _ROWS_AT_ONCE:
                self._sort_pending()

    def result(self) -> list[tuple[str, PositionSet]]:
        """The positions of each data file that has some."""
        self._sort_pending()
        found = zip(self._codes, self._collected, strict=True)
        return [(path, positions.result()) for path, positions in found if positions.added]

    def _codes_of(self, paths: list[str]) -> _Codes:
        new = [path for path in paths if path not in self._codes]
        if new:
            lowest, highest = self._live.numbers_of(pa.array(new, pa.string()))
            self._lowest = np.append(self._lowest, lowest)
            self._highest = np.append(self._highest, highest)
            self._codes.update(zip(new, range(len(self._codes), len(self._lowest)), strict=True))
            self._collected += (PositionCollector() for _ in new)
        return np.fromiter((self._codes[path] for path in paths), np.int64, len(paths))

    def _refuse_partly(self, batch: PositionBatch, is_partly: Mask) -> None:
        if is_partly.any():
            raise InvalidMetadataError(
                f"data file {batch.paths[int(is_partly.argmax())]} is listed several times, and a "
                "position delete file applies to the older entries only, so it cannot be "
                "rewritten; remove the file from the table first"
            )

    def _sort_pending(self) -> None:
        if not self._pending:
            return
        codes, positions = map(np.concatenate, zip(*self._pending, strict=True))
        self._pending, self._pending_count = [], 0
        order = codes.argsort(kind="stable")
        codes, positions = codes[order], positions[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        parts = np.split(positions, starts[1:])
        for code, part in zip(codes[starts].tolist(), parts, strict=False):
            self._collected[code].add(part.copy())
