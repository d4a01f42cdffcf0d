"""Manifests that are no manifests, or not whole: errors that name them."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from manifest_cases import (
    ONE_BY_ONE,
    SIDE_BY_SIDE,
    SYNC,
    blocks_of,
    comparable,
    container,
    encoded,
    java_schema,
    like_java,
    store,
)

from icebergds.errors import CorruptFileError, IcebergError, UnsupportedFeatureError
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.io.fileio import FileIO

IO = FileIO()


def a_manifest() -> bytes:
    return container(java_schema(), blocks_of(encoded([like_java(n) for n in range(60)]), 20))


@pytest.mark.parametrize("few_entries", [SIDE_BY_SIDE, ONE_BY_ONE])
def test_a_truncated_manifest_is_named(tmp_path: Path, few_entries: int) -> None:
    data = a_manifest()
    ends_of_blocks = [at + 16 for at in range(len(data)) if data.startswith(SYNC, at)]
    draw = random.Random(1)
    for length in [0, 1, 3, 4, 10, *draw.sample(range(20, len(data)), 60)]:
        if length in ends_of_blocks:
            continue
        manifest = store(tmp_path / "cut.avro", data[:length], added_snapshot_id=1)
        with pytest.raises(CorruptFileError, match=r"cut\.avro"):
            read_manifest_columns(IO, manifest, few_entries=few_entries)


def test_damaged_entries_are_errors_or_the_same_by_both_ways(tmp_path: Path) -> None:
    """Bytes changed in plain blocks: never a hang, never another kind of error."""
    records = encoded([like_java(n) for n in range(40)])
    draw = random.Random(2)
    for _ in range(150):
        block = bytearray(b"".join(records))
        for _ in range(draw.randrange(1, 4)):
            block[draw.randrange(len(block))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        data = container(java_schema(), [[bytes(block)] + [b""] * 39], codec="null")
        manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
        outcomes = []
        for few in (SIDE_BY_SIDE, ONE_BY_ONE):
            try:
                columns = read_manifest_columns(IO, manifest, few_entries=few)
                outcomes.append(comparable(columns))
            except IcebergError as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"PAR1" + bytes(100), id="not Avro"),
        pytest.param(container({"type": "string"}, []), id="not a record"),
        pytest.param(container({"type": "record", "name": "r", "fields": []}, []), id="no fields"),
        pytest.param(container({"type": "array", "items": "int"}, []), id="array"),
        pytest.param(container("nosuch", []), id="unknown type"),
        pytest.param(container(java_schema(), [[b""] * 5]), id="entries without bytes"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, data: bytes) -> None:
    manifest = store(tmp_path / "odd.avro", data)
    with pytest.raises(CorruptFileError, match=r"odd\.avro"):
        read_manifest_columns(IO, manifest)


def test_an_array_of_elements_without_bytes_is_refused(tmp_path: Path) -> None:
    """A few bytes could claim any number of them."""
    schema = java_schema()
    nulls = {"type": "array", "items": "null"}
    schema["fields"].append({"name": "nulls", "type": nulls, "field-id": 7777})
    manifest = store(tmp_path / "m.avro", container(schema, []))
    with pytest.raises(CorruptFileError, match="without bytes"):
        read_manifest_columns(IO, manifest)


def test_an_encrypted_manifest_is_refused_by_name(tmp_path: Path) -> None:
    manifest = store(tmp_path / "m.avro", b"AGS1" + struct.pack("<i", 1 << 20) + bytes(50))
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        read_manifest_columns(IO, manifest)


def test_an_unknown_codec_is_refused_by_name(tmp_path: Path) -> None:
    data = container(java_schema(), [encoded([like_java(1)])], codec="brotli")
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    with pytest.raises(UnsupportedFeatureError, match="brotli"):
        read_manifest_columns(IO, manifest)
