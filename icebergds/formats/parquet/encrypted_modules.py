"""Decrypts single modules of encrypted Parquet files: footers, page indexes, page headers, pages.

pyarrow decrypts whole column chunks only. Each module is encrypted by AES-GCM with additional data
that says what it is and where, so that none can stand in for another one (Parquet Modular
Encryption, 4.4 and 5.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from icebergds.encryption.ciphers import WrongKey, open_sealed, seal
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.encryption import MAGIC
from icebergds.formats.parquet.thrift import Struct, ThriftError, value_of

_LENGTH_BYTES = 4
_MOST_ORDINAL = 0x7FFF
# FileCryptoMetaData: encryption_algorithm. EncryptionAlgorithm: AES_GCM_V1. AesGcmV1: aad_prefix,
# aad_file_unique.
_ALGORITHM, _GCM, _PREFIX, _UNIQUE = 1, 1, 1, 2
# PageHeader: compressed_page_size, crc.
_COMPRESSED_SIZE, _CRC = 3, 4


class Module(IntEnum):
    """Types of modules, by their numbers in additional data."""

    FOOTER = 0
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7


@dataclass(frozen=True, slots=True)
class ModuleKey:
    """The key of all modules of a file, and what its additional data begins with."""

    key: KeyMetadata
    file_aad: bytes

    def opened(self, stored: bytes, module: Module, *ordinals: int) -> bytes:
        """Decrypts a module, which is stored as its length, a nonce, the ciphertext and a tag.

        Args:
            ordinals: of the row group, the column and, for data pages and their headers, the page.

        Raises:
            WrongKey: it is another module, or was changed, or the key is another one.
            ThriftError: an ordinal is larger than modules may have.
        """
        if any(ordinal > _MOST_ORDINAL for ordinal in ordinals):
            raise ThriftError(f"modules cannot have the ordinals {ordinals}")
        if int.from_bytes(stored[:_LENGTH_BYTES], "little") != len(stored) - _LENGTH_BYTES:
            raise WrongKey
        return open_sealed(
            self.key.encryption_key,
            stored[_LENGTH_BYTES:],
            module_aad(self.file_aad, module, *ordinals),
        )

    def opened_page(self, stored: bytes, group: int, leaf: int, page: int | None) -> bytes:
        """A page with its header, as it would be in a file that is not encrypted.

        Args:
            stored: the header's module and the page's.
            page: ordinal of a data page in its column chunk; None for a dictionary page.

        Raises:
            WrongKey: as for `opened`.
            ThriftError: the header is not one.
        """
        if page is None:
            head, body = Module.DICTIONARY_PAGE_HEADER, Module.DICTIONARY_PAGE
            place: tuple[int, ...] = (group, leaf)
        else:
            head, body = Module.DATA_PAGE_HEADER, Module.DATA_PAGE
            place = (group, leaf, page)
        end = _LENGTH_BYTES + int.from_bytes(stored[:_LENGTH_BYTES], "little")
        header, _ = thrift.decode_struct(self.opened(stored[:end], head, *place))
        content = self.opened(stored[end:], body, *place)
        header[_COMPRESSED_SIZE] = (thrift.I32, len(content))
        # It may be that of the encrypted page. The tag was checked instead.
        header.pop(_CRC, None)
        return thrift.encode_struct(header) + content


def open_footer(stored: bytes, key: KeyMetadata) -> tuple[bytes, ModuleKey]:
    """Decrypts a footer; also returns the key of the file's other modules.

    Args:
        stored: the file's FileCryptoMetaData and the footer's module.

    Raises:
        WrongKey: as for `ModuleKey.opened`.
        ThriftError: pages are encrypted by AES_GCM_CTR_V1, and have no tags to check, or the
            structure is not FileCryptoMetaData.
    """
    crypto, end = thrift.decode_struct(stored)
    modules = ModuleKey(key, file_aad(crypto, key))
    return modules.opened(stored[end:], Module.FOOTER), modules


def rewritten_footer(end: bytes, key: KeyMetadata, rewrite: Callable[[bytes], bytes]) -> bytes:
    """The end of a file whose footer was decrypted, rewritten, and encrypted again (5.4).

    Args:
        end: the last bytes of the file, at least all from FileCryptoMetaData on.
        rewrite: makes another footer of one.

    Raises:
        WrongKey, ThriftError: as for `open_footer`.
    """
    stop = len(end) - _LENGTH_BYTES - len(MAGIC)
    start = stop - int.from_bytes(end[stop : stop + _LENGTH_BYTES], "little")
    crypto, at = thrift.decode_struct(end, start)
    aad = module_aad(file_aad(crypto, key), Module.FOOTER)
    footer = open_sealed(key.encryption_key, end[at + _LENGTH_BYTES : stop], aad)
    sealed = seal(key.encryption_key, rewrite(footer), aad)
    encoded = end[start:at] + len(sealed).to_bytes(_LENGTH_BYTES, "little") + sealed
    return end[:start] + encoded + len(encoded).to_bytes(_LENGTH_BYTES, "little") + MAGIC


def file_aad(crypto: Struct, key: KeyMetadata) -> bytes:
    """What the additional data of all modules begins with: the file's prefix and its identifier.

    Args:
        crypto: the file's FileCryptoMetaData.

    Raises:
        ThriftError: the file is not encrypted by AES_GCM_V1.
    """
    gcm: Struct = value_of(value_of(crypto, _ALGORITHM, thrift.STRUCT), _GCM, thrift.STRUCT)
    stored: bytes = value_of(gcm, _PREFIX, thrift.BINARY) if _PREFIX in gcm else b""
    unique: bytes = value_of(gcm, _UNIQUE, thrift.BINARY)
    return (key.aad_prefix or stored) + unique


def module_aad(file_aad: bytes, module: Module, *ordinals: int) -> bytes:
    """The additional data of a module; ordinals as for `ModuleKey.opened`."""
    numbers = (ordinal.to_bytes(2, "little") for ordinal in ordinals)
    return b"".join((file_aad, bytes((module,)), *numbers))
