"""Shortens data file paths to tokens, for scans that return the file of each row."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import mmh3


def file_token(path: str) -> str:
    """A token of twelve characters; two of ten million paths share one with probability 10^-8.

    Args:
        path: as in manifests.
    """
    digest: bytes = mmh3.hash_bytes(path)
    return urlsafe_b64encode(digest[:9]).decode()
