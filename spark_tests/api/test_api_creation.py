"""Tables that come into being with their first rows."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import (
    faulty,
    ids_of,
    prepare,
    rows,
    write,
    written,
)
from built.contents import data_files, head, live_entries, metadata_files

from icebergds import load_catalog, load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.filesystem.commits import create_at_location
from icebergds.commit.options import CommitOptions
from icebergds.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchNamespaceError,
    UnsupportedFeatureError,
)
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.io.fileio import FileIO
from icebergds.operations.write.append_overwrite import commit_write
from icebergds.operations.write.cleanup import is_committed
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import INT, LONG, STRING, NestedField
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.testing.faults import Fault, Faults, When


def _address(tmp_path: Path, kind: str) -> TableAddress:
    """The address of a table that is not there, in a namespace that is."""
    if kind == "location":
        return TableAddress(str(tmp_path / "db" / "t"))
    properties = {"warehouse": str(tmp_path)}
    if kind == "sql":
        properties["uri"] = f"sqlite:///{tmp_path}/catalog.db"
    load_catalog("lake", **properties).create_namespace("db")
    return TableAddress("db.t", "lake", properties)


@pytest.mark.parametrize("kind", ["location", "filesystem", "sql"])
def test_a_table_and_its_first_snapshot_are_one_version(tmp_path: Path, kind: str) -> None:
    address = _address(tmp_path, kind)
    committed = write(address, rows(1, 2), create="true")
    state = address.load()
    assert state.metadata == committed.state.metadata
    assert len(metadata_files(state.metadata.location)) == 1
    assert state.metadata.metadata_log == ()
    assert state.metadata.current_snapshot_id == committed.snapshot.snapshot_id
    assert ids_of(load_table(state.metadata_location)) == [1, 2]


def test_properties_of_columns_find_them_in_any_case(tmp_path: Path) -> None:
    """The options of a DataFrame arrive in lower case."""
    given = pa.table({"UserId": [1]})
    mode = "write.metadata.metrics.column"
    write(tmp_path / "t", given, create="true", **{f"table-property.{mode}.userid": "none"})
    assert load_table(tmp_path / "t").properties[f"{mode}.UserId"] == "none"


def test_a_table_has_the_rows_columns_and_the_layout_asked_for(tmp_path: Path) -> None:
    options = {
        "partition_by": "day, bucket(4, ID) as b",
        "sort_by": "name desc",
        "format_version": "3",
        "table-property.Owner": "me",
    }
    write(tmp_path / "t", rows(1, 2, day=5), create="true", **options)
    table = load_table(tmp_path / "t")
    assert table.schema().fields == (
        NestedField(1, "id", LONG),
        NestedField(2, "day", INT),
        NestedField(3, "name", STRING),
    )
    assert [(f.name, f.transform) for f in table.spec().fields] == [
        ("day", IdentityTransform()),
        ("b", BucketTransform(4)),
    ]
    assert [f.source_id for f in table.sort_order().fields] == [3]
    assert table.metadata.format_version == 3
    assert table.properties == {
        "Owner": "me",
        "write.parquet.compression-codec": "zstd",
        "write.upsert.mode": "auto",
    }
    assert all("/day=5/b=" in str(file) for file in data_files(tmp_path / "t"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_table_that_is_there_is_written_as_it_is(tmp_path: Path, overwrite: bool) -> None:
    write(tmp_path / "t", rows(1), create="true")
    write(tmp_path / "t", rows(2), overwrite=overwrite, create="true", partition_by="id")
    table = load_table(tmp_path / "t")
    assert ids_of(table) == ([2] if overwrite else [1, 2])
    assert table.spec().is_unpartitioned


def test_an_overwrite_creates_a_table_too(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(1), overwrite=True, create="true")
    assert ids_of(load_table(tmp_path / "t")) == [1]


def test_a_table_is_created_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(), create="true")
    table = load_table(tmp_path / "t")
    assert ids_of(table) == []
    assert head(table).summary["total-records"] == "0"


def test_required_columns_of_rows_are_required_of_the_table(tmp_path: Path) -> None:
    given = pa.table([pa.array([1])], schema=pa.schema([pa.field("id", pa.int64(), False)]))
    write(tmp_path / "t", given, create="true")
    assert load_table(tmp_path / "t").schema().fields[0].required


def test_the_first_rows_may_go_to_a_branch(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(1), create="true", branch="audit")
    table = load_table(tmp_path / "t")
    assert table.current_snapshot() is None
    assert ids_of(table, branch="audit") == [1]


@pytest.mark.parametrize("kind", ["location", "sql"])
def test_of_two_that_create_a_table_one_wins(tmp_path: Path, kind: str) -> None:
    address = _address(tmp_path, kind)
    one, other = (prepare(address, rows(i), create="true") for i in (1, 2))
    files, others = written(one, rows(1)), written(other, rows(2))
    commit_write(one, files)
    with pytest.raises(AlreadyExistsError):
        commit_write(other, others)
    assert not is_committed(other.address, other.write_id)
    state = address.load()
    assert ids_of(load_table(state.metadata_location)) == [1]
    assert [str(file) for file in data_files(state.metadata.location)] == [files[0].file_path]


@pytest.mark.parametrize("kind", ["location", "sql"])
def test_writers_that_create_a_table_at_once_lose_no_rows(tmp_path: Path, kind: str) -> None:
    address = _address(tmp_path, kind)

    def create(i: int) -> int | None:
        try:
            write(address, rows(i), create="true")
        except AlreadyExistsError:
            return None
        return i

    with ThreadPoolExecutor(4) as pool:
        written = [i for i in pool.map(create, range(4)) if i is not None]
    table = load_table(address.load().metadata_location)
    assert written
    assert ids_of(table) == written
    assert {str(file) for file in data_files(table.location())} == {
        entry.data_file.file_path for entry in live_entries(table)
    }


def test_one_that_creates_a_table_at_the_last_moment_wins(tmp_path: Path) -> None:
    location = tmp_path / "t"
    prepared = prepare(TableAddress(str(location)), rows(1), create="true")
    files = written(prepared, rows(1))
    other = new_table_updates(schema_from_arrow(rows().schema), location=str(location))

    class Overtaken(TableAddress):
        def create(self, updates: Any) -> Any:
            create_at_location(FileIO(), str(location), other, "t")
            return TableAddress.create(self, updates)

    overtaken = Overtaken(str(location))
    object.__setattr__(prepared.new_table, "address", overtaken)
    with pytest.raises(AlreadyExistsError):
        commit_write(prepared, files)
    table = load_table(location)
    assert table.current_snapshot() is None
    assert data_files(location) == []
    assert list((location / "metadata").glob("*.avro")) == []


def test_a_creation_that_is_refused_leaves_no_files(tmp_path: Path) -> None:
    faults = Faults([Fault(0, When.BEFORE, PermissionError("read-only"))], ("create",))
    with pytest.raises(IcebergError, match="read-only") as raised:
        write(faulty(tmp_path / "t", faults), rows(1), create="true")
    assert not raised.value.outcome_unknown
    assert [path for path in (tmp_path / "t").rglob("*") if path.is_file()] == []


def test_a_creation_whose_outcome_is_unknown_keeps_its_files(tmp_path: Path) -> None:
    faults = Faults([Fault(0, When.BEFORE, OSError("connection lost"))], ("create",))
    options = {
        "table-property.commit.status-check.num-retries": "1",
        "table-property.commit.status-check.min-wait-ms": "1",
    }
    with pytest.raises(CommitStateUnknownError):
        write(faulty(tmp_path / "t", faults), rows(1), create="true", **options)
    assert len(data_files(tmp_path / "t")) == 1


def test_a_creation_whose_answer_is_lost_has_succeeded(tmp_path: Path) -> None:
    faults = Faults([Fault(0, When.AFTER, OSError("connection lost"))], ("create",))
    write(faulty(tmp_path / "t", faults), rows(1), create="true")
    assert ids_of(load_table(tmp_path / "t")) == [1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"partition_by": "nothing"}, InvalidOptionError, "column nothing"),
        ({"sort_by": "weeks(id)"}, InvalidOptionError, "not a transform"),
        ({"location": "/elsewhere"}, InvalidOptionError, "leave the option out"),
        ({"partition_by": "bucket(4, id) as name"}, InvalidMetadataError, "name"),
        ({"table_property.write.merge.mode": "mor"}, InvalidOptionError, r"merge\.mode is 'mor'"),
    ],
    ids=str,
)
def test_what_no_table_can_be_is_said_before_rows_are_written(
    tmp_path: Path, options: Mapping[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        write(tmp_path / "t", rows(1), create="true", **options)
    assert not (tmp_path / "t").exists()


def test_a_catalogs_table_goes_where_it_is_told(tmp_path: Path) -> None:
    address = _address(tmp_path, "sql")
    write(address, rows(1), create="true", location=str(tmp_path / "x"))
    assert address.load().metadata.location == str(tmp_path / "x")
    assert len(data_files(tmp_path / "x")) == 1


def test_a_location_may_be_said_twice(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(1), create="true", location=f"file://{tmp_path}/t/")
    assert ids_of(load_table(tmp_path / "t")) == [1]


@pytest.mark.parametrize("options", [{}, {"location": "/elsewhere"}], ids=str)
def test_a_namespace_that_is_missing_is_said_before_rows_are_written(
    tmp_path: Path, options: Mapping[str, str]
) -> None:
    address = _address(tmp_path, "sql")
    nowhere = TableAddress("nowhere.t", "lake", address.catalog_properties)
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        prepare(nowhere, rows(1), create="true", **options)


def test_a_place_that_a_catalog_has_no_tables_in_is_said_before_rows_are_written(
    tmp_path: Path,
) -> None:
    address = _address(tmp_path, "filesystem")
    with pytest.raises(InvalidOptionError, match=f"created at {tmp_path}/db/t"):
        prepare(address, rows(1), create="true", location=str(tmp_path / "elsewhere"))


def test_types_of_a_later_version_are_refused_by_an_earlier(tmp_path: Path) -> None:
    given = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises((InvalidMetadataError, UnsupportedFeatureError), match="timestamp_ns"):
        write(tmp_path / "t", given, create="true")
    write(tmp_path / "t", given, create="true", format_version="3")
    assert load_table(tmp_path / "t").scan().to_arrow().num_rows == 1


def test_a_new_table_is_the_one_the_files_were_written_for(tmp_path: Path) -> None:
    prepared = prepare(TableAddress(str(tmp_path / "t")), rows(1), create="true")
    assert prepared.new_table is not None
    planned = prepared.new_table.planned().metadata
    committed = commit_write(prepared, written(prepared, rows(1)))
    assert committed.state.metadata.table_uuid == planned.table_uuid == prepared.table_uuid
    assert CommitOptions(table_uuid=prepared.table_uuid).table_uuid is not None
