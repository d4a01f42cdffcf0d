"""Unwraps and makes the keys of an encrypted table (spec: Encryption Keys).

A key service wraps the table's key encryption keys by its master key; these encrypt the key of each
manifest list. Both are in the table's metadata. Keys of other files are in lists and manifests.
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from icebergds.encryption.ciphers import KEY_LENGTHS, WrongKey, open_sealed, seal
from icebergds.encryption.key_metadata import KeyMetadata, parse_key_metadata
from icebergds.errors import (
    CorruptFileError,
    InvalidMetadataError,
    InvalidOptionError,
    StorageError,
)
from icebergds.io.key_wrapping import WrapsKeys
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import ENCRYPTION_DATA_KEY_LENGTH, ENCRYPTION_KEY_ID

__all__ = ["TableKeys", "is_time", "table_keys"]


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The keys of a table, by way of its key service. Can be pickled if the service can.

    Attributes:
        kms: the service that wraps key encryption keys.
        table_key_id: its master key of the table, which wraps new keys.
        data_key_length: of new keys, in bytes.
        name: the table's name in messages.
    """

    kms: WrapsKeys = field(repr=False)
    table_key_id: str
    data_key_length: int = 16
    name: str = ""

    def list_key(self, metadata: TableMetadata, key_id: str) -> KeyMetadata:
        """The key of a manifest list.

        The service is asked once an hour for a key encryption key, at most.

        Args:
            metadata: has the encrypted key.
            key_id: that of a snapshot.

        Raises:
            InvalidMetadataError: a key is missing, or not encrypted as the specification says.
            InvalidOptionError, StorageError: the service cannot unwrap the key that encrypts it.
        """
        key = _key(metadata, key_id, f"{self._table}: key {key_id!r} of a manifest list")
        by_id = key.encrypted_by_id
        if by_id is None:
            raise InvalidMetadataError(
                f"{self._table}: key {key_id!r} of a manifest list has no 'encrypted-by-id'; "
                "expected the id of a key encryption key"
            )
        where = f"{self._table}: key {by_id!r}, which encrypts key {key_id!r} of a manifest list,"
        encrypting = _key(metadata, by_id, where)
        timestamp = _timestamp(encrypting, where)
        try:
            text = open_sealed(
                self._unwrapped(encrypting, where), key.encrypted_key_metadata, timestamp.encode()
            )
        except WrongKey:
            raise InvalidMetadataError(
                f"{self._table}: key {key_id!r} of a manifest list cannot be decrypted by key "
                f"{by_id!r}: one of them was changed, or encrypted otherwise"
            ) from None
        try:
            return parse_key_metadata(text, f"key {key_id!r} of {self._table}")
        except CorruptFileError as error:
            raise InvalidMetadataError(str(error)) from None

    def new_list_keys(
        self, metadata: TableMetadata, list_key_metadata: KeyMetadata, now_ms: int
    ) -> tuple[EncryptedKey, ...]:
        """The keys to add to a table with a new manifest list; the last is that of the list.

        The first is a new key encryption key, if the table has none of less than 730 days.

        Args:
            metadata: that the list is added to.
            list_key_metadata: key of the list, and its length.
            now_ms: the time, in milliseconds since the epoch.

        Raises:
            InvalidOptionError, StorageError: the service cannot wrap or unwrap a key encryption
                key.
            InvalidMetadataError: the table's key encryption key is not as the specification says.
        """
        encrypting = next(
            (key for key in metadata.encryption_keys if self._is_current(key, now_ms)), None
        )
        is_new = encrypting is None
        if encrypting is None:
            encrypting = self._new_encrypting_key(now_ms)
        where = f"{self._table}: key {encrypting.key_id!r}"
        key = EncryptedKey(
            _new_id(),
            seal(
                self._unwrapped(encrypting, where),
                list_key_metadata.serialized(),
                _timestamp(encrypting, where).encode(),
            ),
            encrypting.key_id,
        )
        return (encrypting, key) if is_new else (key,)

    @property
    def _table(self) -> str:
        return f"table {self.name}" if self.name else "the table"

    @contextmanager
    def _naming_table(self) -> Iterator[None]:
        """Adds the table to errors of the service, which serves many."""
        try:
            yield
        except (InvalidOptionError, StorageError) as error:
            raise type(error)(f"{self._table}: {error}") from error.__cause__

    def _is_current(self, key: EncryptedKey, now_ms: int) -> bool:
        """Whether a key may encrypt keys of new manifest lists."""
        if key.encrypted_by_id != self.table_key_id:
            return False
        made_ms = int(_timestamp(key, f"{self._table}: key {key.key_id!r}"))
        return now_ms - made_ms < KEK_LIFE_MS

    def _new_encrypting_key(self, now_ms: int) -> EncryptedKey:
        key = secrets.token_bytes(self.data_key_length)
        with self._naming_table():
            wrapped = self.kms.wrap_key(key, self.table_key_id)
        encrypted = EncryptedKey(
            _new_id(), wrapped, self.table_key_id, {KEY_TIMESTAMP: str(now_ms)}
        )
        _UNWRAPPED.put((self.kms, self.table_key_id, wrapped), key)
        return encrypted

    def _unwrapped(self, key: EncryptedKey, where: str) -> bytes:
        by_id = key.encrypted_by_id
        if by_id is None:
            raise InvalidMetadataError(
                f"{where} has no 'encrypted-by-id'; expected the id of a key service's master key"
            )
        place = (self.kms, by_id, key.encrypted_key_metadata)
        found = _UNWRAPPED.get(place)
        if found is None:
            with self._naming_table():
                found = self.kms.unwrap_key(key.encrypted_key_metadata, by_id)
            if len(found) not in KEY_LENGTHS:
                raise InvalidMetadataError(
                    f"{where} has {len(found)} bytes; expected {', '.join(map(str, KEY_LENGTHS))}"
                )
            _UNWRAPPED.put(place, found)
        return found


def table_keys(kms: WrapsKeys, metadata: TableMetadata, name: str) -> TableKeys | None:
    """The keys of a table; None if it is not encrypted.

    Args:
        name: the table's name in messages.

    Raises:
        InvalidOptionError: the table's property of the length of keys is malformed.
    """
    key_id = ENCRYPTION_KEY_ID.of(metadata.properties)
    if key_id is None:
        # The master keys of its snapshots; new ones have none.
        return TableKeys(kms, "", name=name) if metadata.encryption_keys else None
    return TableKeys(kms, key_id, ENCRYPTION_DATA_KEY_LENGTH.of(metadata.properties), name)


KEY_TIMESTAMP = "KEY_TIMESTAMP"
# NIST SP 800-57: the originator usage period of key wrapping keys is up to two years.
KEK_LIFE_MS = 730 * 24 * 60 * 60 * 1000


def _key(metadata: TableMetadata, key_id: str, where: str) -> EncryptedKey:
    found = next((key for key in metadata.encryption_keys if key.key_id == key_id), None)
    if found is None:
        raise InvalidMetadataError(f"{where} is not among the table's encryption keys")
    return found


def _timestamp(key: EncryptedKey, where: str) -> str:
    """When a key encryption key was made, which also authenticates what it encrypts."""
    text = key.properties.get(KEY_TIMESTAMP)
    if text is None or not is_time(text):
        raise InvalidMetadataError(
            f"{where} has no property {KEY_TIMESTAMP} of milliseconds; expected when it was made"
        )
    return text


def is_time(text: str) -> bool:
    """Whether a text is a time in milliseconds since the epoch, of at most 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) < 20


def _new_id() -> str:
    return base64.b64encode(secrets.token_bytes(16)).decode()


class _Unwrapped:
    """The key encryption keys that this process has unwrapped, for an hour each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[tuple[WrapsKeys, str, bytes], tuple[float, bytes]] = {}

    def get(self, place: tuple[WrapsKeys, str, bytes]) -> bytes | None:
        with self._lock:
            until, key = self._keys.get(place, (0.0, b""))
            return key if time.monotonic() < until else None

    def put(self, place: tuple[WrapsKeys, str, bytes], key: bytes) -> None:
        now = time.monotonic()
        with self._lock:
            self._keys = {k: found for k, found in self._keys.items() if now < found[0]}
            self._keys[place] = (now + _KEPT_S, key)


_KEPT_S = 3600.0
_UNWRAPPED = _Unwrapped()
