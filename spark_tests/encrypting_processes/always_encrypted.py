"""Has a process encrypt all of its new tables, and gives all storage a key service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.encryption import kms
from icebergds.encryption.ciphers import open_sealed, seal
from icebergds.encryption.kms import KMS_IMPL, KMS_TYPE, KeyService
from icebergds.io.fileio import FileIO
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID, FORMAT_VERSION
from icebergds.spec.updates import new_table
from icebergds.spec.updates.table_updates import TableUpdate

made: list[str] = []
"""The location of each encrypted table that this process has made; empty if it has none yet."""

_MASTER_KEY = bytes(range(32))
_load_kms, _new_table_updates = kms.load_kms, new_table.new_table_updates
_check_storage = FileIO.__post_init__


class Service:
    """Has any master key."""

    def initialize(self, properties: Mapping[str, str]) -> None: ...

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return seal(_MASTER_KEY, key, wrapping_key_id.encode())

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        return open_sealed(_MASTER_KEY, wrapped, wrapping_key_id.encode())

    def close(self) -> None: ...


def install() -> None:
    """Before modules import what this replaces."""
    kms.load_kms, new_table.new_table_updates = _with_service, _encrypted  # type: ignore[assignment]
    FileIO.__post_init__ = _with_a_service  # type: ignore[method-assign]


def _with_service(properties: Mapping[str, str], where: str) -> KeyService | None:
    if KMS_TYPE not in properties and KMS_IMPL not in properties:
        properties = {KMS_IMPL: f"{__name__}.{Service.__name__}"}
    return _load_kms(properties, where)


def _with_a_service(storage: FileIO) -> None:
    """Of storage that tests make themselves; the package always names the service."""
    _check_storage(storage)
    if storage.key_service is None:
        object.__setattr__(storage, "key_service", _with_service({}, "the tests"))


def _encrypted(
    schema: Any,
    *,
    location: str,
    properties: Mapping[str, str] = new_table.NO_PROPERTIES,
    format_version: int | None = None,
    **more: Any,
) -> list[TableUpdate]:
    version = int(properties.get(FORMAT_VERSION) or format_version or 2)
    keys = with_key(version, properties)
    if keys:
        made.append(location)
        properties, format_version = {**properties, **keys}, None
    return _new_table_updates(
        schema, location=location, properties=properties, format_version=format_version, **more
    )


def with_key(version: int, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that have a new table encrypted; none if that is not possible."""
    if version < 2 or any(_cannot_be_encrypted(*each) for each in properties.items()):
        return {}
    return {FORMAT_VERSION: str(max(3, version)), ENCRYPTION_KEY_ID.name: "k"}


def _cannot_be_encrypted(name: str, value: str) -> bool:
    is_bloom = name.startswith("write.parquet.bloom-filter-enabled")
    return is_bloom or (name.endswith("format.default") and value.lower() == "orc")
