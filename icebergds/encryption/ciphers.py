"""Encrypts and decrypts short texts with AES-GCM: a nonce, the ciphertext and its tag."""

from __future__ import annotations

import secrets

from icebergds.errors import InvalidOptionError

__all__ = ["KEY_LENGTHS", "WrongKey", "open_sealed", "require_cryptography", "seal"]

KEY_LENGTHS = (16, 24, 32)
"""Lengths of AES keys in bytes."""

_NONCE = 12
_TAG = 16


class WrongKey(Exception):  # noqa: N818
    """The tag does not match: another key, another AAD, or changed bytes."""


def require_cryptography() -> None:
    """Raises InvalidOptionError if the package cryptography is not installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise InvalidOptionError(
            "encrypted tables need the package cryptography: pip install 'icebergds[encryption]'"
        ) from None


def seal(key: bytes, data: bytes, aad: bytes | None = None) -> bytes:
    """Encrypts with AES-GCM under a random nonce, which comes first.

    Args:
        key: of 16, 24 or 32 bytes.
        aad: additional data that decryption must repeat.
    """
    require_cryptography()
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, data, aad)


def open_sealed(key: bytes, sealed: bytes, aad: bytes | None = None) -> bytes:
    """Decrypts what `seal` made.

    Raises:
        WrongKey: the tag does not match, or the text is too short to have one.
    """
    require_cryptography()
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(sealed) < _NONCE + _TAG:
        raise WrongKey
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], aad)
    except InvalidTag:
        # Without its cause: frames of the cause refer to the key.
        raise WrongKey from None
