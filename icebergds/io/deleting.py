"""Deletes many remote files in few requests."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

_LOG = logging.getLogger(__name__)


def delete_keys(fs: Any, protocol: str, keys: Sequence[str]) -> dict[str, Exception]:
    """Deletes files; missing ones are fine.

    Args:
        fs: fsspec's file system.
        protocol: fsspec's name of it.
        keys: the file system's paths of the files; no character in them is special.

    Returns:
        The keys that could not be deleted, with their errors.
    """
    match protocol:
        case "s3":
            batches = (_delete_s3(fs, batch) for batch in _batched(keys, _S3_BATCH))
        case "gs":
            # gcsfs reads these characters as glob patterns and would delete whatever they match.
            plain = [key for key in keys if not _PATTERN & set(key)]
            rest = [key for key in keys if _PATTERN & set(key)]
            batches = (_delete_gcs(fs, batch) for batch in _batched(plain, _GCS_BATCH))
            return {**_merged(batches), **_delete_each(fs, rest)}
        case _:
            return _delete_each(fs, keys)
    return _merged(batches)


def delete_key(fs: Any, key: str) -> None:
    """Deletes one file; a missing one is fine."""
    try:
        fs.rm_file(key)
    except FileNotFoundError:
        return


_S3_BATCH = 1000
_GCS_BATCH = 100
_PATTERN = frozenset("*?[")
_THREADS = 16
_TRANSIENT = ("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout")


def _delete_s3(fs: Any, keys: Sequence[str]) -> dict[str, Exception]:
    """Sends one DeleteObjects request; s3fs's `rm` does not say which files it failed to delete."""
    bucket = keys[0].partition("/")[0]
    objects = {key.partition("/")[2]: key for key in keys}
    try:
        answer = fs.call_s3(
            "delete_objects",
            Bucket=bucket,
            Delete={"Objects": [{"Key": name} for name in objects], "Quiet": True},
        )
    except Exception as error:
        # Not every S3-compatible storage supports this request.
        _LOG.info("%d files are deleted one by one: %s", len(keys), error)
        return _delete_each(fs, keys)
    errors = [each for each in answer.get("Errors", ()) if each.get("Code") != "NoSuchKey"]
    # Requests of their own are retried by the client.
    again = [objects[each["Key"]] for each in errors if each.get("Code") in _TRANSIENT]
    final = {
        objects[each["Key"]]: OSError(f"{each.get('Code')}: {each.get('Message')}")
        for each in errors
        if each.get("Code") not in _TRANSIENT
    }
    return {**final, **_delete_each(fs, again)}


def _delete_gcs(fs: Any, keys: Sequence[str]) -> dict[str, Exception]:
    try:
        fs.rm(list(keys))
    except Exception as error:
        # The error names only the first failure.
        _LOG.info("%d files are deleted one by one: %s", len(keys), error)
        return _delete_each(fs, keys)
    return {}


def _delete_each(fs: Any, keys: Sequence[str]) -> dict[str, Exception]:
    def attempt(key: str) -> Exception | None:
        try:
            delete_key(fs, key)
        except Exception as error:
            return error
        return None

    if len(keys) < 2:
        results = [attempt(key) for key in keys]
    else:
        with ThreadPoolExecutor(min(_THREADS, len(keys))) as pool:
            results = list(pool.map(attempt, keys))
    return {key: error for key, error in zip(keys, results, strict=True) if error is not None}


def _merged(batches: Iterator[dict[str, Exception]]) -> dict[str, Exception]:
    return {key: error for batch in batches for key, error in batch.items()}


def _batched(keys: Sequence[str], size: int) -> Iterator[list[str]]:
    remaining = iter(keys)
    while batch := list(islice(remaining, size)):
        yield batch
