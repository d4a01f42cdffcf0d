"""What the builder of tables writes, read back by fastavro and pyarrow rather than by us."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from built.tables import TableBuilder

from icebergds.api.table import load_table
from icebergds.spec.manifest import FileContent, FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DOUBLE, LONG, STRING, NestedField
from icebergds.spec.values.binary import from_bytes

_SCHEMA = Schema(
    (NestedField(1, "id", LONG, True), NestedField(2, "name", STRING), NestedField(3, "d", DOUBLE))
)
_BY_NAME = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "name"),))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_commit_is_a_version_of_the_metadata(tmp_path: Path, version: int) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=version)
    table.commit(table.data_file([(1, "a", 0.5)]))
    table.tag("one", 1001)
    names = sorted(path.name for path in (table.location / "metadata").glob("v*.json"))
    assert names == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json"]
    assert (table.location / "metadata" / "version-hint.text").read_text() == "3"
    assert _metadata(table)["format-version"] == version
    assert load_table(str(table.location)).metadata == table.metadata


def test_data_files_have_exact_metrics(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    rows = [(3, None, float("nan")), (1, "b", None), (2, "a", -1.0)]
    data_file = table.data_file(rows, row_group_size=2)
    assert data_file.value_counts == {1: 3, 2: 3, 3: 3}
    assert data_file.null_value_counts == {1: 0, 2: 1, 3: 1}
    assert data_file.nan_value_counts == {3: 1}
    bounds = [
        {i: from_bytes(_SCHEMA.fields[i - 1].field_type, data) for i, data in found.items()}
        for found in (data_file.lower_bounds, data_file.upper_bounds)
    ]
    assert bounds == [{1: 1, 2: "a", 3: -1.0}, {1: 3, 2: "b", 3: -1.0}]
    footer = pq.read_metadata(data_file.file_path)
    assert footer.num_row_groups == len(data_file.split_offsets) == 2
    assert data_file.file_size_in_bytes == Path(data_file.file_path).stat().st_size


def test_metrics_can_be_left_out(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    data_file = table.data_file([(1, "a", 0.5)], with_metrics=False)
    assert not data_file.value_counts
    assert not data_file.lower_bounds


def test_added_files_inherit_their_sequence_number(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(table.data_file([(1, "a", 0.5)]))
    (entry,) = _entries(table)
    assert entry["status"] == 1
    assert entry["sequence_number"] is None
    assert _manifests(table)[0]["sequence_number"] == 1


def test_files_of_older_rows_keep_an_older_number(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    old = table.data_file([(1, "a", 0.5)])
    table.commit(old)
    table.commit(table.data_file([(2, "a", 0.5)]))
    moved = table.data_file([(1, "a", 0.5)])
    table.commit(moved, removed=[old], data_sequence_numbers={moved.file_path: 1})
    live = [(e["status"], e["sequence_number"], _path(e)) for e in _entries(table)]
    assert (1, 1, moved.file_path) in live
    assert (2, 1, old.file_path) in live


def test_removed_files_stay_as_deleted_entries_beside_the_existing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    gone, kept = (table.data_file([(i, "a", 0.5)]) for i in range(2))
    table.commit(gone, kept)
    table.commit(removed=[gone])
    assert {(_path(e), e["status"], e["sequence_number"]) for e in _entries(table)} == {
        (gone.file_path, 2, 1),
        (kept.file_path, 0, 1),
    }
    (manifest,) = _manifests(table)
    counts = [manifest[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    assert counts == [0, 1, 1]


def test_one_vector_of_a_puffin_file_can_be_removed(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    files = [table.data_file([(i, "a", 0.5), (i + 1, "a", 0.5)]) for i in (0, 10)]
    table.commit(*files)
    vectors = table.deletion_vectors([(files[0], [0]), (files[1], [1])])
    table.commit(*vectors)
    (merged,) = table.deletion_vectors([(files[0], [0, 1])])
    table.commit(merged, removed=vectors[:1])
    found = load_table(str(table.location)).scan(columns="id").to_arrow()
    assert found["id"].to_pylist() == [10]


def test_manifests_hold_one_spec_and_one_kind_of_content(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_NAME)
    table.evolve(spec=PartitionSpec(1))
    data_file = table.data_file([(1, "a", 0.5)], partition=("a",), spec_id=0)
    table.commit(
        table.data_file([(2, "b", 0.5)]),
        data_file,
        table.position_deletes({data_file.file_path: [0]}, partition=("a",), spec_id=0),
        table.equality_deletes(["id"], [(9,)]),
    )
    assert [(m["partition_spec_id"], m["content"]) for m in _manifests(table)] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


@pytest.mark.parametrize("with_summaries", [True, False])
def test_manifest_lists_summarise_partitions_on_demand(
    tmp_path: Path, with_summaries: bool
) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_NAME)
    files = [table.data_file([(1, p, 0.5)], partition=(p,)) for p in ("b", None, "a")]
    table.commit(*files, with_summaries=with_summaries)
    summary = {
        "contains_null": True,
        "contains_nan": False,
        "lower_bound": b"a",
        "upper_bound": b"b",
    }
    assert _manifests(table)[0]["partitions"] == ([summary] if with_summaries else [])


def test_row_ids_are_assigned_by_manifest(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    table.commit(table.data_file([(1, "a", 0.5), (2, "a", 0.5)]))
    table.commit(table.data_file([(3, "a", 0.5)]), table.data_file([(4, "a", 0.5)]))
    assert [m["first_row_id"] for m in _manifests(table)] == [0, 2]
    metadata = _metadata(table)
    assert metadata["next-row-id"] == 4
    assert [(s["first-row-id"], s["added-rows"]) for s in metadata["snapshots"]] == [(0, 2), (2, 2)]


def test_upgraded_tables_assign_row_ids_with_their_next_commit(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=2)
    table.commit(table.data_file([(1, "a", 0.5)]))
    table.upgrade(3)
    assert _metadata(table)["next-row-id"] == 0
    table.commit(table.data_file([(2, "a", 0.5)]))
    assert [m["first_row_id"] for m in _manifests(table)] == [0, 1]


def test_equality_deletes_may_name_fewer_keys_than_columns(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    deletes = table.equality_deletes(["name", "id"], [("a", 1)], equality_ids=[1])
    assert deletes.content is FileContent.EQUALITY_DELETES
    assert deletes.equality_ids == (1,)
    assert pq.read_table(deletes.file_path).to_pylist() == [{"name": "a", "id": 1}]
    assert table.equality_deletes(["name", "id"], [("a", 1)]).equality_ids == (2, 1)


def test_branches_grow_from_where_they_start(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    table.commit(table.data_file([(1, "a", 0.5)]))
    table.branch("work", 1001)
    table.commit(table.data_file([(2, "a", 0.5)]), branch="work")
    table.commit(table.data_file([(3, "a", 0.5)]))
    loaded = load_table(str(table.location))
    for branch, ids in (("work", [1, 2]), ("main", [1, 3])):
        found = loaded.scan(columns="id", branch=branch).to_arrow()
        assert sorted(found["id"].to_pylist()) == ids
    assert [s.parent_snapshot_id for s in loaded.snapshots()] == [None, 1001, 1001]
    assert [entry.snapshot_id for entry in loaded.metadata.snapshot_log] == [1001, 1003]


def test_evolved_schemas_and_specs_are_added(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    wider = replace(_SCHEMA, fields=(*_SCHEMA.fields, NestedField(9, "x", LONG)), schema_id=1)
    table.evolve(wider, replace(_BY_NAME, spec_id=1))
    metadata = _metadata(table)
    assert [schema["schema-id"] for schema in metadata["schemas"]] == [0, 1]
    assert metadata["current-schema-id"] == metadata["default-spec-id"] == 1
    assert (metadata["last-column-id"], metadata["last-partition-id"]) == (9, 1000)


def _metadata(table: TableBuilder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(table.metadata_location).read_text())
    return found


def _manifests(table: TableBuilder) -> list[dict[str, Any]]:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    return _avro(str(snapshot.manifest_list))


def _entries(table: TableBuilder) -> Sequence[dict[str, Any]]:
    return [entry for m in _manifests(table) for entry in _avro(m["manifest_path"])]


def _path(entry: dict[str, Any]) -> str:
    return str(entry["data_file"]["file_path"])


def _avro(path: str) -> list[dict[str, Any]]:
    with open(path, "rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_data_and_delete_files_are_of_any_format(tmp_path: Path, file_format: FileFormat) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    rows = [(at, str(at), None) for at in range(4)]
    data_file = table.data_file(rows, file_format=file_format)
    table.commit(data_file)
    deletes = [
        table.position_deletes({data_file.file_path: [1]}, file_format=file_format),
        table.equality_deletes(["id"], [(2,)], file_format=file_format),
    ]
    table.commit(*deletes)
    assert {file.file_format for file in (data_file, *deletes)} == {file_format}
    assert [file.record_count for file in deletes] == [1, 1]
    read = load_table(str(table.location)).scan().to_arrow()
    assert read["id"].to_pylist() == [0, 3]
