"""`Table.convert_equality_deletes`: equality deletes become position deletes of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import (
    catalog_in,
    create_table,
    ids_of,
    new_table,
    open_table,
    rows,
)
from built.contents import live_files
from built.tables import TableBuilder
from convert_tables import RacingTable
from corpus import exact_tables
from corpus_copies import copied_table

from icebergds.api.table import Table, load_table
from icebergds.commit.data_files import Append
from icebergds.errors import CorruptFileError, InvalidFilterError, InvalidOptionError
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    ConvertedEqualityDeletes,
)
from icebergds.spec.manifest import DataFile, FileContent
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import OWN_OPERATION
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, LONG, STRING, NestedField, StructType

_KEYS, _POSITIONS = FileContent.EQUALITY_DELETES, FileContent.POSITION_DELETES
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def deletes(table: Table, content: FileContent) -> list[DataFile]:
    return [file for file in live_files(table.location()) if file.content is content]


def table_of_days(directory: Path, version: int, **properties: str) -> Table:
    """Rows 1 to 6 of two days, of which equality deletes have deleted 2 and 5."""
    given = {"write.upsert.mode": "equality-deletes", **properties}
    table = new_table(directory, partition_by="day", version=version, properties=given)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6, day=1))
    table.delete_keys(rows(2), ["id", "day"])
    table.delete_keys(rows(5, day=1), ["id", "day"])
    return table


@VERSIONS
def test_equality_deletes_become_position_deletes(tmp_path: Path, version: int) -> None:
    table = table_of_days(tmp_path, version)
    done = table.convert_equality_deletes()
    assert done == ConvertedEqualityDeletes(
        converted_equality_delete_files_count=2,
        remaining_equality_delete_files_count=0,
        added_delete_files_count=2,
        deleted_rows_count=2,
    )
    assert ids_of(table) == [1, 3, 4, 6]
    assert not deletes(table, _KEYS)
    added = deletes(table, _POSITIONS)
    assert [file.is_deletion_vector for file in added] == [version == 3] * 2
    assert ids_of(load_table(table.location())) == [1, 3, 4, 6]


@VERSIONS
def test_older_snapshots_read_as_before(tmp_path: Path, version: int) -> None:
    table = table_of_days(tmp_path, version)
    before = {s.snapshot_id: ids_of(table, snapshot_id=s.snapshot_id) for s in table.snapshots()}
    table.convert_equality_deletes()
    assert {found: ids_of(table, snapshot_id=found) for found in before} == before


@VERSIONS
def test_lineage_stays(tmp_path: Path, version: int) -> None:
    table = table_of_days(tmp_path, version).upgrade(3)
    table.append(rows(7))
    columns = ["id", "_row_id", "_last_updated_sequence_number"]

    def lineage() -> list[dict[str, Any]]:
        return sorted(table.scan(columns=columns).to_arrow().to_pylist(), key=str)

    before = lineage()
    table.convert_equality_deletes()
    assert lineage() == before


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_every_file_format(tmp_path: Path, file_format: str) -> None:
    table = table_of_days(tmp_path, 2, write__format__default=file_format)
    table.convert_equality_deletes()
    assert ids_of(table) == [1, 3, 4, 6]
    assert {file.file_format.value for file in live_files(table.location())} == {file_format}


@VERSIONS
def test_only_older_rows_of_a_key_are_deleted(tmp_path: Path, version: int) -> None:
    table = RacingTable(tmp_path / "t", version=version)
    table.append((1, "a"), (2, "b"))
    for name in ("c", "d", "e"):
        table.keyed("upsert", [table.batch((1, name))])
    assert table.convert().deleted_rows_count == 3
    assert table.rows() == [(1, "e"), (2, "b")]
    assert not table.deletes(_KEYS)


@VERSIONS
def test_null_keys_are_equal(tmp_path: Path, version: int) -> None:
    table = RacingTable(tmp_path / "t", version=version)
    table.append((1, None), (2, "b"), (3, None))
    table.keyed("delete", [table.batch((0, None))], keys=(2,))
    assert table.convert().deleted_rows_count == 2
    assert table.rows() == [(2, "b")]


@VERSIONS
def test_deletes_by_several_keys(tmp_path: Path, version: int) -> None:
    table = RacingTable(tmp_path / "t", version=version)
    table.append((1, "a"), (2, "b"), (3, "c"), (4, "d"))
    table.keyed("delete", [table.batch((1, None))])
    table.keyed("delete", [table.batch((0, "b"), (0, "a"))], keys=(2,))
    table.keyed("delete", [table.batch((3, "c"), (4, "c"))], keys=(1, 2))
    done = table.convert()
    assert (done.converted_equality_delete_files_count, done.deleted_rows_count) == (3, 3)
    assert table.rows() == [(4, "d")]


@VERSIONS
def test_rows_deleted_by_position_are_not_deleted_again(tmp_path: Path, version: int) -> None:
    table = RacingTable(tmp_path / "t", version=version)
    table.append((1, "a"), (2, "b"), (3, "c"))
    table.change_where(lambda row: row["id"] in (1, 2))
    table.keyed("delete", [table.batch((2, None), (3, None))])
    assert table.convert().deleted_rows_count == 1
    assert table.rows() == []
    found = table.deletes(_POSITIONS)
    # A data file has one vector; position delete files are added beside the others.
    assert [file.record_count for file in found] == ([3] if version == 3 else [1, 2])


def test_position_delete_files_are_merged_into_the_vector(tmp_path: Path) -> None:
    table = RacingTable(tmp_path / "t", version=2)
    table.append((1, "a"), (2, "b"), (3, "c"))
    table.change_where(lambda row: row["id"] == 1)
    table.keyed("delete", [table.batch((2, None))])
    load_table(str(table.table.location)).upgrade(3)
    table.convert()
    (vector,) = table.deletes(_POSITIONS)
    assert (vector.is_deletion_vector, vector.record_count) == (True, 2)
    assert table.rows() == [(3, "c")]


@VERSIONS
def test_deletes_of_no_row_are_removed(tmp_path: Path, version: int) -> None:
    table = RacingTable(tmp_path / "t", version=version)
    table.append((1, "a"), (3, "c"))
    table.keyed("delete", [table.batch((2, None))])
    done = table.convert()
    assert (done.converted_equality_delete_files_count, done.added_delete_files_count) == (1, 0)
    assert table.rows() == [(1, "a"), (3, "c")]
    assert not table.deletes(_KEYS)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_without_equality_deletes_gets_no_commit(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version=version)
    assert table.convert_equality_deletes() == ConvertedEqualityDeletes()
    table.append(rows(1))
    assert table.convert_equality_deletes() == ConvertedEqualityDeletes()
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize(("granularity", "files"), [("file", 2), ("partition", 1)])
def test_position_delete_files_have_the_tables_granularity(
    tmp_path: Path, granularity: str, files: int
) -> None:
    properties = {"write.delete.granularity": granularity}
    table = RacingTable(tmp_path / "t", version=2, properties=properties)
    table.append((1, "a"), (2, "b"))
    table.append((1, "c"), (2, "d"))
    table.keyed("delete", [table.batch((1, None))])
    assert table.convert().added_delete_files_count == files
    assert table.rows() == [(2, "b"), (2, "d")]


@VERSIONS
def test_a_condition_converts_some_partitions(tmp_path: Path, version: int) -> None:
    table = table_of_days(tmp_path, version)
    done = table.convert_equality_deletes("day = 1")
    assert done.converted_equality_delete_files_count == 1
    assert done.remaining_equality_delete_files_count == 1
    (left,) = deletes(table, _KEYS)
    assert left.partition == (0,)
    assert ids_of(table) == [1, 3, 4, 6]


@VERSIONS
def test_a_delete_that_other_partitions_need_stays(tmp_path: Path, version: int) -> None:
    """It is global: it applies to files of every partition spec."""
    builder = _table_of_two_specs(tmp_path / "t", version)
    table = load_table(str(builder.location))
    done = table.convert_equality_deletes("part = 1")
    assert done == ConvertedEqualityDeletes(remaining_equality_delete_files_count=1)
    assert len(table.snapshots()) == 3
    assert table.convert_equality_deletes().deleted_rows_count == 3
    assert ids_of(table) == [1, 1, 3]


@VERSIONS
def test_keys_that_the_schema_has_dropped(tmp_path: Path, version: int) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "gone", STRING)))
    builder = TableBuilder(tmp_path / "t", schema, format_version=version)
    builder.commit(builder.data_file([(1, "a"), (2, "b"), (3, None)]))
    builder.commit(builder.equality_deletes(["gone"], [("b",), (None,)]))
    builder.evolve(schema=Schema((NestedField(1, "id", LONG),), schema_id=1))
    table = load_table(str(builder.location))
    assert table.convert_equality_deletes().deleted_rows_count == 2
    assert ids_of(table) == [1]


def test_keys_that_files_lack_have_their_defaults(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", Schema((NestedField(1, "id", LONG),)), format_version=3)
    builder.commit(builder.data_file([(1,), (2,)]))
    added = NestedField(2, "kind", STRING, initial_default="x")
    builder.evolve(schema=Schema((NestedField(1, "id", LONG), added), schema_id=1))
    builder.commit(builder.data_file([(3, "y"), (4, "x")]))
    builder.commit(builder.equality_deletes(["kind"], [("x",)]))
    table = load_table(str(builder.location))
    assert table.convert_equality_deletes().deleted_rows_count == 3
    assert ids_of(table) == [3]


@VERSIONS
def test_nested_keys(tmp_path: Path, version: int) -> None:
    inside = StructType((NestedField(3, "a", INT), NestedField(4, "b", STRING)))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", inside)))
    builder = TableBuilder(tmp_path / "t", schema, format_version=version)
    builder.commit(builder.data_file([(1, (7, "x")), (2, (8, "y")), (3, None)]))
    builder.commit(builder.equality_deletes(["s"], [((7, "other"),), (None,)], equality_ids=[3]))
    table = load_table(str(builder.location))
    assert table.convert_equality_deletes().deleted_rows_count == 2
    assert ids_of(table) == [2]


@VERSIONS
def test_files_without_field_ids_are_read_by_name(tmp_path: Path, version: int) -> None:
    mapping = '[{"field-id": 1, "names": ["old"]}, {"field-id": 2, "names": ["data"]}]'
    properties = {"schema.name-mapping.default": mapping}
    table = RacingTable(tmp_path / "t", version=version, properties=properties)
    path = tmp_path / "t" / "data" / "imported.parquet"
    pq.write_table(pa.table({"data": ["a", "b"], "old": pa.array([1, 2], pa.int64())}), path)
    size = path.stat().st_size
    file = DataFile(FileContent.DATA, str(path), "parquet", 0, (), 2, size)  # type: ignore[arg-type]
    table.table.commit(Append((file,)))
    table.keyed("delete", [table.batch((2, None))])
    assert table.convert().deleted_rows_count == 1
    assert ids_of(load_table(str(table.table.location))) == [1]


@VERSIONS
def test_a_file_that_is_listed_twice_is_not_converted(tmp_path: Path, version: int) -> None:
    """Position deletes would delete rows of the newer one too."""
    table = RacingTable(tmp_path / "t", version=version)
    table.append((1, "a"), (2, "b"))
    table.keyed("delete", [table.batch((2, None))])
    table.table.commit(Append(table.data_files()))
    assert table.convert() == ConvertedEqualityDeletes(remaining_equality_delete_files_count=1)
    assert table.rows() == [(1, "a"), (1, "a"), (2, "b")]


@VERSIONS
def test_a_table_of_a_catalog(tmp_path: Path, version: int) -> None:
    """Another process appends between its loading and its commit."""
    catalog = catalog_in(tmp_path, f"sqlite:///{tmp_path}/catalog.db")
    table = create_table(catalog, version=version)
    table.append(rows(1, 2, 3))
    table.delete_keys(rows(2), "id", options={"write.upsert.mode": "equality-deletes"})
    open_table(catalog).append(rows(2, 4))
    assert table.convert_equality_deletes().deleted_rows_count == 1
    assert ids_of(open_table(catalog)) == [1, 2, 3, 4]


@VERSIONS
def test_branches_are_converted_alone(tmp_path: Path, version: int) -> None:
    table = table_of_days(tmp_path, version)
    table.append(rows(9), branch="audit", options={"create-branch": "true"})
    table.convert_equality_deletes(branch="audit")
    assert ids_of(table, branch="audit") == [1, 3, 4, 6, 9]
    assert ids_of(table) == [1, 3, 4, 6]
    assert len(deletes(table, _KEYS)) == 2


# Readers of changes.


@VERSIONS
def test_readers_of_changes_skip_the_commit(tmp_path: Path, version: int) -> None:
    table = table_of_days(tmp_path, version)
    start = table.snapshots()[-1].snapshot_id
    table.convert_equality_deletes()
    table.append(rows(7))
    changes = table.changes(start).to_arrow()
    assert changes.select(["id", "_change_type", "_change_ordinal"]).to_pylist() == [
        {"id": 7, "_change_type": "INSERT", "_change_ordinal": 0}
    ]
    assert table.appends(start).to_arrow()["id"].to_pylist() == [7]


@VERSIONS
def test_net_changes_hold_the_rows_that_equality_deletes_deleted(
    tmp_path: Path, version: int
) -> None:
    table = table_of_days(tmp_path, version)
    table.convert_equality_deletes()
    for before, gone in ((1, [2, 5]), (2, [5]), (3, [])):
        start = table.snapshots()[before].snapshot_id
        changes = table.changes(start, net_changes=True).to_arrow()
        assert sorted(changes["id"].to_pylist()) == gone


@VERSIONS
def test_other_writers_look_for_the_new_deletes(tmp_path: Path, version: int) -> None:
    """They do in snapshots of these operations: `replace` would hide the deletes from them."""
    table = table_of_days(tmp_path, version)
    table.convert_equality_deletes(snapshot_properties={"why": "faster reads"})
    head = table.current_snapshot()
    assert head is not None
    assert head.operation == "overwrite"
    assert head.summary["why"] == "faster reads"
    assert not head.may_change_rows


def test_the_mark_of_the_commit_is_reserved(tmp_path: Path) -> None:
    table = table_of_days(tmp_path, 2)
    mark = {OWN_OPERATION: "convert-equality-deletes"}
    with pytest.raises(InvalidOptionError, match="is reserved"):
        table.append(rows(8), snapshot_properties=mark)
    assert ids_of(load_table(table.location())) == [1, 3, 4, 6]


# Arguments and failures.


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    table = table_of_days(tmp_path, 2)
    with pytest.raises(InvalidOptionError, match="did you mean 'split-size'"):
        table.convert_equality_deletes(options={"splitsize": "1"})
    with pytest.raises(InvalidFilterError, match="expected the condition as SQL text"):
        table.convert_equality_deletes(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidFilterError, match="dya"):
        table.convert_equality_deletes("dya = 1")
    with pytest.raises(InvalidOptionError, match="no branch 'audti'"):
        table.convert_equality_deletes(branch="audti")
    assert len(load_table(table.location()).snapshots()) == 4


@VERSIONS
def test_a_failed_conversion_leaves_no_files(tmp_path: Path, version: int) -> None:
    """The first task has written its files when the second one fails."""
    table = table_of_days(tmp_path, version)
    before = set(Path(table.location()).rglob("*"))
    damaged = next(
        f for f in live_files(table.location()) if f.content is FileContent.DATA and f.partition[0]
    )
    Path(damaged.file_path).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptFileError):
        table.convert_equality_deletes(options={"split-size": "1"})
    found = {path for path in set(Path(table.location()).rglob("*")) - before if path.is_file()}
    assert not found
    assert len(load_table(table.location()).snapshots()) == 4


# Tables of other writers.


def _with_equality_deletes() -> list[dict[str, Any]]:
    return [t for t in exact_tables() if any("equality" in name for name in t["features"])]


@VERSIONS
@pytest.mark.parametrize("known", _with_equality_deletes(), ids=lambda known: known["id"])
def test_tables_of_the_corpus(tmp_path: Path, known: dict[str, Any], version: int) -> None:
    table = copied_table(known, tmp_path / "t")
    before = sorted(map(str, table.scan().to_arrow().to_pylist()))
    assert len(before) == known["expected"]["rows"]
    done = table.upgrade(version).convert_equality_deletes()
    assert done.converted_equality_delete_files_count > 0
    assert done.remaining_equality_delete_files_count == 0
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == before


def _table_of_two_specs(location: Path, version: int) -> TableBuilder:
    """Rows 1, 2 and 3 in files without partitions and of two partitions; row 2 is deleted."""
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "part", INT)))
    by_part = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "part"),))
    builder = TableBuilder(location, schema, format_version=version)
    builder.commit(builder.data_file([(1, 1), (2, 1)]))
    builder.evolve(spec=by_part)
    builder.commit(
        builder.data_file([(1, 1), (2, 1)], partition=(1,)),
        builder.data_file([(2, 2), (3, 2)], partition=(2,)),
    )
    builder.commit(builder.equality_deletes(["id"], [(2,)], spec_id=0))
    return builder
