"""Avro blocks are decompressed up to a limit, whatever compressed them."""

from __future__ import annotations

import bz2
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from built.schemas import optional

from icebergds.errors import CorruptFileError, InvalidOptionError
from icebergds.formats.avro.container import AvroContainer, parse_container
from icebergds.formats.avro.container_writer import write_blocks
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.manifests.manifest_list import read_manifest_list
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import STRING

CODECS = ["deflate", "zstandard", "bzip2", "xz", "snappy"]
_MIB = 1024 * 1024
_SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "s", "type": "string"}]}
_TEXTS = Schema((optional(1, "s", STRING),))


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_is_read_up_to_the_limit(codec: str) -> None:
    plain = b"abc" * 100_000
    assert _read(_stored(codec, plain), 300_000) == [plain]
    with pytest.raises(CorruptFileError) as caught:
        _read(_stored(codec, plain), 299_999)
    assert "manifest 'm': block 0" in str(caught.value)
    assert "more than 299999 bytes" in str(caught.value)
    assert "'max-block-bytes'" in str(caught.value)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_little_memory(codec: str) -> None:
    bomb = _stored(codec, bytes(32 * _MIB))
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        with pytest.raises(CorruptFileError, match="more than 1048576 bytes"):
            _read(bomb, _MIB)
        # Most of it is the dictionary of xz.
        assert tracemalloc.get_traced_memory()[1] < 16 * _MIB
        assert pa.total_allocated_bytes() - before < _MIB
    finally:
        tracemalloc.stop()


def test_a_block_is_limited_without_being_told() -> None:
    assert parse_container(_stored("deflate", b""), "manifest 'm'").max_block_bytes == 512 * _MIB


def test_many_small_bombs_are_one() -> None:
    blocks = [(1, bytes(900_000))] * 20
    data = write_blocks(_SCHEMA, blocks, {}, "deflate", 9)
    assert len(data) < 40_000
    with pytest.raises(CorruptFileError, match="block 1 cannot be decompressed"):
        _read(data, _MIB)
    assert len(_read(data, 20 * _MIB)) == 20


def test_many_honest_blocks_are_as_large_as_they_like() -> None:
    blocks = [(1, b"".join(b"%d," % n for n in range(i, i + 10_000))) for i in range(200)]
    data = write_blocks(_SCHEMA, blocks, {}, "deflate", 9)
    assert _read(data, 100_000) == [plain for _, plain in blocks]


@pytest.mark.parametrize(("codec", "compress"), [("bzip2", bz2.compress), ("xz", lzma.compress)])
def test_a_block_may_be_several_streams(codec: str, compress: Callable[[bytes], bytes]) -> None:
    stored = compress(b"one ") + compress(b"two") + b"and what is no stream"
    assert _plain(codec, stored) == b"one two"
    with pytest.raises(CorruptFileError, match="more than 6 bytes"):
        _plain(codec, stored, 6)


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_that_is_cut_off_is_corrupt(codec: str) -> None:
    container = parse_container(_stored(codec, b"abc" * 1000), "manifest 'm'")
    ((_, stored),) = container.blocks
    with pytest.raises(CorruptFileError, match="block 0 cannot be decompressed"):
        _plain(codec, bytes(stored[:-6]))


def test_the_user_sets_the_limit_for_all_avro_files(tmp_path: Path) -> None:
    path = tmp_path / "f.avro"
    path.write_bytes(write_blocks(_SCHEMA, [(1, b"\xd0\x0f" + bytes(1000))], {}, "deflate", None))
    io = FileIO({"max-block-bytes": "1000"})
    with pytest.raises(CorruptFileError, match=r"f\.avro.*block 0 .* more than 1000 bytes"):
        _rows(io, str(path))
    assert _rows(FileIO({"max-block-bytes": "1002"}), str(path)) == 1
    listed = {
        **_SCHEMA,
        "fields": [
            {"name": "manifest_path", "type": "string"},
            {"name": "manifest_length", "type": "long"},
            {"name": "partition_spec_id", "type": "int"},
        ],
    }
    path.write_bytes(write_blocks(listed, [(1, b"\xd0\x0f" + bytes(1002))], {}, "deflate", None))
    with pytest.raises(CorruptFileError, match=r"manifest list .*f\.avro.* more than 1000 bytes"):
        read_manifest_list(io, str(path))
    assert len(read_manifest_list(FileIO(), str(path))) == 1


@pytest.mark.parametrize("name", ["max-block-bytes", "max-metadata-bytes"])
@pytest.mark.parametrize("value", ["0", "-1", "1 GiB", ""])
def test_a_limit_is_a_number_of_bytes(name: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"option '{name}' = .* expected a number"):
        FileIO({name: value})


def _stored(codec: str, plain: bytes) -> bytes:
    """A file with one block."""
    return write_blocks(_SCHEMA, [(1, plain)], {}, codec, None)


def _read(data: bytes, limit: int | None) -> list[bytes]:
    container = parse_container(data, "manifest 'm'", limit)
    return [bytes(plain) for _, plain in container.decompressed()]


def _plain(codec: str, stored: bytes, limit: int = _MIB) -> bytes:
    """The decompressed bytes of a block."""
    header = {"avro.codec": codec.encode()}
    container = AvroContainer("manifest 'm'", header, ((1, memoryview(stored)),), limit)
    ((_, plain),) = container.decompressed()
    return bytes(plain)


def _rows(io: FileIO, location: str) -> int:
    with open_data_file(io, location, FileFormat.AVRO, table_schema=_TEXTS) as reader:
        return sum(b.num_rows for b in reader.batches(ReadRequest(_TEXTS)))
