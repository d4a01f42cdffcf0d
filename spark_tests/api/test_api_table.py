"""`Table` and its scans, without Spark."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.tables import TableBuilder

from icebergds import load_table
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    NoSuchSnapshotError,
    NoSuchTableError,
)
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType
from icebergds.spec.types import INT, LONG, STRING, TIMESTAMPTZ, UUID, NestedField, StructType

_POINT = StructType((NestedField(11, "x", INT), NestedField(12, "y", INT)))
_SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "Name", STRING),
        NestedField(3, "point", _POINT),
        NestedField(4, "at", TIMESTAMPTZ),
        NestedField(5, "key", UUID),
    )
)
_HOUR = 3_600_000_000


@pytest.fixture
def built(tmp_path: Path) -> TableBuilder:
    """Rows 0 to 9 in two commits of five, in files of row groups of two; a tag after the first."""
    table = TableBuilder(tmp_path / "db" / "t", _SCHEMA)
    for first in (0, 5):
        rows = [(i, f"n{i}", (i, -i), i * _HOUR, bytes([i] * 16)) for i in range(first, first + 5)]
        table.commit(table.data_file(rows, row_group_size=2))
    table.tag("first", 1001)
    table.branch("work", 1001)
    return table


def test_a_table_tells_what_its_metadata_holds(built: TableBuilder) -> None:
    table = load_table(str(built.location))
    assert table.name == table.location() == str(built.location)
    assert table.metadata_location == built.metadata_location
    assert table.schema() == _SCHEMA
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == [1001, 1002]
    assert table.current_snapshot() == table.snapshots()[1]
    kinds = {name: ref.ref_type for name, ref in table.refs().items()}
    assert kinds == {"main": RefType.BRANCH, "first": RefType.TAG, "work": RefType.BRANCH}


def test_a_table_stays_as_it_was_when_it_was_loaded(built: TableBuilder) -> None:
    table = load_table(str(built.location))
    built.commit(built.data_file([(99, None, None, None, None)]))
    assert table.scan().to_arrow().num_rows == 10
    assert load_table(str(built.location)).scan().to_arrow().num_rows == 11


def test_rows_come_in_storage_types(built: TableBuilder) -> None:
    found = load_table(str(built.location)).scan().to_arrow()
    assert found.schema.types == [
        pa.int64(),
        pa.string(),
        pa.struct([("x", pa.int32()), ("y", pa.int32())]),
        pa.timestamp("us", "UTC"),
        pa.binary(16),
    ]
    assert not found.schema.field("id").nullable


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    table = load_table(str(TableBuilder(tmp_path / "t", _SCHEMA).location))
    assert table.current_snapshot() is None
    assert table.scan(columns="key, id").to_arrow().schema.names == ["key", "id"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"snapshot_id": 1001}, range(5)),
        ({"tag": "first"}, range(5)),
        ({"branch": "work"}, range(5)),
        ({"branch": "main"}, range(10)),
        ({"filter": "id >= 3 and name < 'n6'"}, range(3, 6)),
        ({"filter": "point.X in (2, 7)"}, (2, 7)),
        ({"filter": "at = timestamp'1970-01-01 03:00:00Z'"}, (3,)),
        ({"options": {"versionAsOf": "first"}}, range(5)),
        ({"options": {"as-of-timestamp": "1700000001000"}}, range(5)),
        ({"options": {"split-size": "100", "file-open-cost": "0", "batch-size": "1"}}, range(10)),
        ({"options": {"filter": "id < 2"}}, range(2)),
    ],
    ids=str,
)
def test_what_a_scan_selects(built: TableBuilder, arguments: Any, expected: Any) -> None:
    found = load_table(str(built.location)).scan(**arguments).to_arrow()
    assert sorted(found["id"].to_pylist()) == list(expected)


@pytest.mark.parametrize(
    "columns", ["point.y, id, _pos", ["point.y", "id", "_pos"], ("POINT.Y", "ID", "_POS")], ids=str
)
def test_which_columns_a_scan_returns(built: TableBuilder, columns: Any) -> None:
    found = load_table(str(built.location)).scan("id = 6", columns).to_arrow()
    assert found.to_pylist() == [{"point": {"y": -6}, "id": 6, "_pos": 1}]


def test_zones_of_timestamps_without_an_offset_are_an_option(built: TableBuilder) -> None:
    table, text = load_table(str(built.location)), "at = '1970-01-01 03:00:00'"
    scan = table.scan(text, "id", options={"time-zone": "+02:00"})
    assert scan.to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(InvalidFilterError, match="zone"):
        table.scan(text).to_arrow()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"columns": "nmae"}, InvalidOptionError, r"did you mean Name\?"),
        ({"columns": ""}, InvalidOptionError, "no column is named"),
        ({"columns": []}, InvalidOptionError, "no column is named"),
        ({"filter": "nmae = 'x'"}, InvalidFilterError, "Name"),
        ({"filter": "id +"}, InvalidFilterError, "id +"),
        ({"filter": ""}, InvalidFilterError, "''"),
        ({"snapshot_id": 5}, NoSuchSnapshotError, "snapshot 5 does not exist"),
        ({"tag": "work"}, NoSuchSnapshotError, "work is a branch"),
        ({"branch": "wrok"}, NoSuchSnapshotError, r"did you mean work\?"),
        ({"snapshot_id": 1001, "tag": "first"}, InvalidOptionError, "contradict"),
        ({"branch": "work", "tag": "first"}, InvalidOptionError, "contradict"),
        ({"tag": "first", "options": {"versionAsOf": "1001"}}, InvalidOptionError, "contradict"),
        ({"filter": "id = 1", "options": {"Filter": "id = 2"}}, InvalidOptionError, "give one"),
        ({"options": {"splitsize": "1"}}, InvalidOptionError, "'split-size'"),
        ({"options": {"split-size": "0"}}, InvalidOptionError, "above 0"),
    ],
    ids=str,
)
def test_what_a_scan_refuses(
    built: TableBuilder, arguments: Any, error: type[Exception], message: str
) -> None:
    scan = load_table(str(built.location)).scan
    with pytest.raises(error, match=message):
        scan(**arguments).to_arrow()


@pytest.mark.parametrize(
    "arguments",
    [
        {"columns": [1]},
        {"columns": 5},
        {"columns": b"id"},
        {"snapshot_id": "1001"},
        {"snapshot_id": 1001.0},
        {"branch": 5},
        {"tag": b"first"},
        {"options": "split-size"},
        {"options": {1: "x"}},
        {"options": {"split-size": None}},
    ],
    ids=str,
)
def test_arguments_of_the_wrong_type_are_named(built: TableBuilder, arguments: Any) -> None:
    (name,) = arguments
    with pytest.raises(InvalidOptionError, match=rf"^{name}.* is of type \w+, expected "):
        load_table(str(built.location)).scan(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": None},
        {"path": b"/t"},
        {"path": "db.t", "catalog": 5},
        {"path": "/t", "properties": ["warehouse"]},
        {"path": "/t", "location_map": {"s3://b": None}},
    ],
    ids=str,
)
def test_arguments_of_a_load_of_the_wrong_type_are_named(arguments: Any) -> None:
    *_, name = arguments
    with pytest.raises(InvalidOptionError, match=rf"^{name}.* is of type \w+, expected "):
        load_table(**arguments)


@pytest.mark.parametrize(
    "properties",
    [
        "postgresql://me:hunter2@host/db",
        {"password": b"hunter2"},
        {"password": ["hunter2"]},
        {"password": "hunter2\udc80"},
    ],
    ids=["text", "bytes", "list", "unicode"],
)
def test_errors_in_properties_do_not_show_their_values(properties: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^properties") as raised:
        load_table("db.t", catalog="lake", properties=properties)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "uri", ["postgresql://me:hunter2@host/db", "postgresql://host/db?password=hunter2"]
)
def test_the_uri_of_a_database_is_not_a_location(uri: str) -> None:
    with pytest.raises(InvalidOptionError, match="the scheme 'postgresql' is not one") as raised:
        load_table(uri)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_options_may_be_numbers_and_booleans(built: TableBuilder) -> None:
    options: Any = {"split-size": 100, "pushdown": True}
    scan = load_table(str(built.location)).scan("id < 2", options=options)
    assert scan.options == {"split-size": "100", "pushdown": "true"}
    assert scan.to_arrow().num_rows == 2


def test_a_table_is_loaded_by_catalog_and_identifier(built: TableBuilder) -> None:
    warehouse = str(built.location.parents[1])
    table = load_table("db.t", catalog="lake", properties={"warehouse": warehouse})
    assert table.name == "lake.db.t"
    assert table.scan().to_arrow().num_rows == 10
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.s"):
        load_table("db.s", catalog="lake", properties={"warehouse": warehouse})


def test_properties_of_a_catalog_without_one_are_refused(built: TableBuilder) -> None:
    with pytest.raises(InvalidOptionError, match="no catalog"):
        load_table(str(built.location), properties={"warehouse": "/w"})


def test_files_without_ids_are_read_through_the_name_mapping(tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["old"]}, {"field-id": 2, "names": ["Name"]}]'
    schema = Schema(_SCHEMA.fields[:2])
    table = TableBuilder(
        tmp_path / "t", schema, properties={"schema.name-mapping.default": mapping}
    )
    data_file = table.data_file([(1, "a"), (2, "b")])
    plain = pa.table({"old": pa.array([1, 2], pa.int64()), "Name": ["a", "b"]})
    pq.write_table(plain, data_file.file_path)
    table.commit(data_file)
    found = load_table(str(table.location)).scan("id = 2").to_arrow()
    assert found.to_pylist() == [{"id": 2, "Name": "b"}]


def test_a_scan_is_described_by_the_names_of_pyiceberg_too(built: TableBuilder) -> None:
    table = load_table(str(built.location))
    found = table.scan(row_filter="id > 7", selected_fields=("id",)).to_arrow()
    assert found.to_pydict() == {"id": [8, 9]}
    assert table.scan(selected_fields=("*",)).to_arrow().num_columns == 5
    with pytest.raises(InvalidOptionError, match="filter and row_filter mean the same"):
        table.scan("id > 7", row_filter="id > 7")


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 10, 11])
def test_a_scan_with_a_limit_returns_so_many_of_its_rows(built: TableBuilder, limit: int) -> None:
    scan = load_table(str(built.location)).scan("id > 0", limit=limit)
    ids = scan.to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids)) == scan.count() == min(limit, 9)
    assert set(ids) <= set(range(1, 10))


def test_a_limit_below_0_is_refused(built: TableBuilder) -> None:
    with pytest.raises(InvalidOptionError, match="limit = -1: expected an integer of at least 0"):
        load_table(str(built.location)).scan(limit=-1)


def test_rows_are_read_batch_by_batch(built: TableBuilder) -> None:
    scan = load_table(str(built.location)).scan(columns="id")
    with scan.to_arrow_batch_reader() as reader:
        batches = list(reader)
    assert len(batches) > 1
    assert sorted(i for batch in batches for i in batch["id"].to_pylist()) == list(range(10))


def test_rows_are_read_as_pandas(built: TableBuilder) -> None:
    found = load_table(str(built.location)).scan(columns="id").to_pandas()
    assert sorted(found["id"]) == list(range(10))


def test_a_table_tells_its_history(built: TableBuilder) -> None:
    table = load_table(str(built.location))
    assert [entry.snapshot_id for entry in table.history()] == [1001, 1002]
    assert table.snapshot_by_id(1001) == table.snapshot_by_name("first") == table.snapshots()[0]
    assert table.snapshot_by_id(5) is None is table.snapshot_by_name("nope")
    assert table.schemas() == {0: table.schema()}
    assert table.specs() == {0: table.spec()}
    assert table.sort_orders() == {0: table.sort_order()}
