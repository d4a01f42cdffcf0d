"""How rows are laid out in files: row groups, stripes, encodings, and how large files become."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import read_rows, write_file
from built.rows import record_batch
from built.schemas import optional, required

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_writer import open_data_writer
from icebergds.formats.orc.tail import stripes_of
from icebergds.formats.parquet.writer import RowBuffer, wants_dictionary
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.types import BOOLEAN, LONG, STRING

LONGS = Schema((required(1, "id", LONG), optional(2, "name", STRING)))
ROW_GROUP_SIZE = "write.parquet.row-group-size-bytes"


def longs(start: int, count: int) -> pa.RecordBatch:
    """Rows of about 30 bytes with distinct ids and two names."""
    ids = pa.array(np.arange(start, start + count, dtype=np.int64))
    names = pa.array(["name-of-evens" if i % 2 else "name-of-odds" for i in range(count)])
    return pa.RecordBatch.from_arrays([ids, names], schema=schema_to_arrow(LONGS))


def batches(count: int, rows: int) -> list[pa.RecordBatch]:
    return [longs(at * rows, rows) for at in range(count)]


def test_small_batches_are_gathered_to_row_groups_of_the_size_asked_for(tmp_path):
    parts = batches(1_000, 100)
    total = sum(part.nbytes for part in parts)
    written = write_file(tmp_path / "f", LONGS, parts, {ROW_GROUP_SIZE: str(total // 4 + 1)})
    footer = pq.read_metadata(tmp_path / "f")
    assert footer.num_row_groups == 4
    assert [row[0] for row in read_rows(str(tmp_path / "f"), LONGS)] == list(range(100_000))
    assert len(written.split_offsets) == 4


def test_a_large_batch_is_cut_to_row_groups_of_the_size_asked_for(tmp_path):
    batch = longs(0, 100_000)
    write_file(tmp_path / "f", LONGS, [batch], {ROW_GROUP_SIZE: str(batch.nbytes // 4)})
    footer = pq.read_metadata(tmp_path / "f")
    assert [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] == [25_000] * 4


def test_split_offsets_of_parquet_are_where_row_groups_begin(tmp_path):
    size = {ROW_GROUP_SIZE: str(longs(0, 10).nbytes)}
    written = write_file(tmp_path / "f", LONGS, batches(3, 10), size)
    first, *others = written.split_offsets
    assert first == 4
    for at, offset in enumerate(written.split_offsets):
        (row, *_) = read_rows(str(tmp_path / "f"), LONGS, split=(offset, 1))
        assert row[0] == at * 10
    assert sorted(others) == others


def test_split_offsets_of_orc_are_where_stripes_begin(tmp_path):
    rng = np.random.default_rng(0)
    schema = Schema((required(1, "id", LONG),))
    ids = pa.array(rng.integers(0, 2**62, 400_000))
    batch = pa.RecordBatch.from_arrays([ids], schema=schema_to_arrow(schema))
    size = {"write.orc.stripe-size-bytes": str(512 * 1024)}
    written = write_file(tmp_path / "f", schema, [batch], size, file_format=FileFormat.ORC)
    tail = pa.orc.ORCFile(tmp_path / "f").reader.serialized_file_tail()
    assert len(written.split_offsets) > 1
    assert list(written.split_offsets) == [stripe.offset for stripe in stripes_of(tail)]


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_the_size_before_the_end_is_about_that_of_the_file(file_format, tmp_path):
    settings = WriteProperties.of({}, LONGS, SortOrder())
    writer = open_data_writer(FileIO(), str(tmp_path / "f"), file_format, LONGS, settings)
    rng = np.random.default_rng(0)
    for part in batches(100, 5_000):
        ids = pa.array(rng.integers(0, 2**40, part.num_rows))
        writer.write(part.set_column(0, part.schema.field(0), ids))
        before = writer.size
    size = writer.close().file_size_in_bytes
    assert before > size / 1.5
    # Nothing is known of what waits for ORC's first stripe.
    assert file_format is FileFormat.ORC or before < size * 1.5


@pytest.mark.parametrize(
    ("codec", "stored"),
    [
        ("zstd", "ZSTD"),
        ("snappy", "SNAPPY"),
        ("gzip", "GZIP"),
        ("lz4", "LZ4"),
        ("brotli", "BROTLI"),
        ("uncompressed", "UNCOMPRESSED"),
    ],
)
def test_parquet_has_the_codec_asked_for(codec, stored, tmp_path):
    write_file(tmp_path / "f", LONGS, [longs(0, 10)], {"write.parquet.compression-codec": codec})
    assert pq.read_metadata(tmp_path / "f").row_group(0).column(0).compression == stored


def test_columns_of_distinct_values_have_no_dictionary(tmp_path):
    write_file(tmp_path / "f", LONGS, [longs(0, 1_000)])
    group = pq.read_metadata(tmp_path / "f").row_group(0)
    assert group.column(0).dictionary_page_offset is None
    assert group.column(1).dictionary_page_offset is not None


def test_dictionaries_are_where_properties_want_them(tmp_path):
    prefix = "write.parquet.dict-encoding-enabled.column."
    asked = {f"{prefix}id": "true", f"{prefix}name": "false"}
    write_file(tmp_path / "f", LONGS, [longs(0, 1_000)], asked)
    group = pq.read_metadata(tmp_path / "f").row_group(0)
    assert group.column(0).dictionary_page_offset is not None
    assert group.column(1).dictionary_page_offset is None


def test_a_dictionary_is_wanted_where_distinct_values_stand_together_or_repeat_late():
    rows = 200_000
    assert wants_dictionary(pa.chunked_array([np.arange(rows) // 50]))
    assert wants_dictionary(pa.chunked_array([np.arange(rows) % 50_000]))
    assert not wants_dictionary(pa.chunked_array([np.arange(rows * 10)]))


@pytest.mark.parametrize("rows", [1_000, 5_000, 20_000, 60_000])
def test_short_columns_of_distinct_values_want_no_dictionary(rows):
    assert not wants_dictionary(pa.chunked_array([np.arange(rows)]))


def test_a_dictionary_is_wanted_up_to_half_as_many_distinct_values_as_rows():
    draw = np.random.default_rng(1)
    for rows in (1_000, 5_000, 60_000):
        assert wants_dictionary(pa.chunked_array([draw.integers(0, rows // 2, rows)]))
        assert not wants_dictionary(pa.chunked_array([draw.integers(0, rows, rows)]))


def test_every_column_has_a_page_index(tmp_path):
    write_file(tmp_path / "f", LONGS, [longs(0, 10)])
    group = pq.read_metadata(tmp_path / "f").row_group(0)
    assert all(group.column(at).has_column_index for at in range(2))
    assert all(group.column(at).has_offset_index for at in range(2))


def test_bloom_filters_are_written_where_asked_for(tmp_path):
    schema = Schema(
        (required(1, "id", LONG), optional(2, "name", STRING), optional(3, "b", BOOLEAN))
    )
    rows = [(at, str(at), True) for at in range(1_000)]
    prefix = "write.parquet.bloom-filter-enabled.column."
    sizes = {}
    for name, asked in (("without", {}), ("with", {f"{prefix}id": "true", f"{prefix}b": "true"})):
        path = tmp_path / name
        write_file(path, schema, [record_batch(schema, rows)], asked)
        sizes[name] = path.stat().st_size
        assert len(read_rows(str(path), schema)) == 1_000
    # 1,000 values at a share of 1 % false positives want 1.2 KB, rounded to a power of two.
    assert 1_000 < sizes["with"] - sizes["without"] < 4_200


def test_a_buffer_of_slices_does_not_keep_what_they_were_cut_from():
    buffer = RowBuffer()
    before = pa.total_allocated_bytes()
    for at in range(640):
        buffer.append(longs(at, 20_000).slice(5, 2))
    held = pa.total_allocated_bytes() - before
    assert buffer.num_rows == 1_280
    assert held < 1_000_000
    assert sum(batch.num_rows for batch in buffer.take()) == 1_280
    assert buffer.num_rows == buffer.nbytes == 0
