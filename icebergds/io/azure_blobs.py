"""Lists blobs of Azure, and makes and removes directories, by requests of its client.

adlfs lists more than the directory that was asked for, returns all pages at once, and has no empty
directories. Accounts with a hierarchical namespace have directories; in others, Hadoop's clients
mark them by an empty blob of the directory's name, with metadata that says so.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BlobPage:
    """Some blobs below a directory.

    Attributes:
        blobs: their names below the directory, with the time of the last change and the size.
        date: the header of the answer.
        next: what asks for the next page; None if this is the last one.
    """

    blobs: tuple[tuple[str, datetime | None, int | None], ...]
    date: str | None
    next: str | None


def connect_by(options: Mapping[str, Any], fs: Any) -> None:
    """Makes a file system of adlfs keep to its options.

    It would prefer the connection string of the environment, which may be of another account.
    """
    known = getattr(fs, "connection_string", None)
    if options and "connection_string" not in options and known is not None:
        fs.connection_string = None
        fs.do_connect()


def bound_retries(fs: Any) -> None:
    """Lets requests that reach no server fail sooner, and those that get no token at once.

    An operation makes several requests, and the client repeats each one three times, after longer
    and longer waits: some minutes go by. Requests that are answered are repeated as often as ever.
    """
    client = getattr(fs, "service_client", None)
    policy: Any = getattr(getattr(client, "_config", None), "retry_policy", None)
    if hasattr(policy, "connect_retries"):
        policy.connect_retries = _CONNECT_RETRIES
    if hasattr(policy, "increment") and "increment" not in vars(policy):
        policy.increment = _without_tokens(policy.increment)


def _without_tokens(increment: Callable[..., bool]) -> Callable[..., bool]:
    """Whether to repeat a request, as a policy of the client says, but never for want of a token.

    Other clients of Azure do not, either.
    """

    def checked(*args: Any, error: Exception | None = None, **kwargs: Any) -> bool:
        from azure.core.exceptions import ClientAuthenticationError

        # Answers that refuse a request are not errors yet.
        if isinstance(error, ClientAuthenticationError):
            return False
        return increment(*args, error=error, **kwargs)

    return checked


_CONNECT_RETRIES = 1


def names_of_blobs(fs: Any, key: str) -> list[str]:
    """Names of what is directly inside a directory.

    Raises:
        FileNotFoundError: the directory does not exist.
    """
    container, prefix = _prefix(key)

    async def names() -> set[str] | None:
        async with fs.service_client.get_container_client(container) as client:
            found = [entry.name async for entry in client.walk_blobs(name_starts_with=prefix)]
            if not (found or await _is_marked(client, prefix)):
                return None
        return {name[len(prefix) :].rstrip("/") for name in found}

    found = _run(fs, names)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
    return sorted(found - {""})


def page_of_blobs(fs: Any, key: str, token: str | None, size: int) -> BlobPage:
    """One answer to a listing of all blobs below a directory.

    Args:
        fs: fsspec's file system.
        key: its path of the directory.
        token: `next` of the page before; None for the first one.
        size: blobs in a page at most.
    """
    container, prefix = _prefix(key)
    dates: list[str | None] = []

    def note(answer: Any) -> None:
        dates.append(answer.http_response.headers.get("date"))

    async def page() -> BlobPage:
        async with fs.service_client.get_container_client(container) as client:
            pages = client.list_blobs(
                name_starts_with=prefix,
                include=["metadata"],
                results_per_page=size,
                raw_response_hook=note,
            ).by_page(token)
            found = [blob async for blob in await anext(pages)]
        blobs = tuple(
            (blob.name[len(prefix) :], blob.last_modified, blob.size)
            for blob in found
            if not _is_directory(blob)
        )
        return BlobPage(blobs, dates[-1] if dates else None, pages.continuation_token or None)

    return _run(fs, page)


def make_folder(fs: Any, key: str) -> None:
    """Creates a directory; an existing one is fine.

    Raises:
        FileExistsError: a file has its name.
    """
    container, prefix = _prefix(key)

    async def make() -> None:
        from azure.core.exceptions import ResourceExistsError

        async with fs.service_client.get_container_client(container) as client:
            blob = client.get_blob_client(prefix.rstrip("/"))
            try:
                # Not over a file.
                await blob.upload_blob(b"", overwrite=False, metadata={_FOLDER: "true"})
            except ResourceExistsError:
                if not await _is_marked(client, prefix):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key) from None

    _run(fs, make)


def remove_folder(fs: Any, key: str) -> None:
    """Removes a directory if it is empty; a file that is written meanwhile is not lost.

    Raises:
        OSError: it does not exist or is not empty.
    """
    container, prefix = _prefix(key)

    async def remove() -> None:
        async with fs.service_client.get_container_client(container) as client:
            async for _ in client.list_blobs(name_starts_with=prefix, results_per_page=1):
                raise OSError(errno.ENOTEMPTY, "the directory is not empty", key)
            if not await _is_marked(client, prefix):
                raise FileNotFoundError(errno.ENOENT, "no such directory", key)
            await client.delete_blob(prefix.rstrip("/"))

    _run(fs, remove)


_FOLDER = "hdi_isfolder"


async def _is_marked(client: Any, prefix: str) -> bool:
    """Whether there is a blob that marks a directory."""
    from azure.core.exceptions import ResourceNotFoundError

    if not prefix:
        return bool(await client.exists())
    try:
        return _is_directory(await client.get_blob_client(prefix[:-1]).get_blob_properties())
    except ResourceNotFoundError:
        return False


def _prefix(key: str) -> tuple[str, str]:
    container, _, name = key.rstrip("/").partition("/")
    return container, f"{name}/" if name else ""


def _is_directory(blob: Any) -> bool:
    """Whether it is a directory of an account with a hierarchical namespace, or a marker of one."""
    metadata = {name.lower(): value for name, value in (blob.metadata or {}).items()}
    return metadata.get(_FOLDER) == "true" or blob.name.endswith("/")


def _run(fs: Any, coroutine: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    # Imported here: not all processes that open files need its event loop.
    from fsspec.asyn import sync

    result: _T = sync(fs.loop, coroutine)
    return result
