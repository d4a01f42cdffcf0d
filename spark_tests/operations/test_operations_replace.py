"""Replacing a table beside other writers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from built.commit_tables import SCHEMA, CommitTable, create_table, data_file

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.data_files import Append
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.errors import InvalidMetadataError, ValidationError
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.operations.write.append_overwrite import commit_write, prepare_write
from icebergds.operations.write.options import Creation, WriteOptions
from icebergds.operations.write.replace import plan_replacement
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.table_updates import LAST_ADDED, AddSchema, SetCurrentSchema
from icebergds.write.task import write_batches

_COLUMNS = Schema((NestedField(1, "id", LONG), NestedField(2, "extra", LONG)))


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    table = create_table(tmp_path / "t")
    table.commit(Append((table.file([1]),)))
    return table


def planned(table: CommitTable, creation: Creation = Creation(), **options: bool) -> LoadedTable:  # noqa: B008
    loaded = load_for_write(TableAddress(str(table.location)))
    return plan_replacement(loaded, creation, _COLUMNS, **options)


def commit(table: CommitTable, replacement: LoadedTable) -> None:
    file = data_file(table.location, replacement.metadata, [7], None)
    commit_snapshot(replacement.operations, Append((file,)), base=replacement.state)


def test_nothing_changes_before_the_commit(table: CommitTable) -> None:
    replacement = planned(table, Creation(partition_by="bucket(4, id)", sort_by="id"))
    assert [field.name for field in replacement.metadata.schema().fields] == ["id", "extra"]
    assert replacement.metadata.current_snapshot() is None
    assert table.metadata.schema().fields == SCHEMA.fields
    assert table.ids() == [1]


def test_columns_order_and_rows_are_replaced_in_one_commit(table: CommitTable) -> None:
    before = table.metadata
    commit(table, planned(table, Creation(sort_by="extra desc", properties={"a": "b"})))
    after = table.metadata
    assert table.ids() == [7]
    assert [(f.name, f.field_id) for f in after.schema().fields] == [("id", 1), ("extra", 3)]
    assert after.spec().is_unpartitioned
    assert [field.source_id for field in after.sort_order().fields] == [3]
    assert after.properties == {**before.properties, "a": "b"}
    assert after.table_uuid == before.table_uuid
    assert len(after.metadata_log) == len(before.metadata_log) + 1
    assert [s.snapshot_id for s in before.snapshots] == [after.snapshots[0].snapshot_id]


def test_a_new_column_does_not_take_the_name_of_an_earlier_partition_field(
    table: CommitTable,
) -> None:
    partitioned = planned(table, Creation(partition_by="bucket(4, id) as part"))
    commit_snapshot(partitioned.operations, Append(()), base=partitioned.state)
    loaded = load_for_write(TableAddress(str(table.location)))
    columns = Schema((NestedField(1, "id", LONG), NestedField(2, "part", LONG)))
    with pytest.raises(InvalidMetadataError, match=r"table .*: column 'part' would have the name"):
        plan_replacement(loaded, Creation(), columns)


def test_rows_that_others_add_meanwhile_are_replaced_too(table: CommitTable) -> None:
    replacement = planned(table)
    table.commit(Append((table.file([2]),)))
    commit(table, replacement)
    assert table.ids() == [7]
    assert len(table.metadata.snapshots) == 3
    assert table.left_over() == set()


def test_rows_of_later_commits_are_kept_if_the_new_ones_come_from_the_table(
    table: CommitTable,
) -> None:
    replacement = planned(table, only_head=True)
    table.commit(Append((table.file([2]),)))
    with pytest.raises(ValidationError, match="come from the table"):
        commit(table, replacement)
    assert table.ids() == [1, 2]
    assert table.left_over() == set()


def test_rows_of_later_commits_are_kept_of_a_table_that_was_empty(tmp_path: Path) -> None:
    table = create_table(tmp_path / "empty")
    replacement = planned(table, only_head=True)
    table.commit(Append((table.file([2]),)))
    with pytest.raises(ValidationError, match="come from the table"):
        commit(table, replacement)
    assert table.ids() == [2]


def test_a_column_that_others_add_meanwhile_ends_the_replacement(table: CommitTable) -> None:
    replacement = planned(table)
    fields = (*table.metadata.schema().fields, NestedField(3, "other", LONG))
    table.change(AddSchema(Schema(fields)), SetCurrentSchema(LAST_ADDED))
    with pytest.raises(ValidationError, match="changed the table's columns"):
        commit(table, replacement)
    assert table.ids() == [1]


@pytest.mark.parametrize("overwrite", [False, True])
def test_rows_whose_columns_a_replacement_took_away_are_not_committed(
    table: CommitTable, overwrite: bool
) -> None:
    rows = pa.record_batch({"id": pa.array([2]), "day": pa.array([3], pa.int32())})
    options = WriteOptions(TableAddress(str(table.location)))
    columns = schema_from_arrow(rows.schema)
    write, loaded = prepare_write(options, rows.schema, columns, overwrite=overwrite)
    files = write_batches(write.plan, iter([rows]), partition_id=0, attempt_id=0)
    commit(table, planned(table))
    with pytest.raises(ValidationError, match="removed day"):
        commit_write(write, files, loaded)
    assert table.ids() == [7]
    assert table.left_over() == set()
    assert not any(Path(file.file_path).exists() for file in files)


def test_partition_fields_keep_their_ids(table: CommitTable) -> None:
    commit(table, planned(table))
    loaded = load_for_write(TableAddress(str(table.location)))
    again = plan_replacement(loaded, Creation(partition_by="day"), SCHEMA)
    (field,) = again.metadata.spec().fields
    assert field.field_id > 1000
    assert again.metadata.spec().spec_id == 2


def test_format_versions_only_rise(table: CommitTable) -> None:
    assert planned(table, Creation(format_version=3)).metadata.format_version == 3
    assert planned(table).metadata.format_version == 2
    with pytest.raises(InvalidMetadataError, match="downgraded"):
        planned(table, Creation(format_version=1))
