"""Writes remote files in parts, which are sent side by side while the next ones are filled.

No file appears before it is complete: small ones are sent by one request when they are closed, of
larger ones the upload is completed then, or aborted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import uuid
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from icebergds.io.azure_options import FILE_METADATA

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


class Upload(Protocol):
    """An upload of one file, which does not appear before it is complete.

    Attributes:
        path: the file system's path of the file.
        loop: runs what `send` returns.
    """

    path: str

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def put(self, data: bytes) -> None:
        """Sends the whole file by one request, in place of all other methods."""

    def begin(self) -> None:
        """Is called before the first part is sent."""

    def send(self, number: int, data: bytearray) -> Coroutine[Any, Any, Any]:
        """Sends a part; the numbers of parts start with 1."""

    def complete(self, sent: Sequence[Any]) -> None:
        """Makes the file appear.

        Args:
            sent: what `send` returned of all parts, in order.
        """

    def abort(self) -> None:
        """Gives up what was sent."""


class S3Upload:
    """A multipart upload."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self.path = fs, path
        self._id: str | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self._fs.loop
        return loop

    def put(self, data: bytes) -> None:
        self._fs.pipe_file(self.path, data)

    def begin(self) -> None:
        self._id = self._ask("create_multipart_upload")["UploadId"]

    def send(self, number: int, data: bytearray) -> Coroutine[Any, Any, Any]:
        return self._request("upload_part", UploadId=self._id, PartNumber=number, Body=data)

    def complete(self, sent: Sequence[Any]) -> None:
        parts = [
            {"PartNumber": number, **{name: answer[name] for name in _PROOFS if name in answer}}
            for number, answer in enumerate(sent, 1)
        ]
        self._ask("complete_multipart_upload", UploadId=self._id, MultipartUpload={"Parts": parts})

    def abort(self) -> None:
        self._ask("abort_multipart_upload", UploadId=self._id)

    def _ask(self, method: str, **arguments: Any) -> Any:
        request = self._request(method, **arguments)
        return asyncio.run_coroutine_threadsafe(request, self.loop).result()

    def _request(self, method: str, **arguments: Any) -> Coroutine[Any, Any, Any]:
        bucket, _, key = self.path.partition("/")
        request: Coroutine[Any, Any, Any] = self._fs._call_s3(
            method, Bucket=bucket, Key=key, **arguments
        )
        return request


class AzureUpload:
    """Blocks of a blob; those that are not committed are removed by Azure after a week."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self.path = fs, path
        # Another upload of the same blob has other blocks.
        self._id = uuid.uuid4().hex

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self._fs.loop
        return loop

    def put(self, data: bytes) -> None:
        self._fs.pipe_file(self.path, data)

    def begin(self) -> None:
        """Needs no request."""

    async def send(self, number: int, data: bytearray) -> str:
        block = f"{self._id}{number:05}"
        async with self._blob() as blob:
            await blob.stage_block(block, memoryview(data), length=len(data))
        return block

    def complete(self, sent: Sequence[Any]) -> None:
        asyncio.run_coroutine_threadsafe(self._commit(sent), self.loop).result()

    def abort(self) -> None:
        """Needs no request: nothing appears."""

    async def _commit(self, blocks: Sequence[str]) -> None:
        from azure.storage.blob import BlobBlock

        async with self._blob() as blob:
            await blob.commit_block_list(list(map(BlobBlock, blocks)), metadata=FILE_METADATA)

    def _blob(self) -> Any:
        container, _, name = self.path.partition("/")
        return self._fs.service_client.get_blob_client(container, name)


# What the storage told of a part, which it wants to be told when the file is complete.
_PROOFS = ("ETag", "ChecksumSHA256")
