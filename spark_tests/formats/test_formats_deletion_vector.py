from __future__ import annotations

import hashlib
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyroaring
import pytest
from corpus import corpus_dir, load_vectors
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import (
    CorruptFileError,
    IcebergError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.deletes.deletion_vector import (
    MAX_POSITION,
    decode_deletion_vector,
    decode_roaring64,
    encode_deletion_vector,
    encode_roaring64,
    read_deletion_vector,
)
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.puffin import read_puffin_footer
from icebergds.io.fileio import FileIO

# Stretches of ranges and single positions, so that every kind of container appears.
_RANGES = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 300_000), st.integers(2**32 - 70_000, 2**32 + 70_000)),
        st.sampled_from([1, 1, 1, 2, 100, 5_000, 66_000]),
        st.sampled_from([1, 1, 2, 3, 11]),
    ),
    max_size=6,
)


def _positions_of(ranges: list[tuple[int, int, int]]) -> np.ndarray:
    parts = [np.arange(start, start + count * step, step) for start, count, step in ranges]
    return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))


def _frame(bitmap: bytes) -> bytes:
    body = bytes.fromhex("d1d33964") + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def test_known_vectors_decode_to_their_positions() -> None:
    for vector in load_vectors()["deletion_vector_blobs"]:
        expected = _positions_of([(a, b - a + 1, 1) for a, b in vector["ranges_inclusive"]])
        decoded = decode_deletion_vector(bytes.fromhex(vector["hex"]), vector["file"])
        np.testing.assert_array_equal(decoded.positions(), expected)


def test_known_vectors_encode_to_the_same_bytes() -> None:
    for vector in load_vectors()["deletion_vector_blobs"]:
        blob = bytes.fromhex(vector["hex"])
        assert encode_deletion_vector(decode_deletion_vector(blob, "")) == blob, vector["file"]


def test_known_invalid_vectors_are_refused_by_name() -> None:
    for vector in load_vectors()["deletion_vector_blobs_invalid"]:
        with pytest.raises(CorruptFileError, match=r"^a\.puffin"):
            decode_deletion_vector(bytes.fromhex(vector["hex"]), "a.puffin")


def test_known_roaring_files_decode_or_are_refused() -> None:
    for vector in load_vectors()["roaring64_files"]:
        data = (corpus_dir() / vector["file"]).read_bytes()
        if not vector["iceberg_supported"]:
            with pytest.raises(CorruptFileError):
                decode_roaring64(data, vector["file"])
            continue
        positions = decode_roaring64(data, vector["file"]).positions()
        text = "\n".join(map(str, positions.tolist())).encode()
        assert (
            hashlib.sha256(text).hexdigest() == vector["sha256_of_decimal_values_joined_by_newline"]
        )


@examples(60)
@given(_RANGES)
def test_encoded_vectors_decode_to_themselves(ranges: list[tuple[int, int, int]]) -> None:
    positions = _positions_of(ranges)
    decoded = decode_deletion_vector(encode_deletion_vector(PositionSet.of(positions)), "")
    np.testing.assert_array_equal(decoded.positions(), positions)
    assert len(decoded) == len(positions)


@examples(60)
@given(_RANGES, st.booleans())
def test_bitmaps_are_those_of_the_reference_library(
    ranges: list[tuple[int, int, int]], optimise: bool
) -> None:
    positions = _positions_of(ranges)
    theirs = pyroaring.BitMap64(positions.tolist())
    assert pyroaring.BitMap64.deserialize(encode_roaring64(PositionSet.of(positions))) == theirs
    if optimise:
        theirs.run_optimize()
        # As runs or not, if that takes the same: it depends on how a bitmap was made.
        assert len(encode_roaring64(PositionSet.of(positions))) == len(theirs.serialize())
    np.testing.assert_array_equal(decode_roaring64(theirs.serialize(), "").positions(), positions)


@examples(60)
@given(_RANGES.filter(bool), st.data())
def test_damaged_bitmaps_raise_our_error_or_are_other_bitmaps(
    ranges: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    encoded = bytearray(encode_roaring64(PositionSet.of(_positions_of(ranges))))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, min(len(encoded), 64) - 1))] = data.draw(
            st.integers(0, 255)
        )
    cut = data.draw(st.integers(0, len(encoded)))
    for damaged in (bytes(encoded), bytes(encoded[:cut])):
        try:
            positions = decode_roaring64(damaged, "f").positions()
        except CorruptFileError:
            continue
        assert (positions[1:] > positions[:-1]).all()


@examples(100)
@given(st.data())
def test_any_flipped_bit_of_a_vector_is_noticed(data: st.DataObject) -> None:
    blob = bytearray(encode_deletion_vector(PositionSet.of([1, 5, 70_000, 2**33])))
    bit = data.draw(st.integers(0, 8 * len(blob) - 1))
    blob[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptFileError):
        decode_deletion_vector(bytes(blob), "f")


def test_positions_beyond_63_bits_are_refused() -> None:
    bitmap = struct.pack("<QI", 1, 1 << 31) + pyroaring.BitMap([1]).serialize()
    with pytest.raises(CorruptFileError, match="2\\^63"):
        decode_deletion_vector(_frame(bitmap), "f")


def test_bitmaps_out_of_order_are_refused() -> None:
    part = pyroaring.BitMap([1]).serialize()
    for keys in ((1, 0), (1, 1)):
        parts = b"".join(struct.pack("<I", key) + part for key in keys)
        with pytest.raises(CorruptFileError, match="damaged"):
            decode_roaring64(struct.pack("<Q", 2) + parts, "f")


@pytest.mark.parametrize("runs", [[(0, 9), (5, 9)], [(20, 9), (0, 9)], [(65_530, 19)]])
def test_runs_that_overlap_or_leave_their_container_are_refused(
    runs: list[tuple[int, int]],
) -> None:
    count = sum(length + 1 for _, length in runs)
    head = struct.pack("<QIIBHH", 1, 0, 12_347, 1, 0, count - 1)
    stored = struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)
    with pytest.raises(CorruptFileError, match="damaged"):
        decode_roaring64(head + stored, "f")


def test_positions_that_others_cannot_read_are_not_written() -> None:
    assert encode_deletion_vector(PositionSet.of([MAX_POSITION]))
    with pytest.raises(ValueError, match="does not fit"):
        encode_deletion_vector(PositionSet.of([MAX_POSITION + 1]))


def test_empty_bitmaps_between_others_are_skipped() -> None:
    parts = [(0, [3]), (1, []), (2, [4])]
    bitmap = struct.pack("<Q", 3) + b"".join(
        struct.pack("<I", key) + pyroaring.BitMap(values).serialize() for key, values in parts
    )
    assert decode_roaring64(bitmap, "").positions().tolist() == [3, 2 * 2**32 + 4]


def test_a_cardinality_other_than_the_manifests_is_refused() -> None:
    blob = encode_deletion_vector(PositionSet.of([1, 2, 3]))
    assert len(decode_deletion_vector(blob, "f", 3)) == 3
    with pytest.raises(CorruptFileError, match="3 positions, the manifest's record_count is 4"):
        decode_deletion_vector(blob, "f", 4)


_MANY = 10_000_000


def _peak_memory(action: Callable[[], object]) -> int:
    """The most memory of arrays that an action needs, in bytes."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_wrong_cardinality_is_refused_before_runs_are_expanded() -> None:
    blob = _frame(pyroaring.BitMap64(range(_MANY)).serialize())

    def read() -> None:
        with pytest.raises(CorruptFileError, match=f"{_MANY} positions"):
            decode_deletion_vector(blob, "f", 5)

    assert _peak_memory(read) < 1_000_000


def test_positions_beyond_63_bits_are_refused_before_runs_are_expanded() -> None:
    blob = _frame(pyroaring.BitMap64(range(2**63, 2**63 + _MANY)).serialize())

    def read() -> None:
        with pytest.raises(CorruptFileError, match="2\\^63"):
            decode_deletion_vector(blob, "f")

    assert _peak_memory(read) < 1_000_000


def test_runs_are_applied_to_batches_without_being_expanded() -> None:
    blob = _frame(pyroaring.BitMap64(range(5, _MANY)).serialize())

    def read() -> None:
        deleted = decode_deletion_vector(blob, "f", _MANY - 5)
        first = deleted.mask(0, 10_000)
        assert first is not None
        assert np.flatnonzero(~first).tolist() == [0, 1, 2, 3, 4]
        inner = deleted.mask(5_000_000, 10_000)
        assert inner is not None
        assert inner.all()
        assert deleted.mask(_MANY, 10_000) is None

    assert _peak_memory(read) < 1_000_000


def test_runs_are_merged_and_written_without_being_expanded() -> None:
    blob = _frame(pyroaring.BitMap64(range(_MANY)).serialize())

    def merge() -> None:
        earlier = decode_deletion_vector(blob, "f")
        merged = PositionSet.union([earlier, PositionSet.of([_MANY + 3])])
        assert len(encode_deletion_vector(merged)) < 20_000
        assert earlier.issubset(merged)

    assert _peak_memory(merge) < 1_000_000


def test_a_vector_is_read_from_where_the_manifest_points(tmp_path: Path) -> None:
    blob = encode_deletion_vector(PositionSet.of([7, 8]))
    path = tmp_path / "a.puffin"
    path.write_bytes(b"PFA1" + blob + b"rest")
    found = read_deletion_vector(FileIO(), str(path), 4, len(blob), 2)
    assert found.positions().tolist() == [7, 8]


@pytest.mark.parametrize(("offset", "length"), [(0, 20), (40, 20), (4, 2**40), (-4, 20), (4, 3)])
def test_a_wrong_pointer_into_a_file_is_our_error(tmp_path: Path, offset: int, length: int) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"PFA1" + encode_deletion_vector(PositionSet.of([])) + b"rest")
    with pytest.raises(CorruptFileError, match=r"a\.puffin"):
        read_deletion_vector(FileIO(), str(path), offset, length)


@pytest.mark.parametrize("offset", [4, 400])
def test_an_encrypted_puffin_file_is_refused_by_name(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"AGS1" + struct.pack("<i", 1 << 20) + bytes(100))
    with pytest.raises(UnsupportedFeatureError, match=r"a\.puffin is encrypted"):
        read_deletion_vector(FileIO(), str(path), offset, 50)


def test_a_missing_puffin_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"no\.puffin"):
        read_deletion_vector(FileIO(), str(tmp_path / "no.puffin"), 4, 20)


def test_vectors_that_others_wrote_are_read() -> None:
    path = corpus_dir() / (
        "iceberg-cxx-hist/tests/tables/deletion_vector/deletion_vector_sample/data/"
        "00000-2-766d0c1d-4652-4a59-9721-58fb02898559-00001-deletes.puffin"
    )
    (blob,) = read_puffin_footer(FileIO(), str(path)).blobs
    found = read_deletion_vector(FileIO(), str(path), blob.offset, blob.length)
    assert len(found) == int(blob.properties["cardinality"])


def test_errors_are_of_one_tree() -> None:
    with pytest.raises(IcebergError):
        decode_deletion_vector(b"", "f")
