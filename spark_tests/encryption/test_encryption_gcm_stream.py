from __future__ import annotations

import io
from dataclasses import replace

import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.encryption.gcm_stream import (
    BLOCK_LENGTH,
    DecryptedFile,
    EncryptingStream,
    decrypt_bytes,
    encrypt_bytes,
)
from icebergds.encryption.key_metadata import KeyMetadata, new_key_metadata, parse_key_metadata
from icebergds.errors import CorruptFileError

_KEY = new_key_metadata(16)
_CIPHER_BLOCK = BLOCK_LENGTH + 28
# Around the ends of blocks, where lengths go wrong.
_LENGTHS = st.builds(
    lambda blocks, more: max(0, blocks * BLOCK_LENGTH + more), st.integers(0, 2), st.integers(-2, 2)
) | st.integers(0, 3 * BLOCK_LENGTH)


class _Stored(io.BytesIO):
    """A stored file that counts what is read of it."""

    taken = 0

    def size(self) -> int:
        return len(self.getbuffer())

    def read_at(self, nbytes: int, offset: int) -> bytes:
        self.taken += nbytes
        self.seek(offset)
        return self.read(nbytes)


def _bytes_of(length: int) -> bytes:
    return bytes(range(251)) * (length // 251) + bytes(range(length % 251))


def _key_of(stored: bytes) -> KeyMetadata:
    return _KEY.of_length(len(stored))


def test_a_file_of_java_is_decrypted() -> None:
    key = parse_key_metadata(
        bytes.fromhex(
            "01207eff94cbf9a023e90c5f2b2f8c5253940220eaf5029c7d1f04d10b3758926ca7010a028601"
        ),
        "f",
    )
    stored = bytes.fromhex(
        "414753310000100009e296134216856a28a9ad05b790d6acf58c56087248e793b682a455e19fd545ecfa9407"
        "500bab4ea22edb72d747c69f65b7906bce5cc08c8e4b7f"
    )
    assert decrypt_bytes(stored, key, "f") == b"iceberg encryption known answer"


@pytest.mark.parametrize(
    ("length", "stored"),
    [(0, 36), (1, 37), (BLOCK_LENGTH, 1_048_612), (BLOCK_LENGTH + 1, 1_048_612 + 29)],
)
def test_files_have_the_lengths_of_java(length: int, stored: int) -> None:
    assert len(encrypt_bytes(bytes(length), _KEY)) == stored


@given(_LENGTHS, st.lists(st.integers(1, 2 * BLOCK_LENGTH), max_size=4))
@examples(10)
def test_what_was_written_in_any_pieces_is_read(length: int, pieces: list[int]) -> None:
    data, sink, at = _bytes_of(length), io.BytesIO(), 0
    stream = EncryptingStream(sink, _KEY)
    for piece in [*pieces, length]:
        stream.write(data[at : at + piece])
        at += piece
    stream.finish()
    stored = sink.getvalue()
    assert stream.stored_length == len(stored)
    assert stream.tell() == length
    assert decrypt_bytes(stored, _key_of(stored), "f") == data


@given(_LENGTHS, st.integers(0, 3 * BLOCK_LENGTH), st.integers(0, BLOCK_LENGTH + 10))
@examples(20)
def test_any_range_is_read(length: int, start: int, count: int) -> None:
    data = _bytes_of(length)
    stored = _encrypted(length)
    file = DecryptedFile(_Stored(stored), _key_of(stored), "f")
    assert file.size() == length
    assert file.read_at(count, start) == data[start : start + count]


def test_only_the_blocks_of_a_range_are_read() -> None:
    stored = _Stored(_encrypted(3 * BLOCK_LENGTH))
    file = DecryptedFile(stored, _key_of(stored.getvalue()), "f")
    assert len(file.read_at(10, BLOCK_LENGTH + 5)) == 10
    assert len(file.read_at(10, BLOCK_LENGTH + 500)) == 10
    assert stored.taken == 8 + _CIPHER_BLOCK


def test_a_change_of_any_byte_is_refused() -> None:
    stored = encrypt_bytes(b"some bytes", _KEY)
    for at in range(len(stored)):
        changed = bytearray(stored)
        changed[at] ^= 1 << at % 8
        with pytest.raises(CorruptFileError, match=r"metadata/m0\.avro cannot be decrypted"):
            decrypt_bytes(bytes(changed), _key_of(stored), "metadata/m0.avro")


@given(st.integers(0, 3 * _CIPHER_BLOCK))
@examples(20)
def test_a_file_that_is_cut_off_is_refused(length: int) -> None:
    stored = _encrypted(3 * BLOCK_LENGTH + 5)
    with pytest.raises(CorruptFileError, match=r"cut off|the shortest has 36"):
        decrypt_bytes(stored[:length], _key_of(stored), "f")


def test_without_a_length_only_a_file_that_is_surely_whole_is_read() -> None:
    stored = _encrypted(BLOCK_LENGTH + 5)
    assert decrypt_bytes(stored, _KEY, "f") == _bytes_of(BLOCK_LENGTH + 5)
    for cut in (8 + _CIPHER_BLOCK, len(stored) - 1, len(stored) - 10):
        with pytest.raises(CorruptFileError, match=r"cut off|does not fit its key"):
            decrypt_bytes(stored[:cut], _KEY, "f")


def test_blocks_cannot_be_swapped_or_repeated() -> None:
    stored = _encrypted(3 * BLOCK_LENGTH)
    blocks = [stored[8 + i * _CIPHER_BLOCK :][:_CIPHER_BLOCK] for i in range(3)]
    for order in ([1, 0, 2], [0, 0, 2], [0, 1, 1]):
        swapped = stored[:8] + b"".join(blocks[i] for i in order)
        with pytest.raises(CorruptFileError, match=r"block [012] does not"):
            decrypt_bytes(swapped, _key_of(stored), "f")


def test_another_key_prefix_or_file_is_refused_and_no_key_is_shown() -> None:
    stored = encrypt_bytes(b"some bytes", _KEY)
    other = new_key_metadata(16).of_length(len(stored))
    keys = [
        other,
        replace(other, encryption_key=_KEY.encryption_key),
        replace(other, aad_prefix=_KEY.aad_prefix),
        replace(_key_of(stored), aad_prefix=None),
    ]
    for key in keys:
        with pytest.raises(CorruptFileError, match="the key is wrong, or the file was") as caught:
            decrypt_bytes(stored, key, "f")
        assert caught.value.__cause__ is None
    with pytest.raises(CorruptFileError, match="extended or replaced"):
        decrypt_bytes(stored + b"x", _key_of(stored), "f")


@pytest.mark.parametrize("stored", [b"PAR1" + bytes(60), b"AGS1" + bytes(60)])
def test_what_is_not_such_a_stream_is_refused(stored: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"does not begin as|the block length 0"):
        decrypt_bytes(stored, _key_of(stored), "f")


_ENCRYPTED: dict[int, bytes] = {}


def _encrypted(length: int) -> bytes:
    if length not in _ENCRYPTED:
        _ENCRYPTED[length] = encrypt_bytes(_bytes_of(length), _KEY)
    return _ENCRYPTED[length]
