"""Writes remote files in parts, which are sent side by side while the next ones are filled.

No file appears before it is complete: small ones are sent by one request when they are closed, of
larger ones the upload is completed then, or aborted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import Future
from typing import Any

from icebergds.io.uploads import Upload

_LOG = logging.getLogger(__name__)
# All parts of a file but the last have the same size, which some storages demand; a file of S3 has
# 10,000 at most.
_PART = 16 * 2**20
# Parts of all files of a process that are being sent, as they are in memory.
_AT_ONCE = 8


class MultipartFile:
    """A file being written. After an error it is given up, and closing it raises that error.

    Args:
        upload: sends the file; a file that is there is replaced.

    Errors are those of the client. Those of sending a part are raised by a later call.
    """

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._buffer = bytearray()
        self._position = 0
        self._begun = False
        self._parts: list[Future[Any]] = []
        self._failure: BaseException | None = None
        self.closed = False

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Does nothing: what is in memory is sent when it is a part, or in the end."""

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            # Only if more follows: a file of one part needs one request.
            if len(self._buffer) == _PART:
                try:
                    self._send()
                except BaseException as error:
                    self._failure = error
                    raise
            taken = rest[: _PART - len(self._buffer)]
            self._buffer += taken
            rest = rest[len(taken) :]
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Completes the file; if that fails, it is discarded."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._failure is not None:
                raise self._failure
            if self._begun:
                self._send()
                self._upload.complete([part.result() for part in self._parts])
            else:
                self._upload.put(bytes(self._buffer))
        except BaseException:
            self.discard()
            raise
        self._buffer = bytearray()

    def discard(self) -> None:
        """Gives the file up: what was sent is deleted. Never raises."""
        self.closed = True
        self._buffer = bytearray()
        begun, self._begun = self._begun, False
        if not begun:
            return
        for part in self._parts:
            part.cancel()
        try:
            self._upload.abort()
        except Exception as error:
            _LOG.warning(
                "the incomplete upload of %s was left behind: %s", self._upload.path, error
            )

    def _send(self) -> None:
        """Starts to send the buffer as the next part."""
        for part in self._parts:
            if part.done():
                part.result()
        if not self._begun:
            self._upload.begin()
            self._begun = True
        slots = _slots()
        slots.acquire()
        try:
            request = self._upload.send(len(self._parts) + 1, self._buffer)
            part = asyncio.run_coroutine_threadsafe(request, self._upload.loop)
        except BaseException:
            slots.release()
            raise
        part.add_done_callback(lambda _: slots.release())
        self._parts.append(part)
        self._buffer = bytearray()


def _slots() -> threading.Semaphore:
    """Those of this process: after a fork of another one, nobody would free its slots."""
    global _process_slots
    if _process_slots is None or _process_slots[0] != os.getpid():
        _process_slots = os.getpid(), threading.Semaphore(_AT_ONCE)
    return _process_slots[1]


_process_slots: tuple[int, threading.Semaphore] | None = None
