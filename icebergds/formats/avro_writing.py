"""Avro container files written whole, in memory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro

_BLOCK_BYTES = 64_000
_CODECS = {"gzip": "deflate", "uncompressed": "null", "zstd": "zstandard"}


def write_container(
    schema: dict[str, Any],
    records: Iterable[Mapping[str, Any]],
    metadata: Mapping[str, str],
    codec: str,
    level: int | None,
) -> bytes:
    """A container file of records whose values are as stored: no dates or decimals.

    `codec` is Avro's name, or the one that `write.manifest.compression-codec` has for it.
    """
    stream = io.BytesIO()
    fastavro.writer(
        stream,
        schema,
        records,
        codec=_CODECS.get(codec, codec),
        sync_interval=_BLOCK_BYTES,
        metadata=dict(metadata),
        codec_compression_level=level,
    )
    return stream.getvalue()
