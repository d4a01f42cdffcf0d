"""What a removal of orphan files refuses, leaves to others, and survives."""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest
from built.api_tables import (
    DAYS,
    catalog_in,
    create_table,
    ids_of,
    new_table,
    open_table,
    rows,
)
from effort import IS_NIGHTLY, examples
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import HealthCheck, given, strategies as st
from orphans import DAY_S, age, aged, change, files_below, plant, removed, root_of, rows_of_all

from icebergds import Table, load_catalog, load_table
from icebergds.errors import (
    IcebergError,
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.io import fileio, recursive_listing
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files import orphan_files
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import RemoveSnapshots, SetProperties, SetSnapshotRef
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import DISK, faulty_client, faulty_system

if TYPE_CHECKING:
    from s3_server import S3Server

MS = 1000


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two snapshots, with files that are old."""
    made = new_table(tmp_path)
    made.append(rows(1, 2))
    made.append(rows(3))
    return aged(made)


def data_file(table: Table) -> str:
    return str(next((root_of(table) / "data").iterdir()))


def long_ago(*paths: str) -> pa.Table:
    """A list of files, modified in 1970."""
    times = pa.array([datetime(1970, 1, 2, tzinfo=UTC)] * len(paths), pa.timestamp("us", "UTC"))
    return pa.table({"file_path": list(paths), "last_modified": times})


# What is refused.


def test_a_table_that_shares_its_files_is_refused(table: Table) -> None:
    planted = plant(root_of(table))
    change(table, SetProperties({"gc.enabled": "false"}))
    with pytest.raises(ValidationError, match=r"gc\.enabled = false"):
        table.remove_orphan_files()
    assert Path(planted).exists()


def test_a_table_is_asked_again_whether_it_shares_its_files(table: Table) -> None:
    planted = plant(root_of(table))
    listing = FileIO.list_recursively

    def list_then_change(self: FileIO, location: str) -> Iterator[Any]:
        yield from listing(self, location)
        change(load_table(table.location()), SetProperties({"gc.enabled": "false"}))

    with (
        mock.patch.object(FileIO, "list_recursively", list_then_change),
        pytest.raises(ValidationError, match=r"gc\.enabled"),
    ):
        table.remove_orphan_files()
    assert Path(planted).exists()


def test_a_metadata_file_cannot_be_cleaned(table: Table) -> None:
    with pytest.raises(InvalidOptionError, match="metadata file"):
        load_table(table.metadata_location).remove_orphan_files()


def test_a_table_of_a_catalog_is_refused_by_its_location(tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path, f"sqlite:///{tmp_path}/lake.sqlite")
    table = create_table(catalog)
    table.append(rows(1))
    aged(table)
    planted = plant(root_of(table))
    with pytest.raises(UnsupportedFeatureError, match="belongs to a catalog"):
        load_table(table.location()).remove_orphan_files()
    assert Path(planted).exists()
    assert removed(open_table(catalog)) == {planted}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"older_than": "2 days"}, r"'2 days': expected an age, such as timedelta\(days=7\)"),
        ({"older_than": "2020-01-01"}, "has no time zone; give one, such as the Z in [^']*$"),
        ({"older_than": 1_790_000_000}, "a number means milliseconds since 1970.*timedelta"),
        ({"older_than": 1.5}, "expected an age"),
        ({"location": "/nope"}, "location '/nope' does not exist; give one of the table's direct"),
        ({"location": 1}, "location = 1"),
        ({"dry_run": "yes"}, "expected True or False"),
        ({"max_concurrent_deletes": 0}, "above 0"),
        ({"file_list": "s3://b/f"}, "a list of locations"),
        ({"file_list": [1]}, "file_list"),
        ({"file_list": pa.table({"path": ["x"]})}, "file_path"),
        ({"file_list": pa.table({"file_path": ["x"], "last_modified": [1]})}, "timestamp"),
        ({"equal_schemes": "s3"}, "equal_schemes"),
        ({"prefix_mismatch_mode": "none"}, "error, ignore, delete"),
        ({"options": {"other-table": "keep"}}, "did you mean 'other-tables'"),
        ({"options": {"other-tables": "skip"}}, "error, keep, delete"),
    ],
)
def test_wrong_arguments_are_named(table: Table, arguments: Any, message: str) -> None:
    planted = plant(root_of(table))
    with pytest.raises(InvalidOptionError, match=message):
        table.remove_orphan_files(**arguments)
    assert Path(planted).exists()


def test_a_directory_above_the_table_is_refused(table: Table, tmp_path: Path) -> None:
    precious = plant(tmp_path, "precious")
    for location in (tmp_path, tmp_path / "db", "/"):
        with pytest.raises(InvalidOptionError, match="above the table's directory"):
            table.remove_orphan_files(location=str(location))
    assert Path(precious).exists()


def test_a_directory_with_nothing_of_the_table_is_refused(table: Table, tmp_path: Path) -> None:
    precious = plant(tmp_path, "elsewhere/precious")
    with pytest.raises(InvalidOptionError, match="not one of its directories"):
        table.remove_orphan_files(location=f"{tmp_path}/elsewhere")
    assert Path(precious).exists()


def test_data_outside_of_the_table_is_cleaned_if_it_is_asked_for(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write__data__path": f"{tmp_path}/outside"})
    table.append(rows(1))
    planted = plant(tmp_path / "outside", "x.parquet")
    for path in (tmp_path / "outside").iterdir():
        age(path, 9)
    assert table.remove_orphan_files().orphan_files_count == 0
    found = table.remove_orphan_files(location=f"{tmp_path}/outside")
    assert found.orphan_file_locations == (planted,)
    change(table, SetProperties({"write.data.path": f"{tmp_path}/newer"}))
    # The property leads elsewhere now, but the table still has a file there.
    planted = plant(tmp_path / "outside", "x.parquet")
    found = table.remove_orphan_files(location=f"{tmp_path}/outside")
    assert found.orphan_file_locations == (planted,)
    assert ids_of(table) == [1]


# Other tables.


def test_a_table_inside_of_the_table_is_refused_or_kept(table: Table, tmp_path: Path) -> None:
    nested = new_table(tmp_path / "other")
    nested.append(rows(7))
    aged(nested)
    shutil.copytree(root_of(nested), root_of(table) / "sub/nested")
    planted = plant(root_of(table))
    inside = files_below(root_of(table) / "sub")
    with pytest.raises(ValidationError, match=r"another table in .*sub/nested/"):
        table.remove_orphan_files()
    assert Path(planted).exists()
    assert removed(table, options={"other-tables": "keep"}) == {planted}
    assert removed(table, options={"other-tables": "delete"}) == inside


def test_a_young_table_inside_of_the_table_is_seen(table: Table) -> None:
    plant(root_of(table), "nested/metadata/00000-x.metadata.json", days=0)
    plant(root_of(table), "nested/data/old.parquet")
    with pytest.raises(ValidationError, match="another table"):
        table.remove_orphan_files()


def test_a_table_that_shares_the_location_is_seen(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/lake.sqlite", "warehouse": "file:///x"}
    lake = load_catalog("lake", location_map=None, **catalog)
    lake.create_namespace("db")
    one = lake.create_table("db.one", DAYS, location=f"{tmp_path}/shared")
    one.append(rows(1))
    other = lake.create_table("db.other", DAYS, location=f"{tmp_path}/shared")
    other.append(rows(2))
    aged(one)
    for table, location in ((one, None), (other, None), (one, f"{tmp_path}/shared/data")):
        with pytest.raises(ValidationError, match="a table with the UUID"):
            table.remove_orphan_files(location=location)
    assert (ids_of(one), ids_of(other)) == ([1], [2])
    lake.drop_table("db.other")
    one.remove_orphan_files(options={"other-tables": "delete"})
    assert ids_of(one) == [1]
    assert one.remove_orphan_files().orphan_files_count == 0


@pytest.mark.parametrize("sign", ["first", "newest"])
def test_one_metadata_file_of_another_table_is_enough(tmp_path: Path, sign: str) -> None:
    catalog = catalog_in(tmp_path, f"sqlite:///{tmp_path}/lake.sqlite")
    table = create_table(catalog, write__metadata__previous_versions_max="1")
    for number in range(9):
        table.append(rows(number))
    aged(table)
    other = new_table(tmp_path / "other").metadata_location
    directory = root_of(table) / "metadata"
    name, days = ("00000-x", 50) if sign == "first" else ("00009-x", 7)
    (directory / f"{name}.metadata.json").write_bytes(Path(other).read_bytes())
    age(directory / f"{name}.metadata.json", days)
    # What a failed commit left is no sign.
    (directory / "00000-torn.metadata.json").write_bytes(b"{")
    with pytest.raises(ValidationError, match=f"{name}.metadata.json of a table with the UUID"):
        table.remove_orphan_files()
    (directory / f"{name}.metadata.json").unlink()
    assert table.remove_orphan_files().orphan_files_count > 0
    assert ids_of(table) == list(range(9))


# Schemes and authorities.


def test_a_path_in_another_storage_is_an_error_by_default(table: Table) -> None:
    path = data_file(table)
    wrong = load_table(
        table.location(), location_map={str(Path(path).parent): f"s3://bucket{Path(path).parent}"}
    )
    plant(root_of(table), "data/orphan")
    with pytest.raises(
        ValidationError, match=r"s3://bucket/.* is referenced, file:///.* was found"
    ):
        wrong.remove_orphan_files()
    assert Path(path).exists()
    ignored = wrong.remove_orphan_files(dry_run=True, prefix_mismatch_mode="ignore")
    assert ignored.orphan_file_locations == (f"{root_of(table)}/data/orphan",)
    deleted = wrong.remove_orphan_files(dry_run=True, prefix_mismatch_mode="delete")
    assert deleted.orphan_files_count == 3
    same = wrong.remove_orphan_files(
        dry_run=True, equal_schemes={"s3": "file"}, equal_authorities={"BUCKET": ""}
    )
    assert same.orphan_file_locations == (f"{root_of(table)}/data/orphan",)


# Lists of files.


def test_a_list_of_files_is_compared_instead_of_the_directory(table: Table) -> None:
    old, young = plant(root_of(table)), plant(root_of(table), "data/young", days=1)
    hidden, unlisted = plant(root_of(table), "data/_hidden"), plant(root_of(table), "data/u")
    given = [old, young, hidden, data_file(table), f"{root_of(table)}/data/missing"]
    assert removed(table, file_list=given, dry_run=True) == {old, hidden}
    assert removed(table, file_list=given) == {old, hidden}
    assert Path(unlisted).exists()
    uri = f"file://{plant(root_of(table))}"
    assert table.remove_orphan_files(file_list=[uri]).orphan_file_locations == (uri,)
    assert not Path(old).exists()


def with_views(listed: pa.Table) -> pa.RecordBatchReader:
    """The list as polars has it."""
    paths = listed["file_path"].cast(pa.string_view()).combine_chunks()
    return listed.set_column(0, "file_path", paths).to_reader()


@pytest.mark.parametrize("given_as", [pa.table, pa.Table.to_pandas, with_views])
def test_the_times_of_a_list_count(table: Table, given_as: Callable[[pa.Table], Any]) -> None:
    planted = plant(root_of(table), days=0)
    moment = datetime.now(UTC) - timedelta(hours=1)
    listed = pa.table({"file_path": [planted, data_file(table)], "last_modified": [moment] * 2})
    assert removed(table, file_list=given_as(listed)) == set()
    assert removed(table, older_than=datetime.now(UTC), file_list=given_as(listed)) == {planted}
    assert ids_of(table) == [1, 2, 3]


def test_listed_files_outside_of_the_location_are_ignored(table: Table, tmp_path: Path) -> None:
    outside = plant(tmp_path, "db/t2/x")
    upwards = f"{table.location()}/../t2/x"
    given = long_ago(outside, upwards, f"s3://bucket{root_of(table)}/data/x")
    assert table.remove_orphan_files(file_list=given).orphan_files_count == 0
    assert Path(outside).exists()


# Files that cannot be deleted, or have no time.


def test_failures_of_single_deletes_are_told(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = plant(root_of(table), "data/bad"), plant(root_of(table), "data/good")
    real = os.unlink

    def unlink(path: str) -> None:
        if path == bad:
            raise PermissionError(13, "Permission denied", path)
        real(path)

    with (
        mock.patch("icebergds.io.local_files.os.unlink", unlink),
        caplog.at_level(logging.WARNING, "icebergds"),
    ):
        found = table.remove_orphan_files(max_concurrent_deletes=2)
    assert set(found.orphan_file_locations) == {bad, good}
    assert found.deleted_files_count == 1
    assert found.failed_deletes == {bad: "[Errno 13] Permission denied"}
    assert f"{bad} was not deleted" in caplog.text
    assert not Path(good).exists()


@pytest.fixture
def in_memory() -> Iterator[Table]:
    """A table in a storage that is in memory, with an orphan; all files are 9 days old."""
    root = f"memory://orphans{time.time_ns()}"
    made = create_table({"warehouse": root})
    made.append(rows(1, 2))
    FileIO().write(f"{made.location()}/data/orphan", b"x")
    for path, file in MemoryFileSystem.store.items():
        if path.startswith(root.removeprefix("memory:/")):
            file.created = datetime.now(UTC) - timedelta(days=9)
    yield made
    MemoryFileSystem().rm(root.removeprefix("memory:/"), recursive=True)


def test_object_storage_is_cleaned(in_memory: Table) -> None:
    found = in_memory.remove_orphan_files()
    assert found.orphan_file_locations == (f"{in_memory.location()}/data/orphan",)
    assert not FileIO().exists(f"{in_memory.location()}/data/orphan")
    assert ids_of(in_memory) == [1, 2]


def test_files_without_a_time_are_never_deleted(
    in_memory: Table, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        mock.patch.object(recursive_listing, "_modified_ms", return_value=None),
        caplog.at_level(logging.WARNING, "icebergds"),
    ):
        found = in_memory.remove_orphan_files()
    assert (found.orphan_files_count, found.undated_files_count) == (0, 1)
    assert "does not tell the age of 1 file" in caplog.text
    assert FileIO().exists(f"{in_memory.location()}/data/orphan")


def test_the_clock_of_the_storage_counts_if_it_is_behind(table: Table) -> None:
    planted = plant(root_of(table), days=5)
    real = recursive_listing.list_local

    def behind(days: float) -> Callable[[str], Iterator[recursive_listing.ListedFiles]]:
        def listing(path: str) -> Iterator[recursive_listing.ListedFiles]:
            for part in real(path):
                told = int((time.time() - days * DAY_S) * MS)
                yield recursive_listing.ListedFiles(part.files, told)

        return listing

    with mock.patch.object(fileio, "list_local", behind(2.5)):
        assert removed(table) == set()
    with mock.patch.object(fileio, "list_local", behind(1.5)):
        assert removed(table) == {planted}


def test_a_result_of_many_files_fits_a_screen(table: Table) -> None:
    for number in range(200):
        plant(root_of(table), f"data/{number}-{'x' * 150}")
    found = table.remove_orphan_files(dry_run=True)
    text = repr(found)
    assert "200 orphans (1.2 KB)" in text
    assert "188 more files" in text
    assert max(map(len, text.splitlines())) <= 98
    assert len(text.splitlines()) <= 14
    assert found._repr_html_().count("<tr>") <= 102


def test_few_locations_are_returned_if_that_is_asked_for(table: Table) -> None:
    for number in range(5):
        plant(root_of(table), f"data/{number}")
    with mock.patch.object(orphan_files, "_SAMPLE", 3):
        found = table.remove_orphan_files(options={"stream-results": "true"})
    assert len(found.orphan_file_locations) == 3
    assert found.orphan_files_count == found.deleted_files_count == 5


def test_an_s3_table_is_cleaned(s3: S3Server) -> None:
    catalog = {**s3.properties, "warehouse": f"{s3.new_location()}/ware house%20"}
    table = create_table(catalog)
    table.append(rows(1, 2))
    io, orphan = table.io, f"{table.location()}/data/orphan #1?x"
    io.write(orphan, b"x")
    io.make_directory(f"{table.location()}/data/empty")
    assert table.remove_orphan_files().orphan_files_count == 0
    other = load_table(table.location().replace("s3:", "s3a:"), properties=s3.properties)
    listed = [f.files for f in io.list_recursively(table.location())]
    given = pa.table(
        {
            "file_path": pa.concat_arrays([files["location"] for files in listed]),
            "last_modified": pa.concat_arrays([files["modified_ms"] for files in listed]).cast(
                pa.timestamp("ms", "UTC")
            ),
        }
    )
    soon = datetime.now(UTC) + timedelta(minutes=1)
    found = other.remove_orphan_files(soon, file_list=given)
    assert found.orphan_file_locations == (orphan,)
    assert found.deleted_files_count == 1
    assert not io.exists(orphan)
    assert ids_of(table) == [1, 2]


# Faults, and histories.


def _outcome(table: Table, faults: Faults) -> set[str] | None:
    """The files that a removal could not delete; None if it failed before it began to delete."""
    with faulty_system(faults):
        try:
            return set(table.remove_orphan_files().failed_deletes)
        except IcebergError:
            return None


def test_a_failure_says_that_nothing_was_deleted(table: Table) -> None:
    broken = mock.patch.object(fileio, "list_local", side_effect=DISK)
    with broken, pytest.raises(StorageError, match=f"no file of table {table.name} was deleted"):
        table.remove_orphan_files()


def test_no_fault_ever_deletes_a_file_that_is_in_use(tmp_path: Path) -> None:
    made = new_table(tmp_path, version=3)
    made.append(rows(1, 2))
    made.upsert(rows(2), ["id"])
    kept = files_below(root_of(aged(made)))
    names = ("data/x", "metadata/y", "z")

    def attempt(*planned: Fault) -> Faults:
        planted = {plant(root_of(made), name) for name in names}
        table, faults = load_table(made.location()), Faults(planned, counted=None)
        left = _outcome(table, faults)
        there = files_below(root_of(made))
        assert there - planted == kept, planned
        assert planted & there == (planted if left is None else left & there), planned
        assert ids_of(made) == [1, 2]
        return faults

    calls = range(len(attempt().calls))
    cases = [Fault(call, when, DISK) for call in calls for when in (When.BEFORE, When.AFTER)]
    for fault in cases if IS_NIGHTLY else random.Random(0).sample(cases, 30):
        attempt(fault)


@pytest.mark.parametrize("call", range(12))
def test_no_fault_of_a_client_deletes_a_file_that_is_in_use(in_memory: Table, call: int) -> None:
    faults = Faults([Fault(call, When.BEFORE, DISK)], counted=None)
    with faulty_client(faults):
        try:
            in_memory.remove_orphan_files()
        except IcebergError:
            assert FileIO().exists(f"{in_memory.location()}/data/orphan")
    assert ids_of(in_memory) == [1, 2]


_STEPS = st.lists(
    st.sampled_from(
        ["append", "overwrite", "delete", "upsert", "branch", "staged", "tag", "expire", "fail"]
    ),
    min_size=1,
    max_size=8,
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=_STEPS, version=st.sampled_from([2, 3]), partitioned=st.booleans())
def test_every_snapshot_reads_as_before_and_what_was_planted_is_gone(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], version: int, partitioned: bool
) -> None:
    home = tmp_path_factory.mktemp("history")
    table = new_table(home, version=version, partition_by="day" if partitioned else "")
    table.append(rows(0))
    planted = set()
    for number, step in enumerate(steps, 1):
        match step:
            case "append":
                table.append(rows(number, number + 50, day=number % 3))
            case "overwrite":
                table.overwrite(rows(number))
            case "delete":
                table.delete_keys(rows(number - 1), ["id"])
            case "upsert":
                table.upsert(rows(0, number), ["id"])
            case "branch":
                table.append(rows(number), branch="b", options={"create-branch": "true"})
            case "staged":
                table.append(rows(number), options={"wap.id": f"w{number}"})
            case "tag":
                head = table.refresh().current_snapshot()
                assert head is not None
                tag = SnapshotRef(head.snapshot_id, RefType.TAG)
                change(table, SetSnapshotRef(f"t{number}", tag))
            case "expire":
                table.refresh()
                used = {ref.snapshot_id for ref in table.refs().values()}
                unused = [s.snapshot_id for s in table.snapshots() if s.snapshot_id not in used]
                change(table, RemoveSnapshots(tuple(unused[:2])))
            case _:
                for directory in ("data", "data/day=1", "metadata"):
                    planted.add(plant(root_of(table), f"{directory}/{number}.failed"))
    table.refresh()
    aged(table)
    before, read = files_below(root_of(table)), rows_of_all(table)
    asked = table.remove_orphan_files(dry_run=True)
    found = removed(table)
    assert set(asked.orphan_file_locations) == found
    assert planted <= found
    if "expire" not in steps:
        assert found == planted
    assert rows_of_all(load_table(table.location())) == read
    assert files_below(root_of(table)) == before - found
    shutil.rmtree(home)
