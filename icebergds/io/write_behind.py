"""Writes a file of fsspec in another thread, while the caller makes what follows.

For storages that take the parts of a file one after the other only.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from icebergds.io.threads import waiting_threads


class WriteBehind:
    """A file being written. After an error it is given up, and closing it raises that error.

    Args:
        begin: opens the file of fsspec, which does not appear before it is closed.
        put: writes a whole file of one part, in place of `begin`.
        part: so many bytes are written at once, while the next ones are in memory.

    Errors are those of the file. Those of writing a part are raised by a later call.
    """

    def __init__(self, begin: Callable[[], Any], put: Callable[[bytes], object], part: int) -> None:
        self._begin, self._put, self._part = begin, put, part
        self._file: Any = None
        self._buffer = bytearray()
        self._position = 0
        self._writing: Future[Any] | None = None
        self._failure: BaseException | None = None
        self.closed = False

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Does nothing: what is in memory is written when it is a part, or in the end."""

    def write(self, data: bytes) -> int:
        # Only if more follows.
        if len(self._buffer) >= self._part:
            self._wait()
            self._writing = waiting_threads().submit(self._append, self._buffer)
            self._buffer = bytearray()
        self._buffer += data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Completes the file; if that fails, it is discarded."""
        if self.closed:
            return
        self.closed = True
        try:
            self._wait()
            if self._file is None:
                self._put(bytes(self._buffer))
            else:
                self._file.write(self._buffer)
                self._file.close()
        except BaseException:
            self.discard()
            raise
        self._buffer = bytearray()

    def discard(self) -> None:
        """Gives the file up. Never raises."""
        self.closed = True
        self._buffer = bytearray()
        with suppress(Exception):
            self._wait()
        if self._file is None:
            return
        with suppress(Exception):
            self._file.discard()
        with suppress(Exception):
            # Else it would complete the file when it is collected.
            self._file.closed = True

    def __del__(self) -> None:
        # The file would complete itself with what it has.
        if not self.closed:
            self.discard()

    def _append(self, data: bytearray) -> None:
        if self._file is None:
            self._file = self._begin()
        self._file.write(data)

    def _wait(self) -> None:
        """Waits for the part that is being written."""
        writing, self._writing = self._writing, None
        try:
            if writing is not None:
                writing.result()
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            self._failure = error
            raise
