"""Opens and reads files that may be encrypted as AES GCM streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebergds.encryption.gcm_stream import DecryptedFile, decrypt_bytes
from icebergds.encryption.key_metadata import KeyMetadata, parse_key_metadata


def key_of_file(key_metadata: bytes | None, location: str) -> KeyMetadata | None:
    """The key in a file's key metadata; None if the file is not encrypted.

    Raises:
        CorruptFileError: the key metadata is damaged.
    """
    return None if key_metadata is None else parse_key_metadata(key_metadata, location)


def decrypted(stored: bytes, key_metadata: bytes | None, what: str) -> bytes:
    """The plain content of a file that was read whole.

    Raises:
        CorruptFileError: the file or its key metadata is damaged, or the key is another one.
    """
    key = key_of_file(key_metadata, what)
    return stored if key is None else decrypt_bytes(stored, key, what)


@contextmanager
def decrypting(
    handle: pa.NativeFile, key: KeyMetadata | None, location: str
) -> Iterator[pa.NativeFile]:
    """The plain content of an open file, for random access; the file itself without a key.

    Raises:
        CorruptFileError: as `DecryptedFile` does.
    """
    if key is None:
        yield handle
        return
    # The file as stored is closed by who opened it.
    with pa.PythonFile(DecryptedFile(handle, key, location), mode="r") as plain:
        yield plain
