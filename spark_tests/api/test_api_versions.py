"""Tables of format versions 1, 2 and 3, as other readers find them after real writes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import DAYS, ids_of, new_table, rows
from built.contents import head, live_entries, metadata_files
from built.rows import arrow_table
from oracles.duckdb_reader import DuckDBReader
from pyiceberg.table import StaticTable

from icebergds import Table, load_catalog
from icebergds.spec.types import INT, LONG, STRING
from icebergds.spec.updates.table_updates import UpgradeFormatVersion


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


def _pyiceberg(table: Table) -> pa.Table:
    return StaticTable.from_metadata(table.metadata_location).scan().to_arrow()


def _written(tmp_path: Path, version: int, partition_by: str = "day") -> Table:
    """Two appends, one partition overwritten, one deleted, one added."""
    table = new_table(tmp_path, partition_by=partition_by, version=version)
    table.append(arrow_table(DAYS, [(i, i % 3, f"n{i}") for i in range(9)]))
    table.append(arrow_table(DAYS, [(10, None, None), (11, 1, "")]))
    table.dynamic_partition_overwrite(rows(20, 21, day=2))
    return table


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("partition_by", ["day", "truncate(2, day), bucket(3, name)", ""])
def test_other_readers_find_the_rows(
    tmp_path: Path, duckdb: DuckDBReader, version: int, partition_by: str
) -> None:
    table = _written(tmp_path, version, partition_by)
    expected = sorted(map(str, table.scan().to_arrow().to_pylist()))
    assert {"id", "day", "name"} == set(table.scan().to_arrow().schema.names)
    assert sorted(map(str, _pyiceberg(table).to_pylist())) == expected
    found = duckdb.read(table.metadata_location)
    dicts = [dict(zip(("id", "day", "name"), row, strict=True)) for row in found]
    assert sorted(map(str, dicts)) == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_snapshot_without_files_is_read_by_others(
    tmp_path: Path, duckdb: DuckDBReader, version: int
) -> None:
    table = new_table(tmp_path, version=version)
    table.append(rows())
    assert _pyiceberg(table).num_rows == 0
    assert duckdb.read(table.metadata_location) == []
    table.append(rows(1))
    table.append(rows())
    assert _pyiceberg(table)["id"].to_pylist() == [1]
    assert [row[0] for row in duckdb.read(table.metadata_location)] == [1]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_others_plan_by_the_metrics_that_were_written(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version=version)
    for first in range(0, 40, 10):
        table.append(rows(*range(first, first + 10)))
    static = StaticTable.from_metadata(table.metadata_location)
    scan = static.scan(row_filter="id = 25")
    assert len(list(scan.plan_files())) == 1
    assert scan.to_arrow()["id"].to_pylist() == [25]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_number_their_commits_or_not(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version=version)
    for i in range(3):
        table.append(rows(i))
    numbers = [snapshot.sequence_number for snapshot in table.snapshots()]
    assert numbers == ([0, 0, 0] if version == 1 else [1, 2, 3])
    assert table.metadata.last_sequence_number == numbers[-1]
    assert table.metadata.format_version == version
    document = json.loads(Path(table.metadata_location).read_text())
    assert document["format-version"] == version
    assert ("next-row-id" in document) == (version == 3)


# Row lineage.


def test_rows_get_ids_in_the_order_of_commits(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=3)
    for first in (0, 3):
        table.append(rows(*range(first, first + 3)))
    assert table.metadata.next_row_id == 6
    assert [(s.first_row_id, s.added_rows) for s in table.snapshots()] == [(0, 3), (3, 3)]
    assert sorted(e.data_file.first_row_id or 0 for e in live_entries(table)) == [0, 3]
    found = table.scan(columns="id, _row_id, _last_updated_sequence_number").to_arrow()
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [
        (0, 0, 1),
        (1, 1, 1),
        (2, 2, 1),
        (3, 3, 2),
        (4, 4, 2),
        (5, 5, 2),
    ]


def test_ids_of_rows_are_never_used_again(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=3, partition_by="day")
    table.append(rows(1, 2, day=1))
    table.append(rows(3, day=2))
    table.overwrite(rows(4, 5, day=1), "day = 1")
    row_ids = {
        row["id"]: row["_row_id"]
        for row in table.scan(columns="id, _row_id").to_arrow().to_pylist()
    }
    assert row_ids[3] == 2
    assert len({*row_ids.values()}) == 3
    assert min(row_ids[4], row_ids[5]) >= 3
    assert table.metadata.next_row_id > max(row_ids.values())


def test_rows_of_branches_and_staged_snapshots_have_ids_of_their_own(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=3)
    table.append(rows(1))
    table.append(rows(2), branch="b", options={"create-branch": "true"})
    table.append(rows(3), options={"wap.id": "x"})
    table.append(rows(4))
    given = [(s.first_row_id, s.added_rows) for s in table.snapshots()]
    ends = [(first or 0) + (added or 0) for first, added in given]
    assert all(first >= end for (first, _), end in zip(given[1:], ends, strict=False))
    assert table.metadata.next_row_id == ends[-1]


def test_an_upgraded_table_numbers_its_old_rows_too(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=2)
    table.append(rows(1, 2))
    operations = table._address.operations()
    operations.commit(operations.refresh(), [], [UpgradeFormatVersion(3)])
    table.refresh().append(rows(3))
    found = table.scan(columns="_row_id").to_arrow()["_row_id"].to_pylist()
    assert len({*found}) == 3
    assert None not in found
    assert table.metadata.next_row_id == 3


# Housekeeping of metadata files.


def test_the_log_has_as_many_versions_as_the_table_says(tmp_path: Path) -> None:
    properties = {"write.metadata.previous-versions-max": "2"}
    table = new_table(tmp_path, properties=properties)
    for i in range(5):
        table.append(rows(i))
    assert [Path(e.metadata_file).name for e in table.metadata.metadata_log] == [
        "v4.metadata.json",
        "v5.metadata.json",
    ]
    assert len(metadata_files(table.location())) == 6


def test_versions_that_left_the_log_are_deleted_where_the_table_says(tmp_path: Path) -> None:
    properties = {
        "write.metadata.previous-versions-max": "2",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    sql = load_catalog("lake", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    sql.create_namespace("db")
    table = sql.create_table("db.t", DAYS, properties=properties)
    for i in range(5):
        table.append(rows(i))
    assert [name[:5] for name in metadata_files(table.location())] == ["00003", "00004", "00005"]
    assert ids_of(table) == list(range(5))


def test_a_location_keeps_twenty_versions_more(tmp_path: Path) -> None:
    properties = {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    table = new_table(tmp_path, properties=properties)
    for i in range(25):
        table.append(rows(i))
    assert len(metadata_files(table.location())) == 1 + 1 + 20
    assert ids_of(table) == list(range(25))


def test_metadata_is_compressed_where_the_table_says(tmp_path: Path) -> None:
    properties = {"write.metadata.compression-codec": "gzip"}
    table = new_table(tmp_path, properties=properties)
    table.append(rows(1))
    table.append(rows(2))
    assert Path(table.metadata_location).name == "v3.gz.metadata.json"
    document = json.loads(gzip.decompress(Path(table.metadata_location).read_bytes()))
    assert document["table-uuid"] == table.metadata.table_uuid
    assert sorted(_pyiceberg(table)["id"].to_pylist()) == [1, 2]


def test_manifests_are_merged_where_the_table_says(tmp_path: Path) -> None:
    properties = {"commit.manifest.min-count-to-merge": "3"}
    table = new_table(tmp_path, properties=properties)
    for i in range(7):
        table.append(rows(i))
    assert int(head(table).summary["manifests-kept"]) < 3
    assert ids_of(table) == list(range(7))
    assert sorted(_pyiceberg(table)["id"].to_pylist()) == list(range(7))


def test_files_have_the_sort_order_they_are_in(tmp_path: Path) -> None:
    table = new_table(tmp_path, sort_by="bucket(4, id), name desc")
    table.append(rows(5, 3, 1, 4))
    assert {e.data_file.sort_order_id for e in live_entries(table)} == {1}
    found: Any = StaticTable.from_metadata(table.metadata_location).sort_order()
    assert found.order_id == 1
    assert [field.source_id for field in found.fields] == [1, 3]


def test_evolved_tables_are_read_by_others(tmp_path: Path, duckdb: DuckDBReader) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    more = pa.table({"id": [2], "day": pa.array([2**40]), "extra": [["a"]]})
    table.append(more, options={"merge-schema": "true"})
    assert [field.field_type for field in table.schema().fields[:3]] == [LONG, LONG, STRING]
    assert table.schema().fields[1].field_type != INT
    expected = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert sorted(_pyiceberg(table).to_pylist(), key=lambda row: row["id"]) == expected
    found = duckdb.read(table.metadata_location) or []
    assert sorted(found) == [tuple(row.values()) for row in expected]
