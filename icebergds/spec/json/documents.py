"""Decodes the JSON documents of metadata files, plain or compressed with gzip."""

from __future__ import annotations

import json
import zlib
from typing import Any

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError

MAX_BYTES = 1024**3
"""How large metadata may be decompressed, unless the user says otherwise."""


def is_gzip(data: bytes) -> bool:
    """Whether a document is compressed with gzip."""
    return data.startswith(b"\x1f\x8b")


def compressed(data: bytes) -> bytes:
    """A document, compressed with gzip; equal documents give equal bytes."""
    compressor = zlib.compressobj(wbits=_GZIP)
    return compressor.compress(data) + compressor.flush()


def decoded(data: bytes, what: str, max_bytes: int | None = None) -> Any:
    """The JSON value of a document.

    Args:
        what: names the document in errors, such as `table metadata v1.metadata.json`.
        max_bytes: limits its decompressed size, by default to `MAX_BYTES`.

    Raises:
        InvalidMetadataError: it is larger or not JSON.
        UnsupportedFeatureError: it is compressed with zstd.
    """
    try:
        return json.loads(decompressed(data, what, max_bytes))
    except (zlib.error, ValueError, RecursionError) as error:
        raise InvalidMetadataError(
            f"{what} is damaged: {error}; expected a JSON object, plain or gzip"
        ) from error


_GZIP = 31
"""The window size that makes zlib read and write the gzip container."""


def decompressed(data: bytes, what: str, max_bytes: int | None = None) -> bytes:
    """The text of a document.

    Args, Raises: as for `decoded`; besides, zlib.error or ValueError if it is damaged.
    """
    if is_gzip(data):
        limit = max_bytes or MAX_BYTES
        stream = zlib.decompressobj(_GZIP)
        plain = stream.decompress(data, limit + 1)
        if len(plain) > limit:
            raise InvalidMetadataError(
                f"{what} has more than {limit} bytes once it is decompressed; if it is to be "
                "trusted, set a higher limit with the option 'max-metadata-bytes'"
            )
        if not stream.eof:
            raise ValueError("the compressed data ends early")
        return plain
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        raise UnsupportedFeatureError(
            f"{what} is compressed with zstd; the specification allows only gzip"
        )
    return data
