from __future__ import annotations

import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.encryption.key_metadata import KeyMetadata, new_key_metadata, parse_key_metadata
from icebergds.errors import CorruptFileError, InvalidOptionError, UnsupportedFeatureError

_KEY, _PREFIX = b"0123456789012345", b"1234567890123456"
_PLAIN = bytes.fromhex("012030313233343536373839303132333435022031323334353637383930313233343536")
_KEYS = st.builds(
    KeyMetadata,
    st.sampled_from([16, 24, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    st.none() | st.binary(max_size=200),
    st.none() | st.integers(0, 2**63 - 1),
)


@pytest.mark.parametrize(
    ("stored", "length"), [(_PLAIN + b"\x00", None), (_PLAIN + bytes.fromhex("02c09a0c"), 100_000)]
)
def test_the_keys_of_javas_tests_are_read_and_written(stored: bytes, length: int | None) -> None:
    key = KeyMetadata(_KEY, _PREFIX, length)
    assert parse_key_metadata(stored, "f") == key
    assert key.serialized() == stored


@given(_KEYS)
@examples(50)
def test_key_metadata_is_read_as_it_was_written(key: KeyMetadata) -> None:
    assert parse_key_metadata(key.serialized(), "f") == key


@given(_KEYS, st.integers(min_value=0))
@examples(50)
def test_key_metadata_that_is_cut_off_or_longer_is_refused(key: KeyMetadata, at: int) -> None:
    stored = key.serialized()
    for wrong in (stored[: max(1, at % len(stored))], stored + b"\x00"):
        with pytest.raises(CorruptFileError, match=r"key metadata of data\.parquet"):
            parse_key_metadata(wrong, "data.parquet")


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (b"\x01\x1e" + _KEY[:15] + b"\x00\x00", "its key has 15 bytes"),
        (_PLAIN + b"\x04", "no Avro record"),
        (_PLAIN + b"\x02\x01", "its file length is -1"),
        (b"\x01" + b"\xff" * 12, "no Avro record"),
    ],
)
def test_other_key_metadata_is_refused_without_showing_it(stored: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem) as caught:
        parse_key_metadata(stored, "data.parquet")
    assert "0123456789" not in str(caught.value)


@pytest.mark.parametrize(
    ("stored", "found"), [(b"\x02" + _PLAIN[1:] + b"\x00", "version 2"), (b"", "no bytes")]
)
def test_key_metadata_of_another_version_is_refused(stored: bytes, found: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"{found}, expected version 1"):
        parse_key_metadata(stored, "data.parquet")


def test_keys_do_not_appear_in_texts() -> None:
    key = KeyMetadata(_KEY, _PREFIX, 7)
    assert "0123" not in repr(key)
    assert "1234" not in repr(key)


def test_each_new_key_is_another_one() -> None:
    keys = [new_key_metadata(length) for length in (16, 16, 24, 32)]
    assert [len(key.encryption_key) for key in keys] == [16, 16, 24, 32]
    assert len({key.encryption_key for key in keys}) == len({key.aad_prefix for key in keys}) == 4
    with pytest.raises(InvalidOptionError, match="a key of 20 bytes"):
        new_key_metadata(20)
