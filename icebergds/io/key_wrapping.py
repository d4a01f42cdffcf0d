"""Defines what wraps the keys of encrypted tables, which comes with a catalog's storage."""

from __future__ import annotations

from typing import Protocol


class WrapsKeys(Protocol):
    """Encrypts and decrypts keys with master keys that it does not give away."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """A key, encrypted by a master key."""
        ...

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        """The key that `wrap_key` encrypted by the same master key."""
        ...
