"""Decompresses data of unknown size up to a limit, so that little data cannot fill the memory."""

from __future__ import annotations

import pyarrow as pa

MAX_BLOCK_BYTES = 512 * 1024 * 1024
"""How large a block may be decompressed, unless the user says otherwise."""

_SMALL = 64 * 1024


class TooLargeError(ValueError):
    """The data has more bytes than it may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"it has more than {limit} bytes; if the file is to be trusted, set a higher limit "
            "with the option 'max-block-bytes'"
        )


def decompress_stream(codec: str, stored: bytes | memoryview, limit: int) -> bytes:
    """Decompresses with a codec of Arrow that needs no size in advance, such as zstd.

    Raises:
        TooLargeError: it has more bytes than `limit`.
        OSError, pyarrow.ArrowException: the data is damaged.
    """
    parts: list[bytes] = []
    left, size = limit + 1, max(_SMALL, 4 * len(stored))
    with pa.CompressedInputStream(pa.BufferReader(stored), codec) as stream:
        while left:
            asked = min(left, size)
            part = stream.read(asked)
            if not part:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            parts.append(part)
            left -= len(part)
            # Memory is reserved for all that is asked for, though at the end there is no more.
            size = _SMALL if len(part) < asked else 4 * size
    raise TooLargeError(limit)
