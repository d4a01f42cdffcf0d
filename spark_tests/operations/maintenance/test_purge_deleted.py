"""Deleted rows go for good: the bytes of the table's folder hold no value of theirs any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from built.delta_tables import BY_DATA, DeltaTable
from commit.interleaving import InterleavedOperations
from stored_bytes import files_with

from icebergds import (
    InvalidFilterError,
    InvalidOptionError,
    MaintenancePolicy,
    Table,
    ValidationError,
    load_table,
)
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.operations.maintenance.maintain import MaintenanceRequest, maintain
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.manifest import FileContent
from icebergds.spec.updates.table_updates import SetProperties

SECRET = "erase-me-1234"
_PLAIN = {
    "write.parquet.compression-codec": "uncompressed",
    "write.delete.parquet.compression-codec": "uncompressed",
    "commit.manifest-merge.enabled": "false",
}


def secret_table(location: Path, version: int = 2) -> DeltaTable:
    """Two files: the row (7, SECRET) is in one of them, with the largest value of its column."""
    table = DeltaTable(location, version=version, properties=_PLAIN)
    table.append((6, "a"), (7, SECRET), (8, "b"))
    table.append((20, "x"))
    return table


def by_position(table: DeltaTable) -> None:
    table.change_where(lambda row: row["data"] == SECRET)


def by_position_for_partition(table: DeltaTable) -> None:
    table.change_where(lambda row: row["data"] == SECRET, granularity="partition")


def by_key(table: DeltaTable) -> None:
    table.keyed("delete", [table.batch((7, SECRET))], keys=(1, 2))


def by_update(table: DeltaTable) -> None:
    table.change_where(lambda row: row["data"] == SECRET, lambda row: {**row, "data": "b"})


def api(table: DeltaTable) -> Table:
    return load_table(table.table.metadata.location)


def held_by(location: Path) -> set[str]:
    return files_with(location, SECRET)


@pytest.mark.parametrize(
    ("version", "delete"),
    [
        (2, by_position),
        (2, by_position_for_partition),
        (3, by_position),
        (2, by_key),
        (3, by_key),
        (3, by_update),
    ],
)
def test_no_file_of_the_folder_holds_a_deleted_row(
    tmp_path: Path, version: int, delete: Callable[[DeltaTable], None]
) -> None:
    table = secret_table(tmp_path, version)
    delete(table)
    before = table.rows()
    assert ".parquet" in held_by(tmp_path)
    assert not api(table).find_stored_rows(f"data = '{SECRET}'").is_gone
    report = api(table).maintain(purge_deleted=True)
    assert report.is_purged, report
    assert table.rows() == before
    assert held_by(tmp_path) == set()
    assert api(table).find_stored_rows(f"data = '{SECRET}'").is_gone


def test_without_it_maintenance_leaves_few_deleted_rows_in_their_files(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, properties=_PLAIN)
    table.append((7, SECRET), *((i, "a") for i in range(10, 20)))
    by_position(table)
    api(table).maintain(expire_older_than=4_000_000_000_000, retain_last=1)
    assert ".parquet" in held_by(tmp_path)
    assert api(table).maintain(purge_deleted=True).is_purged
    assert held_by(tmp_path) == set()


def test_bounds_of_removed_files_are_in_no_manifest(tmp_path: Path) -> None:
    """A delete that drops whole files, as copy-on-write does, leaves nothing to rewrite."""
    table = DeltaTable(tmp_path, version=2, spec=BY_DATA, properties=_PLAIN)
    table.append((7, SECRET))
    table.append((8, "a"))
    api(table).delete(f"data = '{SECRET}'")
    report = api(table).maintain(purge_deleted=True)
    assert report.is_purged, report
    assert table.rows() == [(8, "a")]
    assert held_by(tmp_path) == set()


def test_a_table_without_rows_is_purged(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    api(table).delete("true")
    assert api(table).maintain(purge_deleted=True).is_purged
    assert held_by(tmp_path) == set()
    assert api(table).scan().to_arrow().num_rows == 0


def test_tags_and_branches_that_hold_rows_are_named_and_kept(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    snapshot_id = api(table).current_snapshot().snapshot_id
    with api(table).manage_snapshots() as manage:
        manage.create_tag("v1", snapshot_id)
        manage.create_branch("audit", snapshot_id)
    by_position(table)
    report = api(table).maintain(purge_deleted=True)
    assert not report.is_purged
    (kept,) = report.kept
    assert kept.snapshot_id == snapshot_id
    assert set(kept.refs) == {"tag 'v1'", "branch 'audit'"}
    # Both files are small: they were rewritten together.
    assert (kept.data_files, kept.rows) == (2, 4)
    assert "remove_tag('v1')" in kept.advice
    assert "maintain(branch='audit', purge_deleted=True)" in kept.advice
    assert "keep 2 data files (4 rows) that may hold deleted rows" in str(kept)
    assert " ".join(str(report).split()).count("that may hold deleted rows") == 1
    assert set(api(table).refs()) == {"main", "v1", "audit"}
    (file,) = api(table).find_stored_rows("id = 7").files
    assert (file.rows, file.snapshot_ids) == (1, (snapshot_id,))
    assert set(file.refs) == set(kept.refs)
    with api(table).manage_snapshots() as manage:
        manage.remove_tag("v1").remove_branch("audit")
    assert api(table).maintain(purge_deleted=True).is_purged
    assert held_by(tmp_path) == set()


def test_a_branch_is_purged_by_itself(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    with api(table).manage_snapshots() as manage:
        manage.create_branch("audit", api(table).current_snapshot().snapshot_id)
    api(table).delete("true", branch="audit")
    report = api(table).maintain(branch="audit", purge_deleted=True)
    (kept,) = report.kept
    assert kept.refs == ("branch 'main'",)
    assert len(table.rows()) == 4


def test_snapshots_that_a_branch_keeps_by_itself_are_named(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    with api(table).manage_snapshots() as manage:
        manage.set_min_snapshots_to_keep("main", 10)
    by_position(table)
    report = api(table).maintain(purge_deleted=True)
    assert not report.is_purged
    assert {each.refs for each in report.kept} == {()}
    assert "min-snapshots-to-keep" in report.kept[0].advice
    assert "expire_snapshots(snapshot_ids=" in report.kept[0].advice


def test_a_dry_run_names_what_would_be_kept(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    with api(table).manage_snapshots() as manage:
        manage.create_tag("v1", api(table).current_snapshot().snapshot_id)
    by_position(table)
    before = table.table.metadata
    report = api(table).maintain(purge_deleted=True, dry_run=True)
    assert report.steps[0].action == "rewrite_data_files"
    assert [each.refs for each in report.kept] == [("tag 'v1'",)]
    assert not report.is_purged
    assert table.table.metadata == before


def test_a_budget_leaves_the_rest_and_says_so(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    by_position(table)
    report = api(table).maintain(purge_deleted=True, max_bytes=1)
    assert not report.is_purged
    assert "branch 'main' has 1 delete file" in str(report)


def test_what_others_delete_meanwhile_goes_too_or_is_named(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    by_position(table)
    target = load_for_write(TableAddress(table.table.metadata.location))
    others = [lambda at=at: table.append((100 + at, SECRET)) for at in range(3)]
    others += [lambda: by_position(table), lambda: api(table).delete("id = 20")]
    operations = InterleavedOperations(target.operations, others)
    request = MaintenanceRequest(
        MaintenancePolicy(purge_deleted=True),
        WriteOptions.of(target.address),
        RewriteOptions.of({"delete-file-threshold": "1"}, target.metadata.properties),
        LocalRunner(),
    )
    report, _ = maintain(replace(target, operations=operations), request)
    assert not report.failed
    assert report.is_purged == (held_by(tmp_path) == set())
    assert table.rows() == [(6, "a"), (8, "b")]
    assert api(table).maintain(purge_deleted=True).is_purged
    assert held_by(tmp_path) == set()


def test_files_that_no_snapshot_refers_to_are_named_however_young(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    by_position(table)
    stray = tmp_path / "data" / "stray.parquet"
    stray.write_bytes(SECRET.encode())
    report = api(table).maintain(purge_deleted=True)
    assert not report.is_purged
    assert report.unreferenced is not None
    assert [Path(p).name for p in report.unreferenced.orphan_file_locations] == ["stray.parquet"]
    assert stray.exists()
    found = api(table).find_stored_rows("id = 7")
    assert (found.files, found.is_gone) == ((), False)
    assert "1 file that no snapshot refers to" in repr(found)
    stray.unlink()
    assert api(table).find_stored_rows("id = 7").is_gone


def test_rows_are_found_in_data_files_and_equality_deletes_of_all_snapshots(
    tmp_path: Path,
) -> None:
    table = secret_table(tmp_path)
    by_key(table)
    found = api(table).find_stored_rows(f"data = '{SECRET}' and id = 7")
    kinds = {file.content: file for file in found.files}
    assert kinds[FileContent.DATA].rows == kinds[FileContent.EQUALITY_DELETES].rows == 1
    assert kinds[FileContent.DATA].refs == ("branch 'main'",)
    assert len(kinds[FileContent.DATA].snapshot_ids) == 3
    assert len(kinds[FileContent.EQUALITY_DELETES].snapshot_ids) == 1
    # A row that is not deleted, and one that never was.
    (file,) = api(table).find_stored_rows("id = 20").files
    assert (file.content, file.rows) == (FileContent.DATA, 1)
    assert api(table).find_stored_rows("id = 9").is_gone


def test_keys_without_a_column_of_the_condition_are_not_known(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    table.keyed("delete", [table.batch((7, SECRET))], keys=(1,))
    files = api(table).find_stored_rows(f"data = '{SECRET}'").files
    assert {(file.content, file.rows) for file in files} == {
        (FileContent.DATA, 1),
        (FileContent.EQUALITY_DELETES, None),
    }


def test_rows_are_found_by_columns_that_were_dropped(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    with api(table).update_schema() as update:
        update.delete_column("data")
    (file,) = api(table).find_stored_rows(f"data = '{SECRET}'").files
    assert file.rows == 1
    with pytest.raises(InvalidFilterError, match="nope"):
        api(table).find_stored_rows("nope = 1")


def test_a_column_that_was_added_again_is_another_one(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    for _ in range(2):
        with api(table).update_schema() as update:
            update.delete_column("data")
        with api(table).update_schema() as update:
            update.add_column("data", "string")
    (file,) = api(table).find_stored_rows(f"data = '{SECRET}'").files
    assert file.rows == 1


def test_files_beside_the_directory_are_named(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    properties = {**_PLAIN, "write.data.path": str(elsewhere)}
    table = DeltaTable(tmp_path / "t", version=2, properties=properties)
    table.append((7, SECRET))
    assert api(table).find_stored_rows("id = 8").is_gone
    (elsewhere / "stray.parquet").write_bytes(b"")
    found = api(table).find_stored_rows("id = 8").unreferenced.orphan_file_locations
    assert [Path(path).name for path in found] == ["stray.parquet"]


def test_bounds_and_partitions_spare_reading_files(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, spec=BY_DATA, properties=_PLAIN)
    table.append((1, "a"))
    table.append((7, "b"))
    for path in (tmp_path / "data").rglob("*.parquet"):
        if "data=a" in str(path):
            path.write_bytes(b"not read")
    assert len(api(table).find_stored_rows("id = 7").files) == 1
    assert len(api(table).find_stored_rows("data = 'b'").files) == 1


def test_a_purge_needs_its_actions_and_its_files(tmp_path: Path) -> None:
    table = secret_table(tmp_path)
    with pytest.raises(InvalidOptionError, match="needs expire_snapshots"):
        api(table).maintain(purge_deleted=True, expire_snapshots=False)
    with pytest.raises(InvalidOptionError, match="leave out retain_last"):
        api(table).maintain(purge_deleted=True, retain_last=3)
    table.table.change(SetProperties({"gc.enabled": "false"}))
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        api(table).maintain(purge_deleted=True)
