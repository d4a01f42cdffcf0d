"""Metadata columns of rows: where they come from and what they hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder

from icebergds.api.table import load_table
from icebergds.scan.read.metadata_columns import identity_constants
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    UnknownTransform,
    VoidTransform,
)
from icebergds.spec.types import LONG, STRING, NestedField

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))


def test_positions_count_the_rows_of_a_file(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    files = [
        table.data_file([(10 * f + i, "x") for i in range(7)], row_group_size=2) for f in range(2)
    ]
    table.commit(*files)
    table.commit(table.position_deletes({files[0].file_path: [1, 2, 6]}))
    paths = {file.file_path: f for f, file in enumerate(files)}
    found = _read(table, "_pos, id, _file", "id != 14")
    assert sorted((paths[path], position) for position, _, path in found) == [
        *((0, i) for i in (0, 3, 4, 5)),
        *((1, i) for i in (0, 1, 2, 3, 5, 6)),
    ]
    assert all(row_id == 10 * paths[path] + position for position, row_id, path in found)


def test_the_path_of_a_file_is_as_the_manifest_writes_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA)
    data_file = table.data_file([(1, "x")])
    foreign = f"s3://bucket/{Path(data_file.file_path).name}"
    table.commit(replace(data_file, file_path=foreign))
    mapped = load_table(
        str(table.location), location_map={"s3://bucket/": str(table.location / "data") + "/"}
    )
    assert mapped.scan(columns="_file").to_arrow().to_pylist() == [{"_file": foreign}]


def test_partitions_are_null_in_the_fields_of_other_specs(tmp_path: Path) -> None:
    by_name = PartitionField((2,), 1000, IdentityTransform(), "name")
    by_bucket = PartitionField((1,), 1001, BucketTransform(4), "bucket")
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=PartitionSpec(0, (by_name,)))
    table.commit(table.data_file([(1, "x")], partition=("x",)))
    table.evolve(spec=PartitionSpec(1, (by_bucket,)))
    table.commit(table.data_file([(2, "y")], partition=(3,)))
    table.evolve(spec=PartitionSpec(2))
    table.commit(table.data_file([(3, "z")]))
    found = _read(table, "id, _spec_id, _partition")
    assert sorted(found, key=lambda row: row[0]) == [
        (1, 0, {"name": "x", "bucket": None}),
        (2, 1, {"name": None, "bucket": 3}),
        (3, 2, {"name": None, "bucket": None}),
    ]
    assert sorted(_read(table, "_partition.bucket"), key=str) == [
        ({"bucket": 3},),
        ({"bucket": None},),
        ({"bucket": None},),
    ]


def test_partition_fields_dropped_in_version_1_keep_old_values(tmp_path: Path) -> None:
    part = PartitionField((2,), 1000, BucketTransform(4), "b")
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=PartitionSpec(0, (part,)), format_version=1)
    table.commit(table.data_file([(1, "x")], partition=(3,)))
    table.evolve(spec=PartitionSpec(1, (replace(part, transform=VoidTransform()),)))
    table.commit(table.data_file([(2, "y")], partition=(None,)))
    assert sorted(_read(table, "id, _partition")) == [(1, {"b": 3}), (2, {"b": None})]


def test_results_of_unknown_transforms_are_null(tmp_path: Path) -> None:
    part = PartitionField((2,), 1000, UnknownTransform("zorder[3]"), "z")
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=PartitionSpec(0, (part,)))
    known = replace(part, transform=IdentityTransform())
    table.metadata = replace(table.metadata, partition_specs=(PartitionSpec(0, (known,)),))
    data_file = table.data_file([(1, "x")], partition=("x",))
    table.commit(data_file)
    table.metadata = replace(table.metadata, partition_specs=(PartitionSpec(0, (part,)),))
    table.tag("now", 1001)
    assert _read(table, "id, _partition", "name = 'x'") == [(1, {"z": None})]


# Row lineage.


def test_rows_take_ids_from_their_file_and_position(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    table.commit(table.data_file([(1, "x"), (2, "x")]), table.data_file([(3, "x")]))
    table.commit(table.data_file([(4, "x")], row_group_size=1))
    found = _read(table, "id, _row_id, _last_updated_sequence_number")
    assert sorted(found) == [(1, 0, 1), (2, 1, 1), (3, 2, 1), (4, 3, 2)]


def test_stored_lineage_wins_where_it_is_not_null(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    old = table.data_file([(1, "x"), (2, "x")])
    table.commit(old)
    schema = Schema((*_SCHEMA.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER))
    moved = table.data_file(
        [(1, "x", 0, 1), (2, "y", 1, None), (3, "z", None, None)], schema=schema
    )
    table.commit(moved, removed=[old])
    found = _read(table, "id, _row_id, _last_updated_sequence_number")
    assert sorted(found) == [(1, 0, 1), (2, 1, 2), (3, 4, 2)]
    # The new file's ids begin after those of the old one.
    assert _read(table, "_row_id", "id = 3") == [(4,)]


def test_snapshots_from_before_an_upgrade_have_no_row_ids(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=2)
    table.commit(table.data_file([(1, "x")]))
    table.upgrade(3)
    columns = "id, _row_id, _last_updated_sequence_number"
    assert _read(table, columns) == [(1, None, None)]
    table.commit(table.data_file([(2, "x")]))
    assert sorted(_read(table, columns)) == [(1, 0, 1), (2, 1, 2)]


def test_row_ids_are_kept_when_manifests_are_rewritten(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, format_version=3)
    gone = table.data_file([(1, "x")])
    table.commit(gone, table.data_file([(2, "x"), (3, "x")]))
    table.commit(table.data_file([(4, "x")]), removed=[gone])
    rows = dict(_read(table, "id, _row_id"))
    assert rows[2] == 1
    assert rows[3] == 2
    assert rows[4] > 2


@pytest.mark.parametrize(
    ("transform", "constants"), [(IdentityTransform(), {2: "x"}), (BucketTransform(4), {})]
)
def test_only_identity_partitions_fix_a_column(transform: Any, constants: dict[int, Any]) -> None:
    spec = PartitionSpec(0, (PartitionField((2,), 1000, transform, "p"),))
    assert identity_constants(spec, ("x",)) == constants


def _read(table: TableBuilder, columns: str, filter: str | None = None) -> list[tuple[Any, ...]]:
    found = load_table(str(table.location)).scan(filter=filter, columns=columns).to_arrow()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))
