"""All files of a table that was dropped are deleted by its last metadata file."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.api_tables import new_table, rows
from built.commit_tables import SCHEMA, open_table
from built.tables import TableBuilder

from icebergds import DeletedReachableFiles, Table, delete_reachable_files, load_catalog
from icebergds.errors import (
    CorruptFileError,
    InvalidOptionError,
    NoSuchTableError,
    ValidationError,
)
from icebergds.spec.statistics import StatisticsFile
from icebergds.spec.updates.table_updates import SetStatistics


def _files(location: str | Path) -> set[str]:
    return {str(path) for path in Path(location).rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of three snapshots, which are at one branch and aside."""
    table = new_table(tmp_path, properties={"write__metadata__previous_versions_max": "2"})
    table.append(rows(1))
    table.overwrite(rows(2))
    table.append(rows(3), options={"wap.id": "staged"})
    return table


def test_a_dropped_table_leaves_nothing(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/c.db"
    lake = load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    table = lake.create_table(
        "db.t", SCHEMA, properties={"write.metadata.previous-versions-max": "2"}
    )
    for number in range(4):
        table.append(rows(number).select(["id", "day"]))
    lake.drop_table("db.t")
    before = _files(table.location())
    deleted = delete_reachable_files(table.metadata_location)
    assert _files(table.location()) == set()
    assert deleted.deleted_data_files_count == 4
    assert deleted.deleted_manifests_count == 4
    assert deleted.deleted_manifest_lists_count == 4
    # Also metadata files that only logs of earlier ones list.
    assert deleted.deleted_other_files_count == 5
    assert len(before) == 4 + 4 + 4 + 5


def test_files_are_counted_by_kind(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    file = builder.data_file([(1, 0), (2, 0)])
    builder.commit(file)
    by_position = builder.position_deletes({file.file_path: [0]})
    builder.commit(by_position, builder.equality_deletes(["id"], [(2,)]), operation="delete")
    statistics = tmp_path / "t" / "metadata" / "s.puffin"
    statistics.write_bytes(b"x")
    open_table(builder.location).change(SetStatistics(StatisticsFile(1001, str(statistics), 1, 1)))
    last = open_table(builder.location).state.metadata_location
    assert delete_reachable_files(last) == DeletedReachableFiles(
        deleted_data_files_count=1,
        deleted_position_delete_files_count=1,
        deleted_equality_delete_files_count=1,
        deleted_manifests_count=2,
        deleted_manifest_lists_count=2,
        # Statistics, the version hint, and two metadata files: the builder keeps no log.
        deleted_other_files_count=4,
    )
    assert not Path(last).exists()


def test_files_of_all_snapshots_are_deleted(table: Table) -> None:
    other = Path(table.location()) / "data" / "notes.txt"
    other.write_text("mine")
    delete_reachable_files(table.metadata_location)
    assert _files(table.location()) == {str(other)}


def test_a_table_that_shares_files_is_left(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"gc__enabled": "false"})
    table.append(rows(1))
    before = _files(table.location())
    with pytest.raises(ValidationError, match=r"gc\.enabled = false"):
        delete_reachable_files(table.metadata_location)
    assert _files(table.location()) == before


def test_a_damaged_manifest_stops_it_before_anything_is_deleted(table: Table) -> None:
    path = next(Path(table.location()).rglob("*-m0.avro"))
    path.write_bytes(path.read_bytes()[:-9])
    before = _files(table.location())
    with pytest.raises(CorruptFileError, match=path.name):
        delete_reachable_files(table.metadata_location)
    assert _files(table.location()) == before


def test_what_leads_to_a_file_stays_until_the_file_is_deleted(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    stuck, other = builder.data_file([(1, 0)]), builder.data_file([(2, 0)])
    builder.commit(stuck, other)
    Path(stuck.file_path).unlink()
    Path(stuck.file_path).mkdir()
    first = delete_reachable_files(builder.metadata_location)
    assert first == DeletedReachableFiles(deleted_data_files_count=1, failed_files_count=1)
    assert Path(builder.metadata_location).exists()
    Path(stuck.file_path).rmdir()
    second = delete_reachable_files(builder.metadata_location)
    assert second.failed_files_count == 0
    assert not Path(builder.metadata_location).exists()


def test_it_goes_on_where_it_was_interrupted(table: Table) -> None:
    location = Path(table.location())
    done = [*location.rglob("*.parquet"), *location.rglob("*-m*.avro")]
    for path in [*done, next(location.rglob("snap-*.avro"))]:
        path.unlink()
    delete_reachable_files(table.metadata_location)
    assert _files(location) == set()


def test_metadata_logs_that_lead_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table.append(rows(number))
    metadata = Path(table.location()) / "metadata"
    (metadata / "v1.metadata.json").write_bytes(Path(table.metadata_location).read_bytes())
    delete_reachable_files(table.metadata_location)
    assert _files(table.location()) == set()


def test_only_a_metadata_file_is_accepted(table: Table) -> None:
    with pytest.raises(InvalidOptionError, match="expected a metadata file"):
        delete_reachable_files(table.location())
    with pytest.raises(NoSuchTableError):
        delete_reachable_files(f"{table.location()}/metadata/v99.metadata.json")
    with pytest.raises(InvalidOptionError, match="warehouse is a property of a catalog"):
        delete_reachable_files(table.metadata_location, properties={"warehouse": "/tmp"})
