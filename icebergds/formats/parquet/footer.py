"""Reads footers of Parquet files; refuses encrypted files, even if the footer is plain text."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.formats.data_file.encryption import encrypted
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.open import open_parquet

# One storage request reads most footers completely.
_TAIL_READ = 64 * 1024
# After the footer: its length and a magic number.
_TRAILER = 8
_ENCRYPTED_MAGIC = b"PARE"
# FileMetaData: encryption_algorithm.
_ENCRYPTION = 8


def read_footer(handle: pa.NativeFile, location: str) -> pq.FileMetaData:
    """Reads the footer of a file.

    Args:
        handle: the open file; it is not closed.
        location: of the file, for errors.

    Raises:
        pa.ArrowException, OSError: the footer cannot be read.
        UnsupportedFeatureError: the footer or columns are encrypted. pyarrow aborts the process if
            it is asked about an encrypted column.
    """
    size = handle.size()
    tail = handle.read_at(min(size, _TAIL_READ), max(0, size - _TAIL_READ))
    if tail[-4:] == _ENCRYPTED_MAGIC:
        raise encrypted(location)
    length = int.from_bytes(tail[-_TRAILER:-4], "little")
    if len(tail) < length + _TRAILER <= size:
        tail = handle.read_at(length + _TRAILER, size - length - _TRAILER)
    metadata = open_parquet(pa.BufferReader(tail)).metadata
    # The footer of a file with encrypted columns is signed if it is not encrypted; the signature
    # follows the metadata.
    if metadata.serialized_size != length and _is_encrypted(tail[-length - _TRAILER :]):
        raise encrypted(location)
    return metadata


def _is_encrypted(footer: bytes) -> bool:
    with suppress(thrift.ThriftError):
        fields, _ = thrift.decode_struct(footer)
        return _ENCRYPTION in fields
    return False
