"""Finds the keys of a table's encrypted manifest lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.encryption.table_keys import KEK_LIFE_MS, KEY_TIMESTAMP, TableKeys, is_time
from icebergds.errors import UnsupportedFeatureError
from icebergds.io.fileio import FileIO
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID

# Clocks of writers differ, and commits take their time.
_MARGIN_MS = 30 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class ListKeys:
    """Decrypts the keys of manifest lists in one state of a table.

    Attributes:
        keys: those of the table; None if its catalog has no key management service.
        name: of the table, for errors.
    """

    keys: TableKeys | None = field(repr=False)
    metadata: TableMetadata = field(repr=False)
    name: str

    def __call__(self, key_id: str) -> KeyMetadata:
        """The key of a manifest list.

        Raises:
            UnsupportedFeatureError: the catalog has no key management service.
            InvalidMetadataError, CorruptFileError: the metadata lacks the key, or it is damaged.
            StorageError: the key management service fails.
        """
        if self.keys is None:
            raise no_service(self.name, self.metadata)
        return self.keys.list_key(self.metadata, key_id)


def list_keys_of(keys: TableKeys | None, metadata: TableMetadata, name: str) -> ListKeys | None:
    """The keys of a state's manifest lists; None if the table is not encrypted."""
    is_encrypted = keys is not None or metadata.encryption_keys
    return ListKeys(keys, metadata, name) if is_encrypted else None


def no_service(name: str, metadata: TableMetadata) -> UnsupportedFeatureError:
    """The error for an encrypted table of a catalog without a key management service."""
    key_id = ENCRYPTION_KEY_ID.of(metadata.properties)
    by = "" if key_id is None else f" with key {key_id!r}"
    return UnsupportedFeatureError(
        f"table {name} is encrypted{by}; set encryption.kms-type or encryption.kms-impl of its "
        "catalog to the key management service that has the key"
    )


def keys_of_snapshot(
    metadata: TableMetadata, snapshot: Snapshot | None
) -> tuple[EncryptedKey, ...]:
    """The keys that reading a snapshot's manifest list needs: its own, and what encrypts it."""
    key_id = None if snapshot is None else snapshot.key_id
    if key_id is None:
        return ()
    own = [key for key in metadata.encryption_keys if key.key_id == key_id]
    needed = {key_id, *(key.encrypted_by_id for key in own)}
    return tuple(key for key in metadata.encryption_keys if key.key_id in needed)


def unused_keys(metadata: TableMetadata, kept: Iterable[Snapshot], now_ms: int) -> list[str]:
    """The ids of keys that nothing needs any more, in an order that they can be removed in.

    These are keys of manifest lists that no snapshot names, and keys that encrypt none. The latter
    only if they are so old that no commit in progress can use them.

    Args:
        kept: the snapshots that remain.
    """
    named = {snapshot.key_id for snapshot in kept}
    keys = metadata.encryption_keys
    ids = {key.key_id for key in keys}
    of_lists = [key for key in keys if key.encrypted_by_id in ids]
    encrypting = named | {key.encrypted_by_id for key in of_lists if key.key_id in named}
    removed = [key.key_id for key in of_lists if key.key_id not in encrypting]
    removed += [
        key.key_id
        for key in keys
        if key.encrypted_by_id not in ids and key.key_id not in encrypting and _is_over(key, now_ms)
    ]
    return removed


def _is_over(key: EncryptedKey, now_ms: int) -> bool:
    made = key.properties.get(KEY_TIMESTAMP, "")
    return is_time(made) and now_ms - int(made) > KEK_LIFE_MS + _MARGIN_MS


def manifest_list_key(io: FileIO, snapshot: Snapshot) -> KeyMetadata | None:
    """The key of a snapshot's manifest list; None if it is not encrypted.

    Raises:
        UnsupportedFeatureError: this process does not have the keys of the table.
        InvalidMetadataError, CorruptFileError, StorageError: as `ListKeys` does.
    """
    if snapshot.key_id is None:
        return None
    key = None if io.list_keys is None else io.list_keys(snapshot.key_id)
    if not isinstance(key, KeyMetadata):
        raise UnsupportedFeatureError(
            f"the manifest list of snapshot {snapshot.snapshot_id} is encrypted with key "
            f"{snapshot.key_id!r}, and the keys of its table are not available here"
        )
    return key
