"""Metadata tables as Arrow tables: filters, columns, and what need not be read for them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import new_table
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.evolving_table import EvolvingTable

from icebergds import Schema, Table
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.spec.types import INT, LONG, TIMESTAMP, NestedField

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "part", INT)))
Row = dict[str, Any]


def parted(directory: Path, version: int = 2) -> Table:
    """A table with a file of its own for each of three partitions, from a commit each."""
    table = new_table(directory, _SCHEMA, partition_by="part", version=version)
    for part in range(3):
        table.append(rows(part, part * 10, part * 10 + 1))
    return table


def rows(part: int, *ids: int) -> pa.Table:
    found = [{"id": row_id, "part": part} for row_id in ids]
    return pa.Table.from_pylist(found, schema_to_arrow(_SCHEMA))


def manifest_of(table: Table, part: int) -> Path:
    manifests = table.inspect.manifests().to_pylist()
    text = str(part)
    (path,) = (m["path"] for m in manifests if m["partition_summaries"][0]["lower_bound"] == text)
    return Path(path)


_FILTERS: list[tuple[MetadataTable, str, Callable[[Row], bool]]] = [
    (MetadataTable.FILES, "record_count > 1", lambda row: row["record_count"] > 1),
    (MetadataTable.FILES, "content IN (1, 2)", lambda row: row["content"] != 0),
    (MetadataTable.ALL_FILES, "NOT content = 0", lambda row: row["content"] != 0),
    (MetadataTable.ENTRIES, "status = 2", lambda row: row["status"] == 2),
    (
        MetadataTable.ALL_ENTRIES,
        "data_file.spec_id = 0 OR sequence_number < 3",
        lambda row: row["data_file"]["spec_id"] == 0 or row["sequence_number"] < 3,
    ),
    (
        MetadataTable.DATA_FILES,
        "readable_metrics.id.lower_bound >= 2",
        lambda row: row["readable_metrics"]["id"]["lower_bound"] >= 2,
    ),
    (
        MetadataTable.MANIFESTS,
        "added_data_files_count > 0",
        lambda row: row["added_data_files_count"] > 0,
    ),
    (MetadataTable.ALL_MANIFESTS, "length > 5000", lambda row: row["length"] > 5000),
    (MetadataTable.SNAPSHOTS, "parent_id IS NULL", lambda row: row["parent_id"] is None),
    (MetadataTable.REFS, "type = 'TAG'", lambda row: row["type"] == "TAG"),
    (MetadataTable.PARTITIONS, "file_count > 1", lambda row: row["file_count"] > 1),
    (MetadataTable.POSITION_DELETES, "pos = 0", lambda row: row["pos"] == 0),
]


@pytest.mark.parametrize("version", [1, 3])
def test_a_filter_and_columns_choose_what_the_whole_table_has(tmp_path: Path, version: int) -> None:
    numbers = count()

    @examples(20, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = EvolvingTable(data.draw, tmp_path, f"t{next(numbers)}", version)
        for _ in range(data.draw(st.integers(4, 12))):
            made.step()
        for kind, text, holds in _FILTERS:
            read = getattr(made.table.inspect, kind)
            whole = read().to_pylist()
            expected = [row for row in whole if holds(row)]
            assert read(filter=text).to_pylist() == expected, kind
            names = data.draw(st.lists(st.sampled_from(list(read().schema.names)), min_size=1))
            shown = [{name: row[name] for name in names} for row in expected]
            assert read(filter=text, columns=names).to_pylist() == shown, kind

    check()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_conditions_on_partitions_skip_manifests(tmp_path: Path, version: int) -> None:
    table = parted(tmp_path, version)
    manifest_of(table, 2).unlink()
    condition = "partition.part < 2 AND record_count > 0"
    assert table.inspect.files(filter=condition).num_rows == 2
    assert table.inspect.entries(filter="data_file.partition.part = 1").num_rows == 1
    assert table.inspect.partitions(filter="partition.part IN (0, 1)").num_rows == 2
    with pytest.raises(MissingFileError, match="avro"):
        table.inspect.files(filter=f"{condition} OR record_count > 5")


def test_conditions_on_content_skip_manifests(tmp_path: Path) -> None:
    table = parted(tmp_path)
    table.upsert(rows(1, 10), ["id", "part"])
    (deletes,) = table.inspect.manifests(filter="content = 1", columns="path")["path"].to_pylist()
    Path(deletes).unlink()
    assert table.inspect.files(filter="content = 0").num_rows == 4
    assert table.inspect.data_files().num_rows == 4
    with pytest.raises(MissingFileError):
        table.inspect.files(filter="content <= 1")


def test_a_part_of_a_struct_is_shown(tmp_path: Path) -> None:
    table = parted(tmp_path)
    found = table.inspect.files(columns=["readable_metrics.id.upper_bound", "partition.part"])
    assert found.to_pylist()[0] == {
        "readable_metrics": {"id": {"upper_bound": 21}},
        "partition": {"part": 2},
    }
    shown = table.inspect.manifests(columns="partition_summaries.element.upper_bound")
    assert shown.to_pylist()[0] == {"partition_summaries": [{"upper_bound": "2"}]}


def test_a_snapshot_is_shown_by_its_id_branch_or_tag(tmp_path: Path) -> None:
    table = parted(tmp_path)
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_tag("first", first).create_branch("other", first).commit()
    table.append(rows(7, 70), branch="other")
    assert table.inspect.files(first).num_rows == 1
    assert table.inspect.partitions(tag="first").num_rows == 1
    assert table.inspect.files(branch="other").num_rows == 2
    assert table.inspect.files().num_rows == 3
    with pytest.raises(InvalidOptionError, match="contradict each other"):
        table.inspect.files(first, branch="other")


def test_a_transaction_shows_its_own_steps(tmp_path: Path) -> None:
    table = parted(tmp_path)
    with table.transaction() as tx:
        tx.append(rows(5, 50))
        assert tx.inspect.partitions(filter="partition.part = 5").num_rows == 1
        assert tx.inspect.snapshots().num_rows == 4
    assert table.inspect.snapshots().num_rows == 4


def test_partitions_of_expired_snapshots_keep_their_spec(tmp_path: Path) -> None:
    table = parted(tmp_path)
    with table.update_spec() as update:
        update.add_field("bucket(2, id)")
    table.append(rows(0, 0))
    table.expire_snapshots(snapshot_ids=[table.snapshots()[0].snapshot_id])
    found = table.inspect.partitions(filter="partition.part = 0").to_pylist()
    known = {row["spec_id"]: row["last_updated_at"] is not None for row in found}
    assert known == {0: False, 1: True}


def test_partitions_count_data_and_deletes_apart(tmp_path: Path) -> None:
    table = parted(tmp_path)
    by_key = {"write.upsert.mode": "equality-deletes"}
    table.upsert(rows(1, 10), ["id", "part"], options=by_key)
    (row,) = table.inspect.partitions(filter="partition.part = 1").to_pylist()
    assert (row["record_count"], row["file_count"]) == (3, 2)
    assert (row["equality_delete_record_count"], row["equality_delete_file_count"]) == (1, 1)
    assert row["position_delete_file_count"] == 0


@pytest.mark.parametrize("transform", ["year", "month", "hour", "bucket[4]", "truncate[2]"])
def test_a_field_that_version_1_has_made_void_is_null(tmp_path: Path, transform: str) -> None:
    kind = LONG if transform in ("bucket[4]", "truncate[2]") else TIMESTAMP
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "at", kind)))
    table = new_table(tmp_path, schema, version=1)
    value = 7 if kind == LONG else datetime.datetime(2026, 1, 1, 5)
    row = pa.Table.from_pylist([{"id": 1, "at": value}], schema_to_arrow(schema))
    table.update_spec().add_field("at", transform, "part").commit()
    table.append(row)
    table.update_spec().remove_field("part").commit()
    table.append(row)
    newer, older = (file["partition"]["part"] for file in table.inspect.files().to_pylist())
    assert (newer is None, older is None) == (True, False)
    assert table.inspect.files(filter="partition.part IS NULL").num_rows == 1
    assert table.inspect.entries(columns="data_file.partition").num_rows == 2
    assert table.inspect.partitions().num_rows == 2


def test_wrong_arguments_are_refused_by_name(tmp_path: Path) -> None:
    table = parted(tmp_path)
    with pytest.raises(InvalidFilterError, match="expected the condition as SQL"):
        table.inspect.files(filter=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidFilterError, match="record_cont"):
        table.inspect.files(filter="record_cont = 1")
    with pytest.raises(InvalidOptionError, match="no column 'record_cont'; did you mean"):
        table.inspect.files(columns="record_cont")
    with pytest.raises(InvalidOptionError, match="no argument 'colums'; did you mean 'columns'"):
        table.inspect.files(colums="record_count")  # type: ignore[call-arg]
    with pytest.raises(InvalidOptionError, match="filter and row_filter mean the same"):
        table.inspect.partitions(filter="file_count = 1", row_filter="file_count = 1")
    with pytest.raises(InvalidOptionError, match="'metadata-table' is one of spark"):
        table.scan(options={"metadata-table": "files"}).to_arrow()


def test_partitions_of_unknown_transforms_are_refused_and_files_are_shown(tmp_path: Path) -> None:
    table = parted(tmp_path)
    location = Path(table.metadata_location)
    text = location.read_text()
    assert '"transform":"identity"' in text
    location.write_text(text.replace('"transform":"identity"', '"transform":"zorder"'))
    table.refresh()
    assert [row["partition"] for row in table.inspect.files().to_pylist()] == [{"part": None}] * 3
    with pytest.raises(UnsupportedFeatureError, match="partition field 'part' has a transform"):
        table.inspect.partitions()
