"""Tables on an S3 server: written, read, raced for, moved, and read by PyIceberg."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import create_table, days_of, ids_of, open_table, rows
from pyiceberg.table import StaticTable
from race_writers import PATIENT, append, id_of, race

from icebergds import AddedFiles, load_catalog, load_table
from icebergds.api.table import Table
from icebergds.errors import AlreadyExistsError, NoSuchTableError, UnsupportedFeatureError
from icebergds.io import exclusive
from icebergds.io.fileio import FileIO

if TYPE_CHECKING:
    from s3_server import S3Server


@pytest.fixture
def catalog(s3: S3Server) -> dict[str, str]:
    """Properties of a file system catalog; PyIceberg takes # and ? in a location for a URL's."""
    return {**s3.properties, "warehouse": f"{s3.new_location()}/ware house%20"}


def _read_by_pyiceberg(s3: S3Server, table: Table) -> pa.Table:
    return StaticTable.from_metadata(table.metadata_location, s3.properties).scan().to_arrow()


def test_a_table_is_written_and_read(s3: S3Server, catalog: dict[str, str]) -> None:
    table = create_table(catalog)
    table.append(rows(1, 2))
    table.append(rows(3))
    assert ids_of(open_table(catalog)) == [1, 2, 3]
    table.overwrite(rows(4))
    assert ids_of(open_table(catalog)) == [4]
    assert table.location().startswith("s3://")
    named_by_location = load_table(table.location(), properties=s3.properties)
    assert ids_of(named_by_location) == [4]
    assert _read_by_pyiceberg(s3, named_by_location)["id"].to_pylist() == [4]


def test_partitions_are_written_pruned_and_replaced(s3: S3Server, catalog: dict[str, str]) -> None:
    table = create_table(catalog, partition_by="day")
    for day in range(3):
        table.append(rows(day, 10 + day, day=day))
    table.dynamic_partition_overwrite(rows(21, day=1))
    table.delete("day = 2")
    expected = {(0, 0): 1, (10, 0): 1, (21, 1): 1}
    assert days_of(table) == expected
    assert ids_of(open_table(catalog)) == [0, 10, 21]
    assert open_table(catalog).scan("day = 1").to_arrow()["id"].to_pylist() == [21]
    found = _read_by_pyiceberg(s3, open_table(catalog)).to_pydict()
    assert dict.fromkeys(zip(found["id"], found["day"], strict=True), 1) == expected


def test_partition_values_of_any_characters_make_files_that_all_can_read(
    s3: S3Server, catalog: dict[str, str]
) -> None:
    lake = load_catalog("lake", **catalog)
    values = ["a b", "p%20q", "x#1?y=z", "a/b", "a+b&c=d", "über 東京", "[1]*", "..", ""]
    given = pa.table({"name": values})
    table = lake.create_table("db.names", given.schema, partition_spec="name")
    table.append(given)
    assert sorted(table.scan().to_arrow()["name"].to_pylist()) == sorted(values)
    assert sorted(_read_by_pyiceberg(s3, table)["name"].to_pylist()) == sorted(values)


def test_namespaces_and_tables_come_and_go(catalog: dict[str, str]) -> None:
    lake = load_catalog("lake", **catalog)
    lake.create_namespace("empty")
    lake.create_namespace_if_not_exists("empty")
    create_table(catalog)
    assert lake.list_namespaces() == [("db",), ("empty",)]
    assert lake.list_tables("empty") == []
    with pytest.raises(AlreadyExistsError):
        lake.create_table("db.t", rows().schema)
    lake.drop_table("db.t")
    with pytest.raises(NoSuchTableError):
        open_table(catalog)


def test_no_commit_of_many_processes_is_lost(catalog: dict[str, str]) -> None:
    create_table(catalog, partition_by="day", **PATIENT)
    race([append] * 4, 5, catalog)
    written = [id_of(writer, number) for writer in range(4) for number in range(5)]
    assert ids_of(open_table(catalog)) == sorted(written)
    assert len(open_table(catalog).snapshots()) == 20


def test_nothing_is_written_where_commits_would_be_lost(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's other port lets several through that create one file at once."""
    warehouse = s3.new_location()
    lake = load_catalog("lake", **{**s3.racing_properties, "warehouse": warehouse})

    def create_again_and_again() -> None:
        for i in range(50):
            monkeypatch.setattr(exclusive, "_PROVED", set())
            lake.create_table(f"db.t{i}", rows().schema)

    with pytest.raises(UnsupportedFeatureError, match="use a catalog of type sql or rest"):
        create_again_and_again()


def test_a_table_copied_to_s3_is_read_and_written_by_a_mapping(
    s3: S3Server, tmp_path: Path
) -> None:
    local = create_table({"warehouse": str(tmp_path)}, partition_by="day")
    local.append(rows(1, 2))
    moved, io = s3.new_location(), FileIO(s3.properties)
    root = Path(local.location().removeprefix("file://"))
    for file in root.rglob("*"):
        if file.is_file():
            io.write(f"{moved}/{file.relative_to(root)}", file.read_bytes())
    mapping = {local.location(): moved}
    there = load_table(local.location(), location_map=mapping, properties=s3.properties)
    assert ids_of(there) == [1, 2]
    there.append(rows(3))
    assert ids_of(there) == [1, 2, 3]
    assert ids_of(load_table(local.location())) == [1, 2]


def test_a_table_copied_from_s3_is_read_and_written_by_a_mapping(
    catalog: dict[str, str], tmp_path: Path
) -> None:
    table = create_table(catalog, partition_by="day")
    table.append(rows(1, 2))
    _download(table.io, table.location(), tmp_path / "t")
    # No property of the storage: nothing of it is asked.
    here = load_table(table.location(), location_map={table.location(): str(tmp_path / "t")})
    assert ids_of(here) == [1, 2]
    here.append(rows(3))
    assert ids_of(here) == [1, 2, 3]
    assert ids_of(open_table(catalog)) == [1, 2]


def test_files_of_a_folder_are_added_where_they_are(s3: S3Server, catalog: dict[str, str]) -> None:
    table, landing = create_table(catalog, partition_by="day"), f"{s3.new_location()}/landing zone"
    for day in range(2):
        file = pa.BufferOutputStream()
        pq.write_table(rows(day, 10 + day).drop_columns("day"), file)
        table.io.write(f"{landing}/day={day}/part-0.parquet", file.getvalue().to_pybytes())
    assert table.add_files(landing) == AddedFiles(2, 2)
    assert days_of(open_table(catalog)) == {(0, 0): 1, (10, 0): 1, (1, 1): 1, (11, 1): 1}
    paths = open_table(catalog).inspect.files()["file_path"].to_pylist()
    assert sorted(paths) == [f"{landing}/day={day}/part-0.parquet" for day in range(2)]


def _download(io: FileIO, source: str, target: Path) -> None:
    for name in io.list(source):
        if io.is_directory(f"{source}/{name}"):
            _download(io, f"{source}/{name}", target / name)
        else:
            target.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(io.read_bytes(f"{source}/{name}"))
