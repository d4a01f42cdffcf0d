"""Reads a remote file by ranges of bytes, as few and as many at a time as its latency asks for."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from icebergds.io.failures import RemoteFile, storage_failures

Range: TypeAlias = tuple[int, int]
"""The first byte, and the one after the last."""

Fetch: TypeAlias = Callable[[Sequence[Range]], list[bytes]]
"""Reads ranges, side by side if the storage can; one that ends behind the file is shorter."""

# One request reads most footers completely.
_TAIL = 64 * 2**10
# Smaller files are read by one request.
_WHOLE = 512 * 2**10
# To read so much more takes no longer than another request.
_GAP = 256 * 2**10
# Longer ranges are read in parts, side by side.
_PART = 8 * 2**20
# Of each stream, so much is read at least.
_LEAST = 256 * 2**10


@dataclass(slots=True)
class _Stream:
    """A range that is read from its start: what of it was read, and is not needed any more.

    Attributes:
        window: how much is read before it is needed.
        at: where it is needed from.
        data: what was read, from there.
    """

    start: int
    end: int
    window: int
    at: int
    data: bytes = b""

    def move(self, at: int) -> None:
        """Drops what is before a place."""
        self.data, self.at = self.data[max(0, at - self.at) :], at

    def missing(self, end: int) -> Range:
        """What to read so that it is there up to an end, and further by the window."""
        return self.at + len(self.data), min(self.end, max(end, self.at + self.window))


@dataclass(frozen=True, slots=True)
class Open:
    """A file to open; the attributes are the arguments of `FileIO.open`."""

    location: str
    size: int | None = None
    first: Range | None = None


class RangedFile:
    """A file that is open for random access, of which ranges are kept in memory.

    Args:
        fetch: reads ranges of the file.
        told_size: asks the storage for the size.
        size: of the file in bytes, as metadata says, which may be wrong: its end is read at once,
            and one byte more, so that the storage need not be asked. None if it is not known.
        first: a range to read at once, instead of the end.
        close: called when the file is closed.

    Errors are those of `fetch` and `told_size`.
    """

    def __init__(
        self,
        fetch: Fetch,
        told_size: Callable[[], int],
        size: int | None = None,
        first: Range | None = None,
        close: Callable[[], object] | None = None,
    ) -> None:
        self._fetch, self._close = fetch, close
        self._position = 0
        self._kept: tuple[int, bytes] = (0, b"")
        self._starts: list[int] = []
        self._parts: list[bytes] = []
        self._streams: list[_Stream] = []
        self.closed = False
        self.size = told_size() if size is None else self._opened(size, first, told_size)

    def _opened(self, size: int, first: Range | None, told_size: Callable[[], int]) -> int:
        """Reads the end or the first range; returns the size."""
        start, end = first or (0 if size <= _WHOLE else size - _TAIL, size + 1)
        try:
            (data,) = self._fetch([(start, end)])
        except FileNotFoundError:
            raise
        except Exception:
            # Storages refuse ranges that begin behind the end.
            true_size = told_size()
            if start < true_size:
                raise
            return true_size
        expected = end - start - (0 if first else 1)
        if len(data) != expected:
            return told_size()
        self._kept = (start, data)
        return size

    def prefetch(self, ranges: Iterable[Range]) -> None:
        """Reads ranges side by side, for reads that follow; drops what was prefetched before."""
        self._starts, self._parts, self._streams = [], [], []
        missing = [each for each in _merged(ranges) if self._in_memory(*each) is None]
        parts = [part for each in missing for part in _split(each)]
        if parts:
            self._starts, self._parts = [start for start, _ in parts], self._fetch(parts)

    def stream(self, ranges: Iterable[Range], in_memory: int) -> None:
        """Announces ranges that are read in step, each from its start; drops what was prefetched.

        Whenever one has not been read far enough, all are read on, side by side.

        Args:
            in_memory: how many bytes of them to read before they are needed.
        """
        self.prefetch([])
        wanted = [(start, end) for start, end in ranges if start < end]
        total = sum(end - start for start, end in wanted)
        self._streams = [
            _Stream(start, end, max(_LEAST, in_memory * (end - start) // total), start)
            for start, end in wanted
        ]

    def read(self, size: int = -1) -> bytes:
        start = self._position
        end = self.size if size < 0 else min(start + size, self.size)
        if end <= start:
            return b""
        self._position = end
        found = self._in_memory(start, end)
        if found is None:
            found = self._streamed(start, end)
        return b"".join(self._fetch(list(_split((start, end))))) if found is None else found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if self._close is not None and not self.closed:
            self._close()
        self.closed = True
        self._kept, self._starts, self._parts, self._streams = (0, b""), [], [], []

    def _in_memory(self, start: int, end: int) -> bytes | None:
        """A range, if all of it was read before."""
        kept_start, kept = self._kept
        if kept_start <= start and end <= kept_start + len(kept):
            return kept[start - kept_start : end - kept_start]
        at, found = bisect_right(self._starts, start) - 1, []
        while 0 <= at < len(self._parts) and start < end:
            part = self._parts[at][start - self._starts[at] : end - self._starts[at]]
            if not part:
                break
            found.append(part)
            start, at = start + len(part), at + 1
            if at < len(self._starts) and self._starts[at] != start:
                break
        return b"".join(found) if start == end else None

    def _streamed(self, start: int, end: int) -> bytes | None:
        """A range of a stream; None if it is of none, or before what was read last."""
        stream = next((s for s in self._streams if s.at <= start and end <= s.end), None)
        if stream is None:
            return None
        stream.move(start)
        if len(stream.data) < end - start:
            missing = [
                (each, part)
                for each in self._streams
                for part in _split(each.missing(end if each is stream else each.at))
            ]
            found = self._fetch([part for _, part in missing])
            for (each, _), data in zip(missing, found, strict=True):
                each.data += data
        return stream.data[: end - start]


class PrefetchingFile(pa.PythonFile):  # type: ignore[misc]
    """A remote file that Arrow reads, and whose ranges can be read before.

    Args:
        operation, location: for errors, which are StorageErrors.
    """

    def __new__(cls, file: RangedFile, operation: str, location: str) -> PrefetchingFile:
        self: PrefetchingFile = super().__new__(cls, RemoteFile(file, operation, location), "r")
        return self

    def __init__(self, file: RangedFile, operation: str, location: str) -> None:
        super().__init__()
        self._file = file
        self._operation, self._location = operation, location

    def prefetch(self, ranges: Iterable[Range]) -> None:
        """Reads ranges side by side, for reads that follow; drops what was prefetched before.

        Raises:
            StorageError: they cannot be read.
        """
        with storage_failures(self._operation, self._location, Exception):
            self._file.prefetch(ranges)

    def stream(self, ranges: Iterable[Range], in_memory: int) -> None:
        """Announces ranges that are read in step, as `RangedFile.stream` says."""
        self._file.stream(ranges, in_memory)


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in order, those with small gaps between them as one."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start - merged[-1][1] <= _GAP:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _split(whole: Range) -> Iterator[Range]:
    start, end = whole
    for first in range(start, end, _PART):
        yield first, min(first + _PART, end)
