"""Short names of data files, for scans whose rows say where they are: paths are long, rows many."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import mmh3


def file_token(path: str) -> str:
    """A name of twelve characters; among ten million paths two have the same once in 10^8 cases.

    Args:
        path: as manifests have it.
    """
    digest: bytes = mmh3.hash_bytes(path)
    return urlsafe_b64encode(digest[:9]).decode()
