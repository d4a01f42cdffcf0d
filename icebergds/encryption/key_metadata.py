"""Reads and writes the key metadata of encrypted files: Java Iceberg's `StandardKeyMetadata`.

One version byte, then the binary Avro encoding of a record: the key, an optional AAD prefix and an
optional length of the stored file.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Self

import fastavro
from fastavro import schemaless_reader, schemaless_writer

from icebergds.encryption.ciphers import KEY_LENGTHS
from icebergds.errors import CorruptFileError, InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.table_properties import ENCRYPTION_DATA_KEY_LENGTH, ENCRYPTION_KEY_ID

_VERSION = 1
_PREFIX_LENGTH = 16
_FIELDS: dict[str, str | list[str]] = {
    "encryption_key": "bytes",
    "aad_prefix": ["null", "bytes"],
    "file_length": ["null", "long"],
}
_RECORD = fastavro.parse_schema(
    {
        "type": "record",
        "name": "StandardKeyMetadata",
        "fields": [{"name": name, "type": avro_type} for name, avro_type in _FIELDS.items()],
    }
)


@dataclass(frozen=True, slots=True)
class KeyMetadata:
    """The key of one encrypted file.

    Attributes:
        encryption_key: of 16, 24 or 32 bytes; never shown.
        aad_prefix: identifies the file: it is authenticated with each part of its content.
        file_length: of the file as stored, in bytes; shows that it was not cut off.
    """

    encryption_key: bytes = field(repr=False)
    aad_prefix: bytes | None = field(default=None, repr=False)
    file_length: int | None = None

    def serialized(self) -> bytes:
        """Encodes it as in manifests and in the keys of manifest lists."""
        stream = BytesIO()
        schemaless_writer(stream, _RECORD, {name: getattr(self, name) for name in _FIELDS})
        return bytes((_VERSION,)) + stream.getvalue()

    def of_length(self, file_length: int) -> Self:
        """The same key, of a file with this stored length."""
        return replace(self, file_length=file_length)


def data_key_length(properties: Mapping[str, str]) -> int | None:
    """The length of the keys of a table's files, in bytes; None if they are not encrypted.

    Raises:
        InvalidOptionError: it is not a length of keys.
    """
    if ENCRYPTION_KEY_ID.of(properties) is None:
        return None
    return ENCRYPTION_DATA_KEY_LENGTH.of(properties)


def new_key_metadata(key_length: int) -> KeyMetadata:
    """Makes a random key of a length in bytes, and a random AAD prefix.

    Raises:
        InvalidOptionError: AES has no keys of this length.
    """
    if key_length not in KEY_LENGTHS:
        raise InvalidOptionError(
            f"a key of {key_length} bytes cannot be made; AES keys have 16, 24 or 32 bytes "
            "(encryption.data-key-length)"
        )
    return KeyMetadata(secrets.token_bytes(key_length), secrets.token_bytes(_PREFIX_LENGTH))


def shown_key_metadata(key_metadata: bytes | None) -> bytes | None:
    """What metadata tables show: keys in clear are left out, key metadata of other kinds is not."""
    has_key = key_metadata is not None and key_metadata[:1] == bytes((_VERSION,))
    return None if has_key else key_metadata


def parse_key_metadata(data: bytes, where: str) -> KeyMetadata:
    """Decodes key metadata.

    Args:
        where: the file that it belongs to, for errors.

    Raises:
        CorruptFileError: the bytes are damaged. No error shows them.
        UnsupportedFeatureError: they are not key metadata of version 1.
    """
    if not data or data[0] != _VERSION:
        found = f"version {data[0]}" if data else "no bytes"
        raise UnsupportedFeatureError(
            f"{where} is encrypted with key metadata that is not supported: it has {found}, "
            f"expected version {_VERSION}"
        )
    stream = BytesIO(data[1:])
    try:
        record: Any = schemaless_reader(stream, _RECORD, None)
    except Exception as error:
        raise _damaged(where, f"it is no Avro record ({type(error).__name__})") from None
    if left := len(data) - 1 - stream.tell():
        raise _damaged(where, f"{left} bytes follow its end")
    key, length = record["encryption_key"], record["file_length"]
    if len(key) not in KEY_LENGTHS:
        raise _damaged(where, f"its key has {len(key)} bytes; AES keys have 16, 24 or 32")
    if length is not None and length < 0:
        raise _damaged(where, f"its file length is {length}")
    return KeyMetadata(key, record["aad_prefix"], length)


def _damaged(where: str, problem: str) -> CorruptFileError:
    return CorruptFileError(f"the key metadata of {where} is damaged: {problem}")
