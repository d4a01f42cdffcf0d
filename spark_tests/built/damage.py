"""Damages files: drops or doubles blocks of Avro files, and changes what they say."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

from built.contents import live_entries
from icebergds.api.table import Table
from icebergds.commit.file_selection import file_key
from icebergds.commit.options import CommitOptions
from icebergds.commit.repair_files import ColumnCorrection, FileCorrection, RepairFiles
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.formats.avro.container import SYNC_SIZE, parse_header, read_varint
from icebergds.formats.parquet.thrift import Struct, decode_struct, encode_struct
from icebergds.spec.manifest import FileContent


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
    change_records(path, lambda _: None, sync_interval=1)


def change_records(
    path: Path | str, change: Callable[[list[Any]], object], sync_interval: int = 16_000
) -> int:
    """Changes the records of an Avro file; returns its length."""
    file = Path(path)
    with file.open("rb") as stream:
        reader = fastavro.reader(stream)
        records, schema = list(reader), reader.writer_schema
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    change(records)
    out = BytesIO()
    fastavro.writer(out, schema, records, sync_interval=sync_interval, metadata=metadata)
    return file.write_bytes(out.getvalue())


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


def spoil_bounds(table: Table, field_id: int, lower: bytes, upper: bytes) -> None:
    """Commits other bounds of a column, of all data files of main."""
    wrong = {field_id: ColumnCorrection(lower_bound=lower, upper_bound=upper)}
    files = [e.data_file for e in live_entries(table) if e.data_file.content is FileContent.DATA]
    corrections = {file_key(file): FileCorrection(columns=wrong) for file in files}
    action = RepairFiles(corrections, frozenset())
    commit_snapshot(table._address.operations(), action, CommitOptions())


def change_footer(path: Path | str, change: Callable[[Struct], None]) -> None:
    """Changes the footer of a Parquet file, a Thrift struct."""
    data = Path(path).read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = decode_struct(data, start)
    change(footer)
    encoded = encode_struct(footer)
    length = len(encoded).to_bytes(4, "little")
    Path(path).write_bytes(data[:start] + encoded + length + data[-4:])
