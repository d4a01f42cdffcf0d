"""Shortens data file paths to tokens: for scans that return the file of each row, and for names.

The name of a file that icebergds writes, and that every reader of its format reads, ends in a token
of its path. So whoever plans a scan knows the file without opening it, whichever manifest lists it;
a copy in another directory is a file like those of others.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

import mmh3

_MARK_DIGITS = 12
_DELETES = "-deletes"


def file_token(path: str) -> str:
    """A token of twelve characters; two of ten million paths share one with probability 10^-8.

    Args:
        path: as in manifests.
    """
    digest: bytes = mmh3.hash_bytes(path)
    return urlsafe_b64encode(digest[:9]).decode()


def marked_path(path: str) -> str:
    """The path of a new file that every reader of its format will read.

    Args:
        path: as in manifests, with the extension.
    """
    stem, end = _parted(path)
    return f"{stem}-{_mark(stem, end)}{end}"


def is_marked(path: str) -> bool:
    """Whether `marked_path` returned the path, of a file as it is at this place."""
    stem, end = _parted(path)
    rest, _, mark = stem.rpartition("-")
    return len(mark) == _MARK_DIGITS and mark == _mark(rest, end)


def _parted(path: str) -> tuple[str, str]:
    """A path without its end, and the end, by which readers tell what a file is."""
    stem, dot, extension = path.rpartition(".")
    shorter = stem.removesuffix(_DELETES)
    return shorter, f"{stem[len(shorter) :]}{dot}{extension}"


def _mark(stem: str, end: str) -> str:
    digest: bytes = mmh3.hash_bytes(stem + end)
    return digest.hex()[:_MARK_DIGITS]
