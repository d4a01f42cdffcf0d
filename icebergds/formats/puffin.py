"""Reads and writes Puffin files: statistics and index blobs with a JSON footer (Puffin spec)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.decompress import MAX_BLOCK_BYTES, TooLargeError, decompress_stream
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO

_T = TypeVar("_T")
_MAGIC = b"PFA1"
# After the footer's payload: its size, flags, magic.
_TAIL = struct.Struct("<i4s4s")
_COMPRESSED_FOOTER = 1
# One storage request reads most footers completely.
_TAIL_READ = 32 * 1024
_CODECS = ("lz4", "zstd")


@dataclass(frozen=True, slots=True)
class PuffinBlob:
    """Where a blob is in its file and what it was computed from (Puffin spec: BlobMetadata).

    `length` is the stored (possibly compressed) size in bytes. Snapshot id and sequence number are
    -1 if unknown, as for deletion vectors.
    """

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    """The blobs and properties of a Puffin file (Puffin spec: FileMetadata)."""

    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewBlob:
    """A blob to write, uncompressed."""

    type: str
    fields: tuple[int, ...]
    data: bytes
    snapshot_id: int = -1
    sequence_number: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)


def read_puffin_footer(io: FileIO, location: str) -> PuffinFooter:
    """Reads the footer of a Puffin file.

    Raises:
        CorruptFileError: the file is not a Puffin file, or is truncated or damaged.
        MissingFileError: the file does not exist.
        UnsupportedFeatureError: the footer sets flags that the specification does not define.
    """
    with io.open(location) as file:
        size = file.size()
        if size < 2 * len(_MAGIC) + _TAIL.size:
            raise _corrupt(location, f"a Puffin file cannot have only {size} bytes")
        tail = _read(file, location, max(0, size - _TAIL_READ), size)
        payload_size, flags, magic = _TAIL.unpack(tail[-_TAIL.size :])
        _check_magic(magic, location, "end")
        footer_size = len(_MAGIC) + payload_size + _TAIL.size
        if payload_size < 0 or footer_size > size - len(_MAGIC):
            raise _corrupt(location, f"a footer of {payload_size} bytes in a file of {size}")
        start = size - footer_size
        footer = (
            tail[-footer_size:] if footer_size <= len(tail) else _read(file, location, start, size)
        )
        head = tail[:4] if size == len(tail) else _read(file, location, 0, len(_MAGIC))
    _check_magic(head, location, "start")
    _check_magic(footer[:4], location, "start of the footer")
    payload = footer[len(_MAGIC) : -_TAIL.size]
    if _is_compressed(flags, location):
        payload = _decompress("lz4", payload, io, f"{location}: the footer")
    return _parse_footer(payload, location, start)


def read_puffin_blob(io: FileIO, location: str, blob: PuffinBlob) -> bytes:
    """Reads the content of a blob, decompressed.

    Raises:
        CorruptFileError: the file is truncated or the blob cannot be decompressed.
        MissingFileError: the file does not exist.
        UnsupportedFeatureError: the blob has a compression codec other than lz4 and zstd.
    """
    codec = blob.compression_codec
    if codec is not None and codec not in _CODECS:
        raise UnsupportedFeatureError(
            f"Puffin file {location}: blob {blob.type} at offset {blob.offset} is compressed with "
            f"{codec!r}; the specification allows {' and '.join(_CODECS)}"
        )
    with io.open(location) as file:
        data = _read(file, location, blob.offset, blob.offset + blob.length)
    if codec is None:
        return data
    return _decompress(codec, data, io, f"{location}: blob {blob.type} at offset {blob.offset}")


def encode_puffin(
    blobs: Sequence[NewBlob], properties: Mapping[str, str] | None = None
) -> tuple[bytes, tuple[PuffinBlob, ...]]:
    """Encodes a Puffin file of uncompressed blobs; also returns where each blob is in it."""
    out = [_MAGIC]
    placed = []
    offset = len(_MAGIC)
    for blob in blobs:
        placed.append(
            PuffinBlob(
                blob.type,
                blob.fields,
                blob.snapshot_id,
                blob.sequence_number,
                offset,
                len(blob.data),
                properties=blob.properties,
            )
        )
        out.append(blob.data)
        offset += len(blob.data)
    footer: dict[str, Any] = {"blobs": [_blob_to_json(blob) for blob in placed]}
    if properties:
        footer["properties"] = dict(properties)
    payload = json.dumps(footer, separators=(",", ":")).encode()
    out += (_MAGIC, payload, _TAIL.pack(len(payload), bytes(4), _MAGIC))
    return b"".join(out), tuple(placed)


def _read(file: pa.NativeFile, location: str, start: int, end: int) -> bytes:
    try:
        with storage_failures("reading", location):
            data: bytes = file.read_at(end - start, start)
    except pa.ArrowInvalid as error:
        raise _corrupt(location, f"bytes {start} to {end} cannot be read ({error})") from error
    if len(data) != end - start:
        raise _corrupt(location, f"it ends before byte {end}")
    return data


def _check_magic(data: bytes, location: str, where: str) -> None:
    if data != _MAGIC:
        raise _corrupt(location, f"expected {_MAGIC!r} at the {where}, found {data!r}")


def _is_compressed(flags: bytes, location: str) -> bool:
    value = int.from_bytes(flags, "little")
    if value & ~_COMPRESSED_FOOTER:
        raise UnsupportedFeatureError(
            f"Puffin file {location}: its footer has the flags {value:#010x}; only the lowest bit "
            "(compressed footer) is defined"
        )
    return bool(value & _COMPRESSED_FOOTER)


def _decompress(codec: str, data: bytes, io: FileIO, what: str) -> bytes:
    try:
        return decompress_stream(codec, data, io.max_block_bytes or MAX_BLOCK_BYTES)
    except (OSError, pa.ArrowException, TooLargeError) as error:
        raise CorruptFileError(f"Puffin file {what} cannot be decompressed: {error}") from error


def _parse_footer(payload: bytes, location: str, footer_start: int) -> PuffinFooter:
    try:
        parsed = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _corrupt(location, f"its footer is not JSON ({error})") from error
    footer = _expect(parsed, dict, location, "its footer")
    blobs = _expect(footer.get("blobs"), list, location, "`blobs` of its footer")
    return PuffinFooter(
        tuple(_blob_from_json(blob, location, footer_start) for blob in blobs),
        _properties(footer, location),
    )


def _blob_from_json(obj: Any, location: str, footer_start: int) -> PuffinBlob:
    members = _expect(obj, dict, location, "a blob of its footer")

    def member(name: str, kind: type[_T]) -> _T:
        return _expect(members.get(name), kind, location, f"`{name}` of a blob")

    codec = members.get("compression-codec")
    blob = PuffinBlob(
        member("type", str),
        tuple(_expect(i, int, location, "a field id of a blob") for i in member("fields", list)),
        member("snapshot-id", int),
        member("sequence-number", int),
        member("offset", int),
        member("length", int),
        None if codec is None else _expect(codec, str, location, "`compression-codec` of a blob"),
        _properties(members, location),
    )
    if blob.offset < len(_MAGIC) or blob.length < 0 or blob.offset + blob.length > footer_start:
        raise _corrupt(
            location,
            f"blob {blob.type} at offset {blob.offset} with {blob.length} bytes is not between "
            f"the first {len(_MAGIC)} bytes and the footer at {footer_start}",
        )
    return blob


def _properties(members: Mapping[str, Any], location: str) -> dict[str, str]:
    properties = members.get("properties")
    if properties is None:
        return {}
    return {
        key: _expect(value, str, location, f"property {key!r}")
        for key, value in _expect(properties, dict, location, "`properties`").items()
    }


def _expect(value: Any, kind: type[_T], location: str, what: str) -> _T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _corrupt(location, f"{what} should be {kind.__name__}, is {value!r}")
    return value


def _blob_to_json(blob: PuffinBlob) -> dict[str, Any]:
    out: dict[str, Any] = {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.properties:
        out["properties"] = dict(blob.properties)
    return out


def _corrupt(location: str, problem: str) -> CorruptFileError:
    return CorruptFileError(f"Puffin file {location} is damaged: {problem}")
