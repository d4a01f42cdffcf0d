"""Encrypts the files and keys of a table under construction."""

from __future__ import annotations

from pathlib import Path

from icebergds.encryption.gcm_stream import encrypt_bytes
from icebergds.encryption.key_metadata import KeyMetadata, new_key_metadata
from icebergds.encryption.table_keys import table_keys
from icebergds.io.fileio import FileIO
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.values.dates import now_ms


def write_stream(path: Path, data: bytes, key_length: int | None) -> tuple[int, KeyMetadata | None]:
    """Writes a file, encrypted by a new key unless its length is None; stored length and key."""
    key = None
    if key_length is not None:
        key = new_key_metadata(key_length)
        data = encrypt_bytes(data, key)
        key = key.of_length(len(data))
    path.write_bytes(data)
    return len(data), key


def keys_of_list(metadata: TableMetadata, key: KeyMetadata | None) -> tuple[EncryptedKey, ...]:
    """The keys that a table gets with a manifest list, that of the list last.

    Args:
        key: of the list; None if it is not encrypted.
    """
    service = FileIO().key_service
    if key is None or service is None:
        return ()
    keys = table_keys(service, metadata, "under construction")
    assert keys is not None
    return keys.new_list_keys(metadata, key, now_ms())
