"""Damages the structure of files: cuts them, and drops or doubles blocks of Avro files."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import fastavro

from icebergds.formats.avro.container import SYNC_SIZE, parse_header, read_varint
from icebergds.formats.parquet.thrift import Struct, decode_struct, encode_struct


def split_avro(data: bytes) -> tuple[bytes, list[bytes]]:
    """The header of an Avro file, and its blocks, each with its counts and sync marker."""
    _, _, at = parse_header(data, "the file")
    header, blocks = data[:at], []
    while at < len(data):
        _, begin = read_varint(data, at)
        size, begin = read_varint(data, begin)
        end = begin + size + SYNC_SIZE
        blocks.append(data[at:end])
        at = end
    return header, blocks


def into_small_blocks(path: Path | str) -> None:
    """Rewrites an Avro file with one record a block."""
    file = Path(path)
    with file.open("rb") as stream:
        reader = fastavro.reader(stream)
        records, schema = list(reader), reader.writer_schema
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    out = BytesIO()
    fastavro.writer(out, schema, records, sync_interval=1, metadata=metadata)
    file.write_bytes(out.getvalue())


def drop_block(path: Path | str, number: int = -1) -> None:
    """Removes a block of an Avro file."""
    header, blocks = split_avro(Path(path).read_bytes())
    del blocks[number]
    Path(path).write_bytes(header + b"".join(blocks))


def double_block(path: Path | str, number: int = -1) -> None:
    """Repeats a block of an Avro file."""
    header, blocks = split_avro(Path(path).read_bytes())
    Path(path).write_bytes(header + b"".join([*blocks, blocks[number]]))


def swap_files(one: Path | str, other: Path | str) -> None:
    """Gives each of two files the contents of the other."""
    first, second = Path(one).read_bytes(), Path(other).read_bytes()
    Path(one).write_bytes(second)
    Path(other).write_bytes(first)


def change_footer(path: Path | str, change: Callable[[Struct], None]) -> None:
    """Changes the footer of a Parquet file, a Thrift struct."""
    data = Path(path).read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = decode_struct(data, start)
    change(footer)
    encoded = encode_struct(footer)
    length = len(encoded).to_bytes(4, "little")
    Path(path).write_bytes(data[:start] + encoded + length + data[-4:])
