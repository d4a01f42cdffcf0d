"""Recognises files that are encrypted as a whole (spec: AES GCM Stream)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError

ENCRYPTED_MAGIC = b"AGS1"


def encrypted(what: str) -> UnsupportedFeatureError:
    """The error for an encrypted file; `what` names it."""
    return UnsupportedFeatureError(f"{what} is encrypted; encrypted files are not supported")


@contextmanager
def telling_encrypted(handle: pa.NativeFile, location: str) -> Iterator[None]:
    """Tells an encrypted file from a damaged one, after it could not be read.

    Whether a file is encrypted shows only in the file: manifest entries may have `key_metadata` for
    files that are not.

    Raises:
        UnsupportedFeatureError: for a CorruptFileError of an encrypted file.
    """
    try:
        yield
    except CorruptFileError as error:
        if handle.read_at(len(ENCRYPTED_MAGIC), 0) == ENCRYPTED_MAGIC:
            raise encrypted(location) from error
        raise
