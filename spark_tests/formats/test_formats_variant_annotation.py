"""Variants in Parquet files: other readers know them by the annotation in the footer."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import read_rows, write_file
from built.rows import record_batch
from built.schemas import optional, required

from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_writer import open_data_writer
from icebergds.formats.parquet.variant_annotation import AnnotatedOutput
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.types import INT, LONG, STRING, VARIANT, StructType

SCHEMA = Schema((required(1, "id", LONG), optional(2, "v", VARIANT), optional(3, "s", STRING)))


def int8(number: int) -> dict[str, bytes]:
    """A variant of a small number."""
    return {"metadata": b"\x01\x00\x00", "value": bytes([0x0C, number])}


ROWS = [(i, None if i % 7 == 0 else int8(i), f"s{i}") for i in range(100)]


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"write.parquet.row-group-size-bytes": "1"},
        {"write.parquet.page-row-limit": "5"},
        {"write.parquet.page-version": "v2", "compression-codec": "uncompressed"},
        {"write.parquet.bloom-filter-enabled.column.s": "true"},
        {"write.parquet.bloom-filter-enabled.column.v": "true"},
    ],
    ids=str,
)
def test_others_read_variants_whatever_else_is_in_the_file(properties, tmp_path):
    path = tmp_path / "f.parquet"
    batches = [record_batch(SCHEMA, ROWS[:40]), record_batch(SCHEMA, ROWS[40:])]
    written = write_file(path, SCHEMA, batches, properties)
    assert written.file_size_in_bytes == path.stat().st_size
    read = duckdb.sql(f"SELECT id, typeof(v), v::INT, s FROM '{path}' ORDER BY id").fetchall()
    assert read == [(i, "VARIANT", v and v["value"][1], s) for i, v, s in ROWS]
    assert read_rows(str(path), SCHEMA) == ROWS
    assert duckdb.sql(f"SELECT id FROM '{path}' WHERE s = 's42'").fetchall() == [(42,)]


def test_a_file_without_rows_has_its_variants(tmp_path):
    path = tmp_path / "f.parquet"
    write_file(path, SCHEMA, [])
    assert duckdb.sql(f"SELECT v FROM '{path}'").types == ["VARIANT"]


def test_a_struct_with_the_fields_of_a_variant_stays_a_struct(tmp_path):
    parts = StructType((optional(2, "metadata", INT), optional(3, "value", INT)))
    schema = Schema((optional(1, "struct", parts), optional(4, "v", VARIANT)))
    path = tmp_path / "f.parquet"
    write_file(path, schema, [record_batch(schema, [((5, 6), int8(1))])])
    types = duckdb.sql(f"SELECT typeof(struct.metadata), typeof(v) FROM '{path}'").fetchall()
    assert types == [("INTEGER", "VARIANT")]
    assert read_rows(str(path), schema) == [({"metadata": 5, "value": 6}, int8(1))]


def test_an_aborted_file_of_variants_is_gone(tmp_path):
    settings = WriteProperties.of({}, SCHEMA, SortOrder())
    path = str(tmp_path / "f")
    writer = open_data_writer(FileIO(), path, FileFormat.PARQUET, SCHEMA, settings)
    writer.write(record_batch(SCHEMA, ROWS))
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_all_else_in_the_footer_stays_as_arrow_wrote_it(tmp_path):
    struct = pa.struct([pa.field(name, pa.binary(), False) for name in ("metadata", "value")])
    field = pa.field("v", struct, metadata={"PARQUET:field_id": "2"})
    table = pa.table([pa.array([int8(1), None], struct)], pa.schema([field]))
    path = tmp_path / "f.parquet"
    with pa.OSFile(str(path), "wb") as file:
        output = AnnotatedOutput(file, {2})
        with pq.ParquetWriter(output, table.schema, write_page_index=True) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"key": "value"})
            with output.end():
                writer.close()
    plain = pa.BufferOutputStream()
    with pq.ParquetWriter(plain, table.schema, write_page_index=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"key": "value"})
    expected = pq.read_metadata(pa.BufferReader(plain.getvalue()))
    found = pq.read_metadata(path)
    assert found.row_group(0).to_dict() == expected.row_group(0).to_dict()
    assert found.metadata == expected.metadata
    assert found.created_by == expected.created_by
    assert "v (Variant(1))" in str(found.schema)
