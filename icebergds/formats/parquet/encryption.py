"""Keys of Parquet's modular encryption for pyarrow: one key for the footer and all columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from icebergds.encryption.ciphers import WrongKey, open_sealed, seal
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.parquet import thrift

MAGIC = b"PARE"
"""The last bytes of a file whose footer is encrypted."""

_LENGTH = 4
# FileCryptoMetaData: encryption_algorithm, a union of two structs with the field aad_file_unique.
_ALGORITHM, _FILE_UNIQUE = 1, 2
# The type of the footer among the modules that a file is encrypted by.
_FOOTER_MODULE = b"\x00"


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


def decrypt_footer(
    handle: pa.NativeFile, key: KeyMetadata
) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Decrypts the footer of a file, which Arrow has opened with this key.

    Returns:
        The footer as Thrift, and what encrypts another footer for the file: it returns what would
        stand at the file's end.
    """
    size, ending = handle.size(), _LENGTH + len(MAGIC)
    length = int.from_bytes(handle.read_at(_LENGTH, size - ending), "little")
    stored: bytes = handle.read_at(length, size - ending - length)
    crypto, start = thrift.decode_struct(stored)
    algorithms = thrift.value_of(crypto, _ALGORITHM, thrift.STRUCT)
    ((_, algorithm),) = algorithms.values()
    aad = (key.aad_prefix or b"") + algorithm[_FILE_UNIQUE][1] + _FOOTER_MODULE
    count = int.from_bytes(stored[start : start + _LENGTH], "little")
    footer = open_sealed(key.encryption_key, stored[start + _LENGTH : start + _LENGTH + count], aad)

    def encrypt(other: bytes) -> bytes:
        sealed = seal(key.encryption_key, other, aad)
        end = stored[:start] + len(sealed).to_bytes(_LENGTH, "little") + sealed
        return end + len(end).to_bytes(_LENGTH, "little") + MAGIC

    return footer, encrypt


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
