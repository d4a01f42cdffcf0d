"""Encrypts and decrypts files as AES GCM streams (spec: AES GCM Stream file format).

A file is a magic number, a block length and cipher blocks. Each block is encrypted for itself, and
authenticated with the file's AAD prefix and its number, so blocks cannot be swapped. Only the
length in the key metadata shows that whole blocks are missing at the end.
"""

from __future__ import annotations

import io
from typing import Protocol

from icebergds.encryption.ciphers import WrongKey, open_sealed, seal
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError

MAGIC = b"AGS1"
BLOCK_LENGTH = 1024 * 1024
"""Plain bytes of each block but the last one; Java and Rust use and accept no other length."""

_HEADER = MAGIC + BLOCK_LENGTH.to_bytes(4, "little")
_NONCE = 12
_OVERHEAD = _NONCE + 16
_CIPHER_BLOCK = BLOCK_LENGTH + _OVERHEAD
_LEAST = len(_HEADER) + _OVERHEAD


class Sink(Protocol):
    """A file that is written from front to back."""

    def write(self, data: bytes, /) -> object: ...


class RandomAccessFile(Protocol):
    """A file as stored; Arrow's files are such."""

    def size(self) -> int: ...

    def read_at(self, nbytes: int, offset: int, /) -> bytes: ...


def encrypt_bytes(data: bytes, key: KeyMetadata) -> bytes:
    """Encrypts a whole file."""
    stored = io.BytesIO()
    stream = EncryptingStream(stored, key)
    stream.write(data)
    stream.finish()
    return stored.getvalue()


def decrypt_bytes(stored: bytes, key: KeyMetadata, what: str) -> bytes:
    """Decrypts a whole file.

    Args:
        what: the file, for errors.

    Raises:
        CorruptFileError: the file is not such a stream, or damaged, cut off or another one, or the
            key is wrong.
    """
    plain = DecryptedFile(_InMemory(stored), key, what)
    return plain.read()


class EncryptingStream:
    """A file object that encrypts what is written to it; `finish` completes the file.

    Args:
        sink: the stored file; it is not closed.
    """

    def __init__(self, sink: Sink, key: KeyMetadata) -> None:
        self._sink = sink
        self._key = key.encryption_key
        self._prefix = key.aad_prefix or b""
        self._waiting = bytearray()
        self._blocks = 0
        self._plain = 0
        self.stored_length = 0
        self._write(_HEADER)

    def write(self, data: bytes) -> int:
        """Takes plain bytes; full blocks are written at once."""
        view = memoryview(data).cast("B")
        self._plain += len(view)
        at = 0
        while len(self._waiting) + len(view) - at >= BLOCK_LENGTH:
            taken = BLOCK_LENGTH - len(self._waiting)
            self._waiting += view[at : at + taken]
            at += taken
            self._write_block()
        self._waiting += view[at:]
        return len(view)

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        """Plain bytes written so far."""
        return self._plain

    def flush(self) -> None:
        """Does nothing: a block is only written when it is full, or the last."""

    def finish(self) -> None:
        """Writes the last block; an empty file has one, too."""
        if self._waiting or not self._blocks:
            self._write_block()

    def _write_block(self) -> None:
        aad = _aad(self._prefix, self._blocks)
        self._write(seal(self._key, bytes(self._waiting), aad))
        self._waiting.clear()
        self._blocks += 1

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self.stored_length += len(data)


class DecryptedFile(io.RawIOBase):
    """The plain content of an encrypted file, for random access; decrypts only what is read.

    Args:
        file: the file as stored; closing this object does not close it.
        what: the file, for errors.

    Raises:
        CorruptFileError: the file does not begin as such a stream, or its length is not the one in
            the key metadata; later, when a block is read: it is damaged or another one, or the key
            is wrong.
    """

    def __init__(self, file: RandomAccessFile, key: KeyMetadata, what: str) -> None:
        self._file = file
        self._key = key.encryption_key
        self._prefix = key.aad_prefix or b""
        self._what = what
        self._position = 0
        self._kept: tuple[int, bytes] = (-1, b"")
        stored = file.size()
        self._check_length(stored, key.file_length)
        header = bytes(file.read_at(len(_HEADER), 0))
        if header != _HEADER:
            raise self._damaged(
                f"it begins with {header[:4]!r} and the block length "
                f"{int.from_bytes(header[4:], 'little'):,}, expected {MAGIC!r} and "
                f"{BLOCK_LENGTH:,}"
                if header.startswith(MAGIC)
                else "it does not begin as an encrypted file, but its key metadata says that it is"
            )
        self._body = stored - len(_HEADER)
        full, rest = divmod(self._body, _CIPHER_BLOCK)
        if 0 < rest < _OVERHEAD:
            raise self._damaged("its last block is cut off")
        if key.file_length is None and not rest:
            # Only a last block that is not full shows that no other one followed.
            raise self._damaged(
                "it ends with a full block, and its key metadata has no length, so it is not known "
                "whether it was cut off"
            )
        self.length = full * BLOCK_LENGTH + max(0, rest - _OVERHEAD)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        """Length of the plain content."""
        return self.length

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.length}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        start = self._position
        end = self.length if size is None or size < 0 else min(start + size, self.length)
        if end <= start:
            if not self.length:
                self._block(0)
            return b""
        parts = []
        for number in range(start // BLOCK_LENGTH, (end - 1) // BLOCK_LENGTH + 1):
            first = number * BLOCK_LENGTH
            plain = self._block(number)
            parts.append(plain[max(0, start - first) : end - first])
        self._position = end
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Reads from an offset; moves to the end of what was read."""
        self.seek(offset)
        return self.read(nbytes)

    def _block(self, number: int) -> bytes:
        """Decrypts a block; the last one is kept for the reads that follow."""
        kept, plain = self._kept
        if kept != number:
            start = number * _CIPHER_BLOCK
            length = min(_CIPHER_BLOCK, self._body - start)
            stored = bytes(self._file.read_at(length, len(_HEADER) + start))
            if len(stored) != length:
                raise self._damaged(f"block {number} is cut off")
            try:
                plain = open_sealed(self._key, stored, _aad(self._prefix, number))
            except WrongKey:
                raise self._damaged(
                    f"block {number} does not fit its key: the key is wrong, or the file was "
                    "damaged or replaced by another one"
                ) from None
            self._kept = number, plain
        return plain

    def _check_length(self, stored: int, expected: int | None) -> None:
        if stored < _LEAST:
            raise self._damaged(f"it has {stored:,} bytes; the shortest has {_LEAST}")
        if expected is not None and stored != expected:
            how = "cut off" if stored < expected else "extended or replaced"
            raise self._damaged(
                f"it has {stored:,} bytes, its key metadata says {expected:,}; it was {how}"
            )

    def _damaged(self, problem: str) -> CorruptFileError:
        return CorruptFileError(f"{self._what} cannot be decrypted: {problem}")


class _InMemory:
    """A stored file whose bytes are known."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        return self._data[offset : offset + nbytes]


def _aad(prefix: bytes, block: int) -> bytes:
    return prefix + block.to_bytes(4, "little")
