"""Recognises encrypted files for which there is no key (spec: AES GCM Stream)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError

ENCRYPTED_MAGIC = b"AGS1"


class NoKeyError(UnsupportedFeatureError):
    """An encrypted file is listed without a key."""


def encrypted(what: str) -> NoKeyError:
    """The error for an encrypted file without a key; `what` names it."""
    return NoKeyError(
        f"{what} is encrypted, but what lists it has no key for it; files of encrypted tables are "
        "read by their tables"
    )


def encrypted_orc(what: str) -> UnsupportedFeatureError:
    """The error for an ORC file of an encrypted table."""
    return UnsupportedFeatureError(
        f"{what}: ORC files cannot be encrypted; write Parquet or Avro files "
        "(write.format.default) to encrypted tables"
    )


@contextmanager
def telling_encrypted(handle: pa.NativeFile, location: str) -> Iterator[None]:
    """Tells an encrypted file from a damaged one, after it could not be read.

    For files whose entries have no `key_metadata`.

    Raises:
        NoKeyError: for a CorruptFileError of an encrypted file.
    """
    try:
        yield
    except CorruptFileError as error:
        if handle.read_at(len(ENCRYPTED_MAGIC), 0) == ENCRYPTED_MAGIC:
            raise encrypted(location) from error
        raise
