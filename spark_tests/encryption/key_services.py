"""Key services for tests, as classes that `encryption.kms-impl` names."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import ClassVar

from icebergds.encryption.ciphers import open_sealed, seal

KEY_A = b"0123456789012345"


class MemoryClient:
    """Has master keys in memory, as Java Iceberg's MemoryMockKMS; counts its calls."""

    keys: ClassVar[dict[str, bytes]] = {
        "keyA": KEY_A,
        "keyB": b"1123456789012345",
        "master-1": bytes(range(16)),
    }
    wrapped: ClassVar[list[str]] = []
    unwrapped: ClassVar[list[str]] = []
    initialized: ClassVar[list[dict[str, str]]] = []

    def initialize(self, properties: Mapping[str, str]) -> None:
        self.initialized.append(dict(properties))

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        self.wrapped.append(wrapping_key_id)
        return seal(self.keys[wrapping_key_id], key)

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        self.unwrapped.append(wrapping_key_id)
        return open_sealed(self.keys[wrapping_key_id], wrapped)

    def close(self) -> None:
        pass


class Lacking:
    """Lacks methods."""

    def initialize(self, properties: Mapping[str, str]) -> None: ...

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes: ...


class Telling(MemoryClient):
    """Fails with a message that has the key in it."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        raise RuntimeError(f"{key!r} {key.hex()} {base64.b64encode(key).decode()} refused")


class NotStarting(MemoryClient):
    """Cannot be initialized."""

    def initialize(self, properties: Mapping[str, str]) -> None:
        raise RuntimeError(f"no access with {properties['vault.secret']}")


class Answering(MemoryClient):
    """Answers text instead of bytes."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return "wrapped"  # type: ignore[return-value]


not_a_class = 1
