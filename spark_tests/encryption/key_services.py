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


class Forgetful(MemoryClient):
    """Wraps another key than it is given."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return super().wrap_key(bytes(len(key)), wrapping_key_id)


class Truncating(MemoryClient):
    """Loses the end of what it has wrapped."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return super().wrap_key(key, wrapping_key_id)[:-1]


class Clear(MemoryClient):
    """Does not encrypt."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return b"wrapped:" + key

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        return wrapped.removeprefix(b"wrapped:")


class Empty(MemoryClient):
    """Answers nothing."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return b""


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Unprintable(MemoryClient):
    """Fails with an error that has no text."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        raise _UnprintableError


class NotMade(MemoryClient):
    """Cannot be made without arguments."""

    def __init__(self, address: str) -> None:
        self.address = address


not_a_class = 1
