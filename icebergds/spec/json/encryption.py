"""Reads and writes encryption keys as JSON (spec: Encryption Keys)."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.json.fields import optional, required, string_map, unknown_members


def encrypted_key_from_json(obj: Mapping[str, Any]) -> EncryptedKey:
    """Parses a key from its JSON object.

    Raises InvalidMetadataError if it is malformed.
    """
    key_id = required(obj, "key-id", str, "an encryption key")
    where = f"encryption key {key_id!r}"
    text = required(obj, "encrypted-key-metadata", str, where)
    try:
        key_metadata = a2b_base64(text.encode(), strict_mode=True)
    except Error as error:
        raise InvalidMetadataError(
            f"'encrypted-key-metadata' of {where} is not base64: {error}"
        ) from error
    return EncryptedKey(
        key_id=key_id,
        encrypted_key_metadata=key_metadata,
        encrypted_by_id=optional(obj, "encrypted-by-id", str, where),
        properties=string_map(obj, "properties", where),
        unknown=unknown_members(obj, _MEMBERS),
    )


def encrypted_key_to_json(key: EncryptedKey) -> dict[str, Any]:
    """The JSON object of a key."""
    obj: dict[str, Any] = {
        "key-id": key.key_id,
        "encrypted-key-metadata": b2a_base64(key.encrypted_key_metadata, newline=False).decode(),
    }
    if key.encrypted_by_id is not None:
        obj["encrypted-by-id"] = key.encrypted_by_id
    if key.properties:
        obj["properties"] = dict(key.properties)
    return {**obj, **key.unknown}


_MEMBERS = frozenset({"key-id", "encrypted-key-metadata", "encrypted-by-id", "properties"})
