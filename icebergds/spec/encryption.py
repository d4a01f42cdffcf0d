"""Models the keys of encrypted tables (spec: Encryption Keys)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A key that is itself encrypted, by the key `encrypted_by_id` or by a key service."""

    key_id: str
    encrypted_key_metadata: bytes = field(repr=False)
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
