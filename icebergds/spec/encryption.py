"""Models the keys of encrypted tables (spec: Encryption Keys)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icebergds.spec.read_only import ReadOnlyDict, set_read_only


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A key that is itself encrypted, by the key `encrypted_by_id` or by a key service."""

    key_id: str
    encrypted_key_metadata: bytes = field(repr=False)
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_read_only(self, "properties")
