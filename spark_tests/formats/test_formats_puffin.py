from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from corpus import corpus_dir, load_vectors
from hypothesis import given, strategies as st

from icebergds.errors import CorruptFileError, MissingFileError, UnsupportedFeatureError
from icebergds.formats.puffin import (
    NewBlob,
    encode_puffin,
    read_puffin_blob,
    read_puffin_footer,
)
from icebergds.io.fileio import FileIO

Save = Callable[[bytes], str]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(data: bytes) -> str:
        path = tmp_path / "file.puffin"
        path.write_bytes(data)
        return str(path)

    return write


def _puffin(payload: bytes, flags: bytes = bytes(4), blobs: bytes = b"") -> bytes:
    size = len(payload).to_bytes(4, "little")
    return b"PFA1" + blobs + b"PFA1" + payload + size + flags + b"PFA1"


def _blob(**changes: object) -> dict[str, object]:
    blob: dict[str, object] = {
        "type": "t",
        "fields": [1],
        "snapshot-id": 2,
        "sequence-number": 3,
        "offset": 4,
        "length": 4,
    }
    return {key: value for key, value in {**blob, **changes}.items() if value is not None}


def _with_blob(**changes: object) -> bytes:
    return _puffin(json.dumps({"blobs": [_blob(**changes)]}).encode(), blobs=b"abcd")


def test_known_files_are_read(save: Save) -> None:
    for vector in load_vectors()["puffin_files"]:
        location = save(bytes.fromhex(vector["hex"]))
        footer = read_puffin_footer(FileIO(), location)
        assert footer.properties == vector["properties"]
        assert len(footer.blobs) == len(vector["blobs"])
        for blob, expected in zip(footer.blobs, vector["blobs"], strict=True):
            assert (blob.type, list(blob.fields)) == (expected["type"], expected["fields"])
            assert (blob.snapshot_id, blob.sequence_number) == (2, 1)
            assert blob.compression_codec == expected["codec"]
            assert read_puffin_blob(FileIO(), location, blob).decode() == expected["text"]


def test_known_files_are_written_byte_for_byte() -> None:
    vector = load_vectors()["puffin_files"][1]
    blobs = [
        NewBlob(b["type"], tuple(b["fields"]), b["text"].encode(), 2, 1) for b in vector["blobs"]
    ]
    assert encode_puffin(blobs, vector["properties"])[0] == bytes.fromhex(vector["hex"])


def test_statistics_of_other_engines_are_read() -> None:
    paths = sorted(corpus_dir().rglob("*.stats"))
    assert paths
    for path in paths:
        footer = read_puffin_footer(FileIO(), str(path))
        for blob in footer.blobs:
            assert blob.type == "apache-datasketches-theta-v1"
            assert read_puffin_blob(FileIO(), str(path), blob)


@given(
    st.lists(
        st.builds(
            NewBlob,
            st.text(max_size=5),
            st.lists(st.integers(1, 2**31 - 1), max_size=3).map(tuple),
            st.binary(max_size=50),
            st.integers(-1, 2**63 - 1),
            st.integers(-1, 2**63 - 1),
            st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
        ),
        max_size=4,
    ),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)
def test_written_files_read_back(
    tmp_path_factory: pytest.TempPathFactory, blobs: list[NewBlob], properties: dict[str, str]
) -> None:
    data, placed = encode_puffin(blobs, properties)
    path = tmp_path_factory.getbasetemp() / "round.puffin"
    path.write_bytes(data)
    footer = read_puffin_footer(FileIO(), str(path))
    assert (footer.blobs, footer.properties) == (placed, properties)
    for blob, new in zip(footer.blobs, blobs, strict=True):
        assert read_puffin_blob(FileIO(), str(path), blob) == new.data
        assert (blob.type, blob.fields, blob.properties) == (new.type, new.fields, new.properties)


def test_a_footer_longer_than_the_first_read_is_read(save: Save) -> None:
    data, placed = encode_puffin([NewBlob("t", (1,), b"x", properties={"p": "v" * 100_000})])
    assert read_puffin_footer(FileIO(), save(data)).blobs == placed


def test_a_compressed_footer_is_read(save: Save) -> None:
    payload = json.dumps({"blobs": [], "properties": {"a": "b"}}).encode()
    compressed = pa.Codec("lz4").compress(payload, asbytes=True)
    footer = read_puffin_footer(FileIO(), save(_puffin(compressed, b"\x01\0\0\0")))
    assert footer.properties == {"a": "b"}


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_blobs_are_decompressed(save: Save, codec: str) -> None:
    stored = pa.Codec(codec).compress(b"hello" * 100, asbytes=True)
    entry = _blob(length=len(stored), **{"compression-codec": codec})
    location = save(_puffin(json.dumps({"blobs": [entry]}).encode(), blobs=stored))
    (blob,) = read_puffin_footer(FileIO(), location).blobs
    assert read_puffin_blob(FileIO(), location, blob) == b"hello" * 100


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_blob_that_does_not_decompress_is_corrupt(save: Save, codec: str) -> None:
    stored = pa.Codec(codec).compress(b"hello" * 100, asbytes=True)[:-5]
    entry = _blob(length=len(stored), **{"compression-codec": codec})
    location = save(_puffin(json.dumps({"blobs": [entry]}).encode(), blobs=stored))
    (blob,) = read_puffin_footer(FileIO(), location).blobs
    with pytest.raises(CorruptFileError, match=r"file\.puffin: blob t at offset 4"):
        read_puffin_blob(FileIO(), location, blob)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_blob_is_decompressed_up_to_a_limit(save: Save, codec: str) -> None:
    stored = pa.Codec(codec).compress(bytes(500_000), asbytes=True)
    entry = _blob(length=len(stored), **{"compression-codec": codec})
    location = save(_puffin(json.dumps({"blobs": [entry]}).encode(), blobs=stored))
    (blob,) = read_puffin_footer(FileIO(), location).blobs
    io = FileIO({"max-block-bytes": "499999"})
    with pytest.raises(
        CorruptFileError, match=r"blob t .* more than 499999 bytes.*max-block-bytes"
    ):
        read_puffin_blob(io, location, blob)
    assert read_puffin_blob(FileIO(), location, blob) == bytes(500_000)


def test_a_footer_is_decompressed_up_to_a_limit(save: Save) -> None:
    payload = json.dumps({"blobs": [], "properties": {"a": "b" * 5000}}).encode()
    location = save(_puffin(pa.Codec("lz4").compress(payload, asbytes=True), b"\x01\0\0\0"))
    with pytest.raises(CorruptFileError, match=r"the footer cannot .* more than 5000 bytes"):
        read_puffin_footer(FileIO({"max-block-bytes": "5000"}), location)


def test_an_unknown_codec_is_refused_by_name(save: Save) -> None:
    location = save(_with_blob(**{"compression-codec": "snappy"}))
    (blob,) = read_puffin_footer(FileIO(), location).blobs
    with pytest.raises(UnsupportedFeatureError, match=r"file\.puffin.*'snappy'"):
        read_puffin_blob(FileIO(), location, blob)


def test_undefined_flags_are_refused_by_name(save: Save) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"file\.puffin.*0x00000002"):
        read_puffin_footer(FileIO(), save(_puffin(b'{"blobs":[]}', b"\x02\0\0\0")))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PFA1",
        b"PFA1PFA1" + bytes(8) + b"PFA2",
        b"PFA2" + _puffin(b'{"blobs":[]}')[4:],
        _puffin(b'{"blobs":[]}')[:4] + b"XXXX" + _puffin(b'{"blobs":[]}')[8:],
        _puffin(b'{"blobs":[]}')[:-1],
        b"PFA1PFA1" + (2**31 - 1).to_bytes(4, "little") + bytes(4) + b"PFA1",
        b"PFA1PFA1" + b"\xff\xff\xff\xff" + bytes(4) + b"PFA1",
        _puffin(b'{"blobs":[]}', b"\x01\0\0\0"),
        _puffin(b"\xff\xff"),
        _puffin(b'{"blobs":['),
        _puffin(b"[]"),
        _puffin(b"{}"),
        _puffin(b'{"blobs":{}}'),
        _puffin(b'{"blobs":[1]}'),
        _puffin(b'{"blobs":[],"properties":{"a":1}}'),
        _with_blob(type=None),
        _with_blob(fields=["1"]),
        _with_blob(**{"snapshot-id": True}),
        _with_blob(offset=3),
        _with_blob(length=5),
        _with_blob(length=-1),
        _with_blob(**{"compression-codec": 1}),
    ],
)
def test_a_damaged_file_is_our_error_and_names_it(save: Save, data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"file\.puffin"):
        read_puffin_footer(FileIO(), save(data))


def test_a_blob_cut_off_after_its_footer_was_read_is_corrupt(save: Save) -> None:
    location = save(_with_blob())
    (blob,) = read_puffin_footer(FileIO(), location).blobs
    save(b"PFA1ab")
    with pytest.raises(CorruptFileError, match=r"file\.puffin"):
        read_puffin_blob(FileIO(), location, blob)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.puffin"):
        read_puffin_footer(FileIO(), str(tmp_path / "none.puffin"))
