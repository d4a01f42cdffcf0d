"""Uploads one file in parts, by the requests of each storage."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from icebergds.io.azure_options import FILE_METADATA


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
