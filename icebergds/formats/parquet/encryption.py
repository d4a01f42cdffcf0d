"""Keys of Parquet's modular encryption for pyarrow: one key for the footer and all columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from icebergds.encryption.ciphers import WrongKey
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError, UnsupportedFeatureError

MAGIC = b"PARE"
"""The last bytes of a file whose footer is encrypted."""


def decryption_options(key: KeyMetadata | None) -> dict[str, Any]:
    """The options of `pyarrow.parquet.ParquetFile` that decrypt a file; none without a key.

    Raises:
        UnsupportedFeatureError: the installed pyarrow takes no keys.
    """
    if key is None:
        return {}
    properties = _module().create_decryption_properties(
        key.encryption_key, aad_prefix=key.aad_prefix
    )
    return {"decryption_properties": properties}


def encryption_options(key: KeyMetadata | None) -> dict[str, Any]:
    """The options of `pyarrow.parquet.ParquetWriter` that encrypt a file; none without a key.

    The AAD prefix is not stored, so that the file cannot stand in for another one.

    Raises:
        UnsupportedFeatureError: the installed pyarrow takes no keys.
    """
    if key is None:
        return {}
    properties = _module().create_encryption_properties(
        key.encryption_key, aad_prefix=key.aad_prefix, store_aad_prefix=False
    )
    return {"encryption_properties": properties}


@contextmanager
def decrypting_parquet(key: KeyMetadata | None, location: str) -> Iterator[None]:
    """Says of a file that does not fit its key that it may be the key or the file.

    Raises:
        CorruptFileError: a part of the file could not be decrypted.
    """
    try:
        yield
    except WrongKey:
        # Without its cause: frames of the cause refer to the key.
        raise _unfit_key(location, "a tag does not match") from None
    except OSError as error:
        if key is None or error.errno is not None:
            raise
        raise _unfit_key(location, error) from None


def _module() -> Any:
    try:
        import pyarrow.parquet.encryption as module
    except ImportError as error:
        raise _unsupported() from error
    if not hasattr(module, "create_decryption_properties"):
        raise _unsupported()
    return module


def _unsupported() -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "encrypted Parquet files need pyarrow 26 or later: pip install 'pyarrow>=26'"
    )


def _unfit_key(location: str, reason: object) -> CorruptFileError:
    return CorruptFileError(
        f"{location} cannot be decrypted: it does not fit its key; the key is wrong, or the "
        f"file was damaged or replaced by another one ({reason})"
    )
