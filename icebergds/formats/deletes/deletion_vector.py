"""Reads and encodes deletion vectors (Puffin spec: deletion-vector-v1).

A blob holds the deleted positions of one data file: the length of magic and bitmap (big-endian), a
magic number, a 64-bit Roaring bitmap and a CRC-32 of magic and bitmap (big-endian).
"""

from __future__ import annotations

import struct
import zlib

from pyroaring import BitMap64

from icebergds.encryption.stored_files import decrypting, key_of_file
from icebergds.errors import CorruptFileError
from icebergds.formats.data_file.encryption import telling_encrypted
from icebergds.formats.deletes.positions import PositionSet
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO

# The limit of other implementations; the format itself allows positions up to 2^63 - 1.
MAX_POSITION = 0x7FFF_FFFE_8000_0000

_MAGIC = bytes.fromhex("d1d33964")
_FRAME_BYTES = 12


def read_deletion_vector(
    io: FileIO,
    location: str,
    offset: int,
    length: int,
    cardinality: int | None = None,
    file_size: int | None = None,
    key_metadata: bytes | None = None,
) -> PositionSet:
    """Reads the blob that a manifest entry points at, without the file's footer.

    Args:
        location: the Puffin file.
        offset: `content_offset` of the manifest entry; in an encrypted file, that of plain bytes.
        length: `content_size_in_bytes` of the manifest entry.
        cardinality: `record_count` of the manifest entry, checked if given.
        file_size: `file_size_in_bytes` of the manifest entry; then one request reads the blob.
        key_metadata: of the manifest entry; None if the file is not encrypted.

    Raises:
        CorruptFileError: the blob is damaged, or its cardinality is another one, or the file does
            not fit its key.
        MissingFileError: the file does not exist.
        StorageError: the storage fails.
        UnsupportedFeatureError: the file is encrypted and has no key.
    """
    source = f"{location} (deletion vector of {length} bytes at offset {offset})"
    if offset < 0 or length < 0:
        raise CorruptFileError(f"{source}: offset and length in the manifest cannot be negative")
    key = key_of_file(key_metadata, location)
    # Blocks of an encrypted file are elsewhere.
    first = (offset, offset + length) if key is None else None
    with (
        storage_failures("reading", location),
        io.open(location, file_size, first) as stored,
        decrypting(stored, key, location) as file,
        telling_encrypted(file, location),
    ):
        size = file.size()
        if offset + length > size:
            raise CorruptFileError(f"{source}: the file ends at byte {size}")
        return decode_deletion_vector(file.read_at(length, offset), source, cardinality)


def decode_deletion_vector(blob: bytes, source: str, cardinality: int | None = None) -> PositionSet:
    """Decodes the deleted positions of a `deletion-vector-v1` blob, without expanding runs.

    Args:
        blob: the whole blob and nothing else.
        source: where the blob is stored, for errors.
        cardinality: the expected number of positions, if known.

    Raises:
        CorruptFileError: length, magic, checksum, bitmap or cardinality are wrong.
    """
    if len(blob) < _FRAME_BYTES:
        raise CorruptFileError(
            f"{source}: a deletion vector has at least {_FRAME_BYTES} bytes, found {len(blob)}"
        )
    length, magic, checksum = struct.unpack(">I4s", blob[:8]) + struct.unpack(">I", blob[-4:])
    if length != len(blob) - 8:
        raise CorruptFileError(
            f"{source}: the deletion vector's length field is {length}, "
            f"but a blob of this size has {len(blob) - 8} bytes of magic and bitmap"
        )
    if magic != _MAGIC:
        raise CorruptFileError(
            f"{source}: a deletion vector has the magic number {_MAGIC.hex()}, found {magic.hex()}"
        )
    computed = zlib.crc32(memoryview(blob)[4:-4])
    if computed != checksum:
        raise CorruptFileError(
            f"{source}: the deletion vector's checksum is {checksum:#010x}, "
            f"but that of its bytes is {computed:#010x}"
        )
    positions = decode_roaring64(blob[8:-4], source)
    if cardinality is not None and len(positions) != cardinality:
        raise CorruptFileError(
            f"{source}: the deletion vector has {len(positions)} positions, "
            f"the manifest's record_count is {cardinality}"
        )
    return positions


def encode_deletion_vector(positions: PositionSet) -> bytes:
    """Encodes a set of positions as a `deletion-vector-v1` blob.

    Raises:
        ValueError: a position is greater than `MAX_POSITION`.
    """
    if positions and positions.last > MAX_POSITION:
        raise ValueError(
            f"position {positions.last} does not fit into a deletion vector: "
            f"the greatest is {MAX_POSITION}"
        )
    body = _MAGIC + encode_roaring64(positions)
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode_roaring64(data: bytes, source: str) -> PositionSet:
    """The positions of a serialised bitmap, which stays as small as it is stored.

    Args:
        data: the serialised bitmap.
        source: where it is stored, for errors.

    Raises:
        CorruptFileError: the bytes are not such a bitmap, or hold positions of 2^63 and more.
    """
    try:
        bitmap = BitMap64.deserialize(data)
    except (ValueError, IndexError) as error:
        raise CorruptFileError(f"{source}: the bitmap is damaged ({error})") from error
    if bitmap and bitmap.max() >= 1 << 63:
        raise CorruptFileError(f"{source}: the bitmap holds positions of 2^63 and more")
    return PositionSet.of_bitmap(bitmap)


def encode_roaring64(positions: PositionSet) -> bytes:
    """The serialised bitmap of a set of positions, with runs if they are smaller."""
    bitmap = positions.bitmap().copy()
    bitmap.run_optimize()
    return bytes(bitmap.serialize())
