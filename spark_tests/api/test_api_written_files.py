"""How rows become data files without Spark: formats, sizes, order and the table's schema."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import (
    DAYS,
    ids_of,
    new_table,
    rows,
)
from built.contents import data_files, head, live_entries
from built.rows import arrow_table

from icebergds import load_catalog
from icebergds.catalog.address import TableAddress
from icebergds.errors import (
    InvalidDataError,
    InvalidOptionError,
)
from icebergds.spec.manifest import FileFormat
from icebergds.spec.types import DOUBLE, LONG, STRING
from icebergds.spec.updates.table_updates import SetProperties

# How files are written.


def test_partitions_of_long_values_are_written_and_read(tmp_path: Path) -> None:
    columns = pa.schema([("name", pa.string())])
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    table = catalog.create_table("t", columns, partition_spec="name")
    values = ["漢" * 300 + end for end in "ab"]
    table.append(pa.table({"name": values}))
    assert len({file.parent for file in data_files(table.location())}) == 2
    for value in values:
        assert table.scan(filter=f"name = '{value}'").to_arrow()["name"].to_pylist() == [value]


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("by", ["option", "property"])
def test_the_format_of_files_is_chosen(tmp_path: Path, file_format: str, by: str) -> None:
    chosen = {"write.format.default": file_format.upper()} if by == "property" else {}
    options = {"write-format": file_format} if by == "option" else {}
    table = new_table(tmp_path, properties=chosen)
    table.append(rows(1, 2), options=options)
    (entry,) = live_entries(table)
    assert entry.data_file.file_format is FileFormat(file_format)
    assert entry.data_file.file_path.endswith(f".{file_format}")
    assert table.scan().to_arrow().sort_by("id") == rows(1, 2)


def test_an_option_wins_over_the_tables_format(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write.format.default": "avro"})
    table.append(rows(1), options={"write-format": "parquet"})
    assert data_files(table.location())[0].suffix == ".parquet"


def test_a_format_that_files_do_not_have_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    operations = TableAddress(table.location()).operations()
    operations.commit(operations.refresh(), [], [SetProperties({"write.format.default": "csv"})])
    with pytest.raises(InvalidOptionError, match=r"write\.format\.default is 'csv', expected"):
        table.refresh().append(rows(1))


@pytest.mark.parametrize(("codec", "stored"), [("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")])
def test_compression_is_chosen(tmp_path: Path, codec: str, stored: str) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options={"compression-codec": codec})
    (file,) = data_files(table.location())
    assert pq.read_metadata(file).row_group(0).column(0).compression == stored
    with pytest.raises(InvalidOptionError, match="compression-codec"):
        table.append(rows(1), options={"compression-codec": "zip"})
    with pytest.raises(InvalidOptionError, match="levels 1 to 9"):
        table.append(rows(1), options={"compression-codec": "gzip", "compression-level": "10"})


def test_new_tables_are_compressed_with_zstd(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    (file,) = data_files(table.location())
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("by", ["option", "property"])
def test_files_end_when_they_are_large_enough(tmp_path: Path, by: str) -> None:
    chosen = {"write.target-file-size-bytes": "20000"} if by == "property" else {}
    options = {"target-file-size-bytes": "20000"} if by == "option" else {}
    table = new_table(tmp_path, properties=chosen)
    texts = [random.Random(i).randbytes(500).hex() for i in range(200)]
    batches = [arrow_table(DAYS, [(i, 0, text)]).to_batches()[0] for i, text in enumerate(texts)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    table.append(reader, options=options)
    sizes = [file.stat().st_size for file in data_files(table.location())]
    assert len(sizes) > 3
    assert max(sizes) < 40_000
    assert ids_of(table) == list(range(200))


def test_files_without_fan_out_are_written_one_after_the_other(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    mixed = arrow_table(DAYS, [(i, i % 3, None) for i in range(9)])
    table.append(mixed)
    assert len(data_files(table.location())) == 3
    assert ids_of(table, filter="day = 1") == [1, 4, 7]
    table.append(mixed.sort_by("day"), options={"fanout-enabled": "false"})
    assert ids_of(table, filter="day = 1") == [1, 1, 4, 4, 7, 7]


def test_rows_are_sorted_in_the_tables_order(tmp_path: Path) -> None:
    table = new_table(tmp_path, sort_by="id desc")
    table.append(rows(2, 3, 1))
    (entry,) = live_entries(table)
    assert pq.read_table(entry.data_file.file_path)["id"].to_pylist() == [3, 2, 1]
    assert entry.data_file.sort_order_id == table.sort_order().order_id == 1


def test_rows_that_are_left_unsorted_claim_no_order(tmp_path: Path) -> None:
    table = new_table(tmp_path, sort_by="id desc")
    table.append(rows(2, 3, 1), options={"use-table-distribution-and-ordering": "false"})
    (entry,) = live_entries(table)
    assert pq.read_table(entry.data_file.file_path)["id"].to_pylist() == [2, 3, 1]
    assert not entry.data_file.sort_order_id


# Schemas.


def test_merging_adds_columns_and_widens_types(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    wider = pa.table({"id": pa.array([2], pa.int64()), "Extra": [1.5], "DAY": pa.array([7])})
    with pytest.raises(InvalidDataError, match=r"'Extra'.*merge-schema"):
        table.append(wider)
    table.append(wider, options={"merge-schema": "true"})
    assert [(f.field_id, f.name, f.field_type) for f in table.schema().fields] == [
        (1, "id", LONG),
        (2, "day", LONG),
        (3, "name", STRING),
        (4, "Extra", DOUBLE),
    ]
    assert head(table).schema_id == table.metadata.current_schema_id == 1
    assert table.scan("id = 1").to_arrow()["Extra"].to_pylist() == [None]
    assert table.scan("extra = 1.5").to_arrow()["day"].to_pylist() == [7]


def test_merging_what_is_there_changes_no_schema(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options={"mergeSchema": "true"})
    assert len(table.metadata.schemas) == 1
    assert len(table.metadata.metadata_log) == 1


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    schema = replace(DAYS, fields=(replace(DAYS.fields[0], required=True), *DAYS.fields[1:]))
    table = new_table(tmp_path, schema)
    before = table.metadata_location
    for bad in (
        pa.table({"id": ["x"]}),
        pa.table({"id": [1], "nmae": ["x"]}),
        pa.table({"day": [1]}),
        pa.table({"id": [None], "day": [1]}, schema=pa.schema([("id", "int64"), ("day", "int32")])),
    ):
        with pytest.raises(InvalidDataError):
            table.append(bad)
    assert table.refresh().metadata_location == before
    assert data_files(table.location()) == []
