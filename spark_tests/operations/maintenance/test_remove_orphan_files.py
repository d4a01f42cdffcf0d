"""Old files that nothing refers to are removed, and never any other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from built.api_tables import ids_of, new_table, rows
from built.damage import drop_block
from built.schemas import optional
from orphans import aged, change, files_below, plant, removed, root_of, rows_of_all

from icebergds import PartitionField, PartitionSpec, Schema, Table, load_catalog, load_table
from icebergds.errors import CorruptFileError, InvalidOptionError, MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, LONG
from icebergds.spec.updates.table_updates import (
    RemoveSnapshots,
    SetPartitionStatistics,
    SetSnapshotRef,
    SetStatistics,
)

UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two snapshots, with files that are old."""
    made = new_table(tmp_path)
    made.append(rows(1, 2))
    made.append(rows(3))
    return aged(made)


# What is found.


def test_old_files_that_nothing_refers_to_are_deleted(table: Table) -> None:
    root = root_of(table)
    planted = {
        plant(root),
        plant(root, "data/day=1/x.parquet"),
        plant(root, "metadata/snap-1.avro"),
        plant(root, "top"),
    }
    assert removed(table) == planted
    assert ids_of(table) == [1, 2, 3]
    assert removed(table) == set()


def test_the_result_says_what_was_found(table: Table) -> None:
    planted = plant(root_of(table))
    found = table.remove_orphan_files()
    assert found.orphan_file_locations == (planted,)
    assert (found.orphan_files_count, found.orphan_bytes_count) == (1, 6)
    assert found.deleted_files_count == 1
    assert found.examined_files_count == len(files_below(root_of(table))) + 1
    assert not found.dry_run


def test_a_dry_run_finds_the_same_and_deletes_nothing(table: Table) -> None:
    planted = {plant(root_of(table)), plant(root_of(table), "metadata/x.avro")}
    assert removed(table, dry_run=True) == planted
    assert removed(table) == planted


def test_a_size_that_is_not_known_is_not_shown(table: Table) -> None:
    planted = plant(root_of(table))
    found = table.remove_orphan_files(file_list=[planted], dry_run=True)
    assert str(found).startswith("OrphanFiles: 1 orphan among 1 file, nothing deleted (dry run)")
    assert "1 orphan (6 bytes) among" in str(table.remove_orphan_files(dry_run=True))


def test_young_files_are_kept(table: Table) -> None:
    plant(root_of(table), "data/young.parquet", days=2.9)
    old = plant(root_of(table), "data/old.parquet", days=3.1)
    assert removed(table) == {old}


@pytest.mark.parametrize("form", ["datetime", "zoned", "milliseconds", "text", "age"])
def test_the_age_can_be_chosen(table: Table, form: str) -> None:
    plant(root_of(table), "data/young.parquet", days=1.4)
    old = plant(root_of(table), "data/old.parquet", days=1.6)
    moment = datetime.now(UTC) - timedelta(days=1.5)
    given: dict[str, Any] = {
        "datetime": moment.astimezone().replace(tzinfo=None),
        "zoned": moment,
        "milliseconds": int(moment.timestamp() * 1000),
        "text": moment.isoformat(),
        "age": timedelta(days=1.5),
    }
    assert removed(table, older_than=given[form]) == {old}


def test_an_age_of_a_day_is_enough(table: Table) -> None:
    plant(root_of(table), "data/young.parquet", days=0.9)
    old = plant(root_of(table), "data/old.parquet", days=1.1)
    assert removed(table, older_than=timedelta(days=1)) == {old}


def test_less_than_a_day_is_refused(table: Table) -> None:
    planted = plant(root_of(table))
    with pytest.raises(InvalidOptionError, match="less than 24 hours ago"):
        table.remove_orphan_files(datetime.now() - timedelta(hours=23))
    assert Path(planted).exists()


def test_hidden_files_are_left_alone(table: Table) -> None:
    for name in ("data/_SUCCESS", "data/.x.parquet.crc", "_spark/x", "data/.staging/a/b", "_x=1/f"):
        plant(root_of(table), name)
    assert removed(table) == set()


def test_directories_of_partitions_are_not_hidden(tmp_path: Path) -> None:
    schema = Schema((optional(1, "id", LONG), optional(2, "_day", INT), optional(3, ".h", INT)))
    lake = load_catalog("lake", warehouse=str(tmp_path))
    fields = (
        PartitionField((2,), 1000, IdentityTransform(), "_day"),
        PartitionField((3,), 1001, IdentityTransform(), ".h o"),
    )
    table = lake.create_table("db.t", schema, partition_spec=PartitionSpec(0, fields))
    table.append(
        pa.table({"id": [1], "_day": pa.array([1], pa.int32()), ".h": [2]}).cast(
            pa.schema([("id", pa.int64()), ("_day", pa.int32()), (".h", pa.int32())])
        )
    )
    aged(table)
    root = root_of(table)
    planted = {
        plant(root, "data/_day=1/.h+o=2/orphan.parquet"),
        plant(root, "data/_day=1/.h o=2/orphan.parquet"),
        plant(root, "data/_day=/x"),
    }
    plant(root, "data/_days=1/x")
    plant(root, "data/_day=1/_temporary/x")
    plant(root, "data/_day=1/_y")
    assert removed(table) == planted
    assert ids_of(table) == [1]


def test_temporary_files_of_writes_are_found_but_no_lock_files(table: Table) -> None:
    root = root_of(table)
    planted = {
        plant(root, f"metadata/.{UUID}.tmp"),
        plant(root, f"metadata/.{UUID}.probe"),
        plant(root, f"metadata/a/.{UUID}.tmp/v9.avro"),
    }
    plant(root, f"metadata/.{UUID}.other")
    plant(root, "metadata/.v4.metadata.json.claim")
    assert removed(table) == planted


# What is referenced.


def test_files_of_all_snapshots_branches_and_tags_are_kept(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=3)
    table.append(rows(1, 2, 3))
    first = table.current_snapshot()
    assert first is not None
    change(table, SetSnapshotRef("old", SnapshotRef(first.snapshot_id, RefType.TAG)))
    table.append(rows(9), branch="side", options={"create-branch": "true"})
    table.append(rows(8), options={"wap.id": "staged"})
    table.overwrite(rows(4, 5))
    table.upsert(rows(5), ["id"])
    table.delete_keys(rows(4), ["id"])
    aged(table)
    before = rows_of_all(table)
    planted = plant(root_of(table))
    assert removed(table) == {planted}
    assert rows_of_all(table.refresh()) == before
    assert ids_of(table, tag="old") == [1, 2, 3]
    assert ids_of(table, branch="side") == [1, 2, 3, 9]


def test_files_of_expired_snapshots_are_orphans(table: Table) -> None:
    table.overwrite(rows(7))
    aged(table)
    current, expired = table.current_snapshot(), list(table.snapshots())[:-1]
    assert current is not None
    change(table, RemoveSnapshots(tuple(s.snapshot_id for s in expired)))
    found = removed(table)
    assert {s.manifest_list for s in expired} <= found
    assert len([path for path in found if path.endswith(".parquet")]) == 2
    assert ids_of(table.refresh()) == [7]


def test_statistics_are_kept_while_metadata_names_them(table: Table) -> None:
    root, snapshot = root_of(table), table.current_snapshot()
    assert snapshot is not None
    kept = [plant(root, "metadata/a.stats"), plant(root, "metadata/p.parquet")]
    change(
        table,
        SetStatistics(StatisticsFile(snapshot.snapshot_id, kept[0], 6, 4)),
        SetPartitionStatistics(PartitionStatisticsFile(snapshot.snapshot_id, kept[1], 6)),
    )
    orphan = plant(root, "metadata/b.stats")
    assert removed(table) == {orphan}


def test_metadata_files_are_kept_as_long_as_the_log_names_them(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write__metadata__previous_versions_max": "2"})
    for number in range(5):
        table.append(rows(number))
    aged(table)
    names = {Path(path).name for path in removed(table)}
    assert names == {f"v{n}.metadata.json" for n in (1, 2, 3)}
    assert (root_of(table) / "metadata/version-hint.text").exists()
    assert ids_of(load_table(table.location())) == list(range(5))


def test_what_is_committed_after_the_listing_is_kept(table: Table) -> None:
    staged = plant(root_of(table), "metadata/new.stats")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    statistics = StatisticsFile(snapshot.snapshot_id, staged, 6, 4)
    listing = FileIO.list_recursively

    def list_then_commit(self: FileIO, location: str) -> Iterator[Any]:
        yield from listing(self, location)
        change(load_table(table.location()), SetStatistics(statistics))

    with mock.patch.object(FileIO, "list_recursively", list_then_commit):
        assert removed(table) == set()


def test_a_damaged_manifest_stops_everything(table: Table) -> None:
    planted = plant(root_of(table))
    manifest = next(p for p in (root_of(table) / "metadata").glob("*-m*.avro"))
    drop_block(manifest)
    with pytest.raises(CorruptFileError):
        table.remove_orphan_files()
    assert Path(planted).exists()


def test_a_missing_manifest_stops_everything(table: Table) -> None:
    planted = plant(root_of(table))
    next((root_of(table) / "metadata").glob("*-m*.avro")).unlink()
    with pytest.raises(MissingFileError):
        table.remove_orphan_files()
    assert Path(planted).exists()


# Locations that differ and mean the same file.


def test_paths_through_symbolic_links_are_the_files_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    table = new_table(tmp_path / "alias")
    table.append(rows(1))
    aged(table)
    planted = Path(plant(root_of(table)))
    real = str(tmp_path / "real" / "db" / "t")
    found = table.remove_orphan_files(location=real)
    assert found.orphan_file_locations == (f"{real}/data/{planted.name}",)
    assert ids_of(table) == [1]


def test_links_lead_out_of_the_table_for_nobody(table: Table, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    precious = plant(elsewhere, "precious")
    (root_of(table) / "data/link").symlink_to(elsewhere)
    assert removed(table) == set()
    assert Path(precious).exists()
    given = [f"{table.location()}/data/link/precious"]
    assert table.remove_orphan_files(file_list=given).orphan_files_count == 0
    assert Path(precious).exists()


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}/", "file:///{}", "{}/./", "{}//"])
def test_the_table_is_found_by_any_form_of_its_location(table: Table, form: str) -> None:
    planted = plant(root_of(table))
    found = table.remove_orphan_files(location=form.format(table.location()), dry_run=True)
    assert [os.path.realpath(path) for path in found.orphan_file_locations] == [
        os.path.realpath(planted)
    ]


@pytest.mark.parametrize("name", ["p%20q", "a b", "x#1?y=z", "100%", "über 東京"])
def test_names_are_taken_literally(tmp_path: Path, name: str) -> None:
    lake = load_catalog("lake", warehouse=str(tmp_path / name))
    table = lake.create_table(
        "db.t", pa.schema([("id", pa.int64()), ("n", pa.string())]), partition_spec="n"
    )
    table.append(pa.table({"id": [1], "n": [name]}))
    aged(table)
    planted = plant(root_of(table), f"data/n={name}/orphan")
    assert removed(table) == {planted}
    assert ids_of(table) == [1]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_moved_table_is_compared_where_it_is_now(table: Table, tmp_path: Path, end: str) -> None:
    old, new = table.location(), str(tmp_path / "moved")
    shutil.move(old, new)
    moved = load_table(new, location_map={f"{old}{end}": f"{new}{end}"})
    planted = plant(Path(new))
    assert moved.remove_orphan_files().orphan_file_locations == (planted,)
    assert ids_of(moved) == [1, 2, 3]


def test_what_is_listed_is_not_mapped_again(table: Table, tmp_path: Path) -> None:
    old = table.location()
    shutil.move(old, tmp_path / "away")
    shutil.move(tmp_path / "away", f"{old}/inner")
    moved = load_table(old, location_map={old: f"{old}/inner"})
    planted = plant(Path(old) / "inner")
    assert moved.remove_orphan_files().orphan_file_locations == (planted,)
    assert not Path(planted).exists()
    assert ids_of(moved) == [1, 2, 3]


def test_a_map_of_single_files_is_followed(table: Table) -> None:
    path = next((root_of(table) / "data").iterdir())
    new = path.with_name("renamed.parquet")
    path.rename(new)
    mapped = load_table(table.location(), location_map={str(path): str(new)})
    assert ids_of(mapped) == [1, 2, 3]
    assert mapped.remove_orphan_files().orphan_files_count == 0
    assert ids_of(mapped) == [1, 2, 3]
